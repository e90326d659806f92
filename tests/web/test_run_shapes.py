"""What is told apart by colours is told apart without them."""

import base64
from itertools import combinations
from typing import Any

from playwright.sync_api import Page, expect

from tests.web.conftest import NewPage
from tests.web.dashboard import Dashboard
from tests.web.recorded import BEGAN, ERROR, SECOND, Recorded, add
from tests.web.run_page import open_run, parts, row

DIFFERENT = 0.03
"""At least this share of the pixels differs, each picture taken as light and dark around its own mean."""
_GREY = """async ([image, width, height]) => {
    const bytes = Uint8Array.from(atob(image), (each) => each.charCodeAt(0));
    const bitmap = await createImageBitmap(new Blob([bytes]), {resizeWidth: width, resizeHeight: height});
    const canvas = new OffscreenCanvas(width, height);
    const context = canvas.getContext('2d');
    context.drawImage(bitmap, 0, 0);
    const pixels = context.getImageData(0, 0, width, height).data;
    return Array.from({length: width * height}, (_, at) =>
        0.2126 * pixels[at * 4] + 0.7152 * pixels[at * 4 + 1] + 0.0722 * pixels[at * 4 + 2]);
}"""


def _everything() -> Recorded:
    history = Recorded()
    history.step("completed", 0, 4 * SECOND)
    history.step("failed", 0, 4 * SECOND, status="failed", error=ERROR)
    history.step("sleep", 0, 4 * SECOND, kind="sleep", wake_at=BEGAN + 4 * SECOND)
    history.step("signal", 0, 4 * SECOND, kind="signal")
    history.step("child", 0, 4 * SECOND, kind="child", child_run_id="01a1e551-9fc0-7326-a6f2-47723da164cc")
    history.step("lost", 0, 4 * SECOND, status="abandoned")
    history.failed("backoff", 1, 0, SECOND // 2, 4 * SECOND)
    history.step("backoff", 4 * SECOND, 5 * SECOND, attempt=2)
    history.step("rest", 5 * SECOND, 66 * SECOND)  # so that four seconds are some sixty pixels
    return history


def test_14_shapes_are_told_apart_in_grey(dashboard: Dashboard, new_page: NewPage) -> None:
    page, blank = new_page(color_scheme="light"), new_page()
    open_run(page, dashboard, add(dashboard, _everything()))
    bars = {key: parts(page, key).first for key in ("completed", "failed", "sleep", "signal", "child", "lost")}
    bars["backoff"] = parts(page, "backoff", "backoff")
    icons = {key: row(page, key).locator(".row-icon") for key in ("completed", "failed", "lost")}
    _assert_different(blank, {key: _left_of(page, bar) for key, bar in bars.items()}, (60, 16))
    _assert_different(blank, {key: icon.screenshot() for key, icon in icons.items()}, (16, 16))


def test_14_states_of_a_run_have_a_word_and_an_icon_of_their_own(dashboard: Dashboard, new_page: NewPage) -> None:
    page, blank = new_page(), new_page()
    started = {
        "waiting": dashboard.start("waiting"),
        "sleeping": dashboard.start("sleeping", "1h"),
        "retrying": dashboard.start("retrying"),
        "running": dashboard.start("slow", 60),
        "completed": dashboard.start("hello", "you"),
        "failed": dashboard.start("broken", "no"),
    }
    icons: dict[str, bytes] = {}
    for word, run_id in started.items():
        open_run(page, dashboard, run_id)
        badge = page.locator(".run-state .badge")
        expect(badge).to_have_text(word)
        icons[word] = badge.locator("svg").screenshot()
    _assert_different(blank, icons, (16, 16))
    for key in ("running", "waiting", "sleeping", "retrying"):
        dashboard.api.post(f"/runs/{started[key]}/terminate", json={})


def _left_of(page: Page, bar: Any) -> bytes:
    """As much of it as all of them have."""
    bounds = bar.bounding_box()
    return page.screenshot(
        clip={"x": bounds["x"], "y": bounds["y"] + bounds["height"] / 2 - 8, "width": 60, "height": 16}
    )


def _assert_different(blank: Page, pictures: dict[str, bytes], size: tuple[int, int]) -> None:
    grey: dict[str, list[bool]] = {}
    for key, picture in pictures.items():
        pixels = blank.evaluate(_GREY, [base64.b64encode(picture).decode(), *size])
        mean = sum(pixels) / len(pixels)
        grey[key] = [pixel > mean for pixel in pixels]
    for (a, left), (b, right) in combinations(grey.items(), 2):
        differing = sum(x != y for x, y in zip(left, right, strict=True)) / len(left)
        assert min(differing, 1 - differing) >= DIFFERENT, f"{a} and {b} look alike: {differing:.3f}"

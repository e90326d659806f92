"""The timeline of a run: what is drawn where."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.campaigns.figures import Figures
from tests.web.conftest import NewPage
from tests.web.dashboard import Dashboard
from tests.web.measure import FULL
from tests.web.recorded import BEGAN, DAY, ERROR, HOUR, SECOND, Recorded, add, long_run
from tests.web.run_page import box, loaded, open_run, parts, row

STEP = SECOND // 5
LEAST_PX = 40
CROSS_PX = 12
STEPS = 20_000 if FULL else 3_000
STORES = ("dashboard", "postgres_dashboard") if FULL else ("dashboard",)
ROWS_IN_THE_DOCUMENT = 100
ROWS_MS, ALL_MS, FRAME_MS, HEAP_MB = 500, 3_000, 50, 80
_WATCH = """() => {
    const seen = window.seen = {};
    new MutationObserver(() => {
        seen.rows ??= document.querySelector('.timeline-row') ? performance.now() : undefined;
        const count = document.querySelector('.timeline-count');
        seen.all ??= count && !count.textContent.includes('+') ? performance.now() : undefined;
    }).observe(document, {subtree: true, childList: true, characterData: true});
}"""
_SCROLL = """async () => {
    const box = document.querySelector('.timeline');
    const frames = [];
    let last = performance.now();
    for (let y = 0; y < box.scrollHeight; y += box.clientHeight * 0.8) {
        box.scrollTop = y;
        await new Promise(requestAnimationFrame);
        const now = performance.now();
        frames.push(now - last);
        last = now;
    }
    return frames;
}"""


def _with_sleep() -> Recorded:
    history = Recorded()
    history.step("before", 0, STEP)
    history.step("nap", STEP, DAY, kind="sleep", wake_at=BEGAN + DAY)
    history.step("after", DAY, DAY + STEP)
    return history


def _with_signal() -> Recorded:
    history = Recorded()
    history.step("before", 0, STEP)
    history.step("approve", STEP, DAY, kind="signal")
    history.step("after", DAY, DAY + STEP)
    return history


def _with_backoff() -> Recorded:
    history = Recorded()
    history.step("before", 0, STEP)
    history.failed("after", 1, STEP, 2 * STEP, DAY)
    history.step("after", DAY, DAY + STEP, attempt=2)
    return history


def test_what_is_said_of_a_row_is_whole_and_marks_are_not_cut_off(dashboard: Dashboard, page: Page) -> None:
    waiting = dashboard.start("waiting")
    dashboard.reached(waiting, {"awaits_signal": 1})
    open_run(page, dashboard, waiting)
    note = page.locator(".row-note").last
    expect(note).to_contain_text("waiting")
    assert note.evaluate("note => note.scrollWidth <= note.clientWidth")
    retrying = dashboard.start("retrying")
    dashboard.reached(retrying, {"retrying_steps": 1, "status": "sleeping"})
    open_run(page, dashboard, retrying)
    mark, waits, bars = (
        box(row(page, "charge-card").locator(each)) for each in (".mark-next", ".seg-backoff >> nth=-1", ".row-bars")
    )
    assert mark["x"] + mark["width"] <= bars["x"] + bars["width"]  # what is beyond is not painted
    assert waits["x"] + waits["width"] == pytest.approx(mark["x"] + mark["width"] / 2, abs=2)


def test_what_is_said_over_a_failed_bar_leaves_its_cross_visible(dashboard: Dashboard, page: Page) -> None:
    history = Recorded(status="failed", output=None, error=ERROR)
    history.step("charge", 0, HOUR, status="failed", error=ERROR)
    open_run(page, dashboard, add(dashboard, history))
    bar, note = box(parts(page, "charge", "attempt")), box(row(page, "charge").locator(".row-note"))
    assert note["x"] > bar["x"]  # there is room nowhere else
    assert note["x"] + note["width"] <= bar["x"] + bar["width"] - CROSS_PX


def test_pauses_are_listed_where_there_is_no_axis(dashboard: Dashboard, new_page: NewPage) -> None:
    history = Recorded()
    history.step("before", 0, STEP)
    history.paused(STEP, HOUR + STEP, "look at the first orders")
    history.step("after", 2 * HOUR, 2 * HOUR + STEP)
    page = new_page(viewport={"width": 320, "height": 800}, timezone_id="Europe/Berlin")
    open_run(page, dashboard, add(dashboard, history))
    pauses = page.get_by_role("list", name="Pauses").get_by_role("listitem")
    expect(pauses).to_have_count(1)
    expect(pauses).to_contain_text("Paused for 1h: look at the first orders")
    expect(pauses).to_contain_text(re.compile(r"\d\d:\d\d:\d\d CES?T to "))
    page.set_viewport_size({"width": 1280, "height": 800})
    expect(pauses).to_have_count(0)


@pytest.mark.parametrize("history", [_with_sleep, _with_signal, _with_backoff])
def test_08_what_takes_a_moment_is_seen_beside_what_takes_a_day(
    dashboard: Dashboard, page: Page, history: Callable[[], Recorded]
) -> None:
    open_run(page, dashboard, add(dashboard, history()))
    for key in ("before", "after"):
        assert box(parts(page, key, "attempt").last)["width"] >= LEAST_PX
    gap = page.locator(".gap")
    expect(gap).to_have_count(1)
    expect(gap).to_have_text("1d")


def test_09_unfolding_moves_nothing_before_it(dashboard: Dashboard, page: Page) -> None:
    open_run(page, dashboard, add(dashboard, _with_sleep()))
    before, nap, after = (box(parts(page, key).first) for key in ("before", "nap", "after"))
    page.locator(".gap").click()
    expect(page.locator(".gap.is-unfolded")).to_have_count(1)
    assert box(parts(page, "before").first) == pytest.approx(before, abs=1)
    assert box(parts(page, "nap").first)["x"] == pytest.approx(nap["x"], abs=1)
    assert box(parts(page, "after").first)["x"] > after["x"] + LEAST_PX
    assert "gap=" in page.url


def test_09_bars_are_where_their_times_are_at_every_zoom(dashboard: Dashboard, page: Page) -> None:
    history = Recorded()
    times = [(number * 700_000, number * 700_000 + 300_000 + number * 20_000) for number in range(12)]
    for number, (begin, end) in enumerate(times):
        history.step(f"step-{number}", begin, end)
    open_run(page, dashboard, add(dashboard, history))
    for keys in ("", "+", "+", "-", "0"):
        if keys:
            page.keyboard.press(keys)
            page.wait_for_timeout(50)
        places: dict[str, tuple[float, float]] = page.evaluate(
            """() => Object.fromEntries([...document.querySelectorAll('[role=row][data-key]')].flatMap((row) => {
                const bar = row.querySelector('.seg');
                return bar ? [[row.dataset.key, [parseFloat(bar.style.left), parseFloat(bar.style.width)]]] : [];
            }))"""
        )
        whole: int = page.evaluate("document.querySelector('.axis').clientWidth")
        inside = {k: v for k, v in places.items() if v[0] > 1 and v[0] + v[1] < whole - 1}
        (first, (x1, _)), *_, (last, (x2, _)) = inside.items()
        start = {name: times[int(name.removeprefix("step-"))] for name in inside}
        rate = (x2 - x1) / (start[last][0] - start[first][0])
        for name, (x, width) in inside.items():
            begin, end = start[name]
            assert x == pytest.approx(x1 + (begin - start[first][0]) * rate, abs=1)
            assert width == pytest.approx((end - begin) * rate, abs=1)


@pytest.mark.parametrize("store", STORES)
def test_07_many_steps_are_a_pool_of_rows(request: pytest.FixtureRequest, page: Page, store: str) -> None:
    dashboard: Dashboard = request.getfixturevalue(store)
    page.add_init_script(f"({_WATCH})()")
    timeline = open_run(page, dashboard, add(dashboard, long_run(STEPS, 37)))
    loaded(page)
    assert int(timeline.get_attribute("aria-rowcount") or 0) == STEPS + 1
    assert page.locator(".timeline-row").count() < ROWS_IN_THE_DOCUMENT
    timeline.evaluate("box => { box.scrollTop = box.scrollHeight / 2; }")
    expect(row(page, f"step-{STEPS // 2}")).to_be_visible()
    assert page.locator(".timeline-row").count() < ROWS_IN_THE_DOCUMENT
    if FULL:
        _assert_quick(page, store)
    page.keyboard.press("!")
    selected = page.locator("[role=row][aria-selected=true]")
    expect(selected).to_have_attribute("aria-label", re.compile("^step-37, failed"))
    expect(selected).to_be_in_viewport()


def _assert_quick(page: Page, store: str) -> None:
    seen: dict[str, float] = page.evaluate("window.seen")
    slowest: float = max(page.evaluate(_SCROLL))
    session: Any = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    heap_mb = float(session.send("Runtime.getHeapUsage")["usedSize"]) / 1e6
    figures = {"rows ms": seen["rows"], "all ms": seen["all"], "slowest frame ms": slowest, "heap MB": heap_mb}
    Figures("run-page").put(f"{STEPS:,} steps, {store}", {name: round(value, 1) for name, value in figures.items()})
    assert seen["rows"] <= ROWS_MS
    assert seen["all"] <= ALL_MS
    assert slowest <= FRAME_MS
    assert heap_mb <= HEAP_MB


def test_07_a_failure_in_a_fold_is_found(dashboard: Dashboard, page: Page) -> None:
    history = Recorded()
    for number in range(120):
        broken: dict[str, Any] = {"status": "failed", "error": ERROR} if number == 37 else {}
        history.step(f"enrich[{number}]", number * 1_000, number * 1_000 + 900, parallel_group_id="enrich", **broken)
    open_run(page, dashboard, add(dashboard, history))
    expect(page.locator("[role=row][aria-expanded=false]")).to_have_count(1)
    assert page.locator('[data-key^="enrich["]').count() == 0
    page.keyboard.press("!")
    expect(row(page, "enrich[37]")).to_have_attribute("aria-selected", "true")
    expect(page.locator(".inspector h2")).to_have_text("enrich[37]")


def test_pauses_and_handovers_have_a_place_in_time(dashboard: Dashboard, page: Page) -> None:
    history = Recorded()
    history.failed("charge", 1, 0, SECOND, 2 * SECOND, "worker-a")
    failed = {"status": "failed", "error": {**ERROR, "message": "no money there"}, "input": {"json": {"amount": 7}}}
    history.step("charge", 2 * SECOND, 4 * SECOND, attempt=2, worker_id="worker-b", **failed)
    history.paused(4 * SECOND, 4 * SECOND + HOUR, "look first")
    history.step("ship", 5 * SECOND + HOUR, 7 * SECOND + HOUR, worker_id="worker-b")
    open_run(page, dashboard, add(dashboard, history))
    pause = page.get_by_role("img", name="Paused for 1h: look first")
    band, name = box(page.locator(".halt-band")), box(pause)
    charged, shipped = box(parts(page, "charge").last), box(parts(page, "ship").first)
    assert band["x"] == pytest.approx(name["x"], abs=1)
    assert band["x"] == pytest.approx(charged["x"] + charged["width"], abs=1)
    assert band["x"] + band["width"] < shipped["x"]
    assert band["y"] + band["height"] > shipped["y"], "it is behind all rows"
    handover = row(page, "charge").locator(".seg-handover")
    expect(handover).to_have_attribute("title", "worker-a, then worker-b")
    place = box(handover)
    assert place["x"] + place["width"] / 2 == pytest.approx(charged["x"], abs=1)
    expect(row(page, "ship").locator(".seg-handover")).to_have_count(0)
    row(page, "charge").click()
    page.get_by_role("tab", name="Attempts").click()
    for attempt in (1, 2):
        page.get_by_label(f"Compare attempt {attempt}").check()
    compared = page.get_by_role("region", name="attempt 1 and attempt 2")
    expect(compared.locator(".diff-added")).to_contain_text("no money there")
    expect(compared.get_by_role("group", name="Arguments")).to_contain_text("amount")


def test_a_wait_for_a_worker_has_a_place_in_time(dashboard: Dashboard, page: Page) -> None:
    history = Recorded(created_at=BEGAN - 149 * SECOND, queued_at=BEGAN - 149 * SECOND, queued_us=151 * SECOND)
    history.step("pack", 0, 2 * SECOND)
    history.step("ship", 3 * SECOND, 4 * SECOND)
    open_run(page, dashboard, add(dashboard, history))
    waited = page.get_by_role("img", name="Waited for 2m 29s for a worker")
    band, packed = box(page.locator(".halt-band[data-kind=queue]")), box(parts(page, "pack").first)
    assert band["x"] == pytest.approx(box(waited)["x"], abs=1)
    assert band["width"] > LEAST_PX / 2
    assert band["x"] + band["width"] == pytest.approx(packed["x"], abs=1)
    queued = page.locator(".run-facts").get_by_text("waited 2m 31s for a worker")
    expect(queued).to_have_attribute("title", "2m 29s before it started")
    expect(page.locator(".run-facts")).to_contain_text("4s")


def test_rows_say_what_they_are(dashboard: Dashboard, page: Page) -> None:
    run_id = dashboard.start("sleeping", "10ms")
    dashboard.ended(run_id)
    timeline = open_run(page, dashboard, run_id)
    labels = [each.get_attribute("aria-label") or "" for each in timeline.get_by_role("row").all()[1:]]
    assert [label.split(",")[:2] for label in labels] == [
        ["before", " completed"],
        ["nap", " completed"],
        ["after", " completed"],
    ]
    row(page, "before").focus()
    page.keyboard.press("ArrowDown")
    expect(row(page, "nap")).to_be_focused()
    expect(row(page, "nap")).to_have_attribute("aria-selected", "true")
    assert "step=nap" in page.url

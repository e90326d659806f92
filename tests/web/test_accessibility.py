"""Who does not see the dashboard, or not well: what axe-core finds, and what a screen reader is told of a timeline."""

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.web.conftest import NewPage
from tests.web.dashboard import Dashboard
from tests.web.recorded import BEGAN, DAY, ERROR, SECOND, Recorded, add
from tests.web.run_page import loaded, open_run

WEB = Path(__file__).parents[2] / "web"
AXE = WEB / "node_modules" / "axe-core" / "axe.min.js"
BY_COLOUR = ["color-contrast", "link-in-text-block"]
"""The rules whose answer depends on the theme; all others are asked once."""
RUN_AXE = """async ([within, rules]) => {
  const only = rules ? {runOnly: {type: "rule", values: rules}} : {};
  const found = await axe.run(within, {resultTypes: ["violations"], ...only});
  return {
    passes: found.passes.length,
    violations: found.violations.flatMap((each) => each.nodes.map((node) =>
      `${each.id}: ${each.help}\\n    ${node.html.slice(0, 200)}\\n    ${node.failureSummary}`)),
  };
}"""


PAGES: dict[str, tuple[str, ...]] = {
    "runs": ("key ?", "key Control+k"),
    "runs?workflow=approval": ("button Act on all matching, menuitem Cancel",),
    "runs?workflow=nothing-is-called-so": (),
    "runs/{failing}?step=charge-card": (
        "button Rerun from here…",
        "button Cancel…",
        "tab Attempts",
        "tab Logs",
        "tab Raw",
        "tab History",
        "tab Input and result",
    ),
    "runs/{family}": (),
    "runs/{asking}": ("button Signal…",),
    "runs/{retried}": ("tab Attempts", "tab Raw"),
    "runs/{family}/compare/{failing}": (),
    "workflows": (),
    "workflows/trip": ("button Change", "button Pause", "tab Versions", "tab Failures", "tab Schema"),
    "workflows/trip/start": ("tab JSON",),
    "schedules": ("button New schedule",),
    "schedules/nightly": ("button More, menuitem Backfill",),
    "workers": (),
    "workers/{worker}": ("button Drain…",),
    "inbox": (),
    "operations": (),
    "operations/{operation}": (),
    "settings": ("tab Server", "tab Namespaces", "button New namespace", "tab Keys", "button New key"),
    "login": (),
}
"""What is opened there, one after the other: dialogs, each of which is closed again, and tabs."""


@pytest.fixture
def names(dashboard: Dashboard) -> dict[str, str]:
    """What the pages are about: something on each of them."""
    failing, asking = dashboard.start("retrying"), dashboard.start("approval", 7, labels={"team": "green"})
    family = dashboard.start("family", ["a", "b"])
    body = {"workflow": "hello", "cron": "0 6 * * *", "input": "x"}
    assert dashboard.api.put("/schedules/nightly", json=body).is_success
    operation = {"action": "cancel", "filter": {"workflow": ["nothing-is-called-so"]}}
    planned = dashboard.api.post("/operations", json={**operation, "dry_run": True}).json()
    made = dashboard.api.post("/operations", json={**operation, "filter_digest": planned["filter_digest"]})
    assert made.is_success, made.text
    dashboard.reached(failing, {"status": "sleeping", "retrying_steps": 1})
    dashboard.reached(asking, {"awaits_signal": 1})
    dashboard.ended(family)
    retried = dashboard.retried(1)
    [retry] = dashboard.get(f"/runs/{retried}/timeline")["retries"]
    before = f"before:{retry['retry_seq']}"
    return {
        "retried": f"{retried}?row={before}&in={before}&step=settle",
        "failing": failing,
        "asking": asking,
        "family": family,
        "operation": made.json()["operation_id"],
        "worker": own_worker(dashboard),
    }


def own_worker(dashboard: Dashboard) -> str:
    """That of the dashboard: those of other tests come and end."""
    rows = dashboard.get("/workers", status="online")["rows"]
    return next(row["worker_id"] for row in rows if row["pid"] == dashboard.worker_pid)


def _settled(page: Page) -> None:
    expect(page.locator("main > :not(.skeleton)").first).to_be_visible()
    expect(page.locator("main .skeleton, main [data-stale]")).to_have_count(0)


def _open(page: Page, opening: str) -> None:
    for each in opening.split(", "):
        kind, _, name = each.partition(" ")
        if kind == "key":
            page.keyboard.press(name)
        else:
            page.locator("main").get_by_role(kind, name=name).first.click()  # pyright: ignore[reportArgumentType]
    if not opening.startswith("tab"):
        expect(page.get_by_role("dialog")).to_be_visible()
    _settled(page)


def _violations(page: Page, within: str) -> list[str]:
    """Of a part of the page, in the light theme, in which the page is, and in the dark one."""
    light = page.evaluate(RUN_AXE, [within, None])
    page.emulate_media(color_scheme="dark")
    dark = page.evaluate(RUN_AXE, [within, BY_COLOUR])
    page.emulate_media(color_scheme="light")
    assert light["passes"], "axe looked at nothing"
    assert dark["passes"], "axe looked at nothing in the dark"
    return [*light["violations"], *(f"dark: {each}" for each in dark["violations"])]


def test_24_every_page_is_looked_at() -> None:
    patterns = set(re.findall(r'pattern: "/(.*?)"', (WEB / "src" / "main.tsx").read_text()))
    paths = [path.partition("?")[0] for path in PAGES]
    unseen = {
        each for each in patterns if not any(re.fullmatch(re.sub(r":\w+", "[^/]+", each), path) for path in paths)
    }
    assert unseen == {"r/:prefix", "runs/:a/compare"}, "a redirection, and the same page with nothing to compare with"


def test_24_axe_finds_nothing_on_any_page_in_either_theme(
    dashboard: Dashboard, new_page: NewPage, names: dict[str, str]
) -> None:
    page = new_page(bypass_csp=True, reduced_motion="reduce", color_scheme="light")
    page.add_init_script(AXE.read_text())
    violations: list[str] = []
    for path, openings in PAGES.items():
        page.goto(f"{dashboard.url}{path.format(**names)}")
        _settled(page)
        violations.extend(f"{path}: {each}" for each in _violations(page, "html"))
        for opening in openings:
            _open(page, opening)
            opened = "main" if opening.startswith("tab") else "dialog"  # around it, nothing has changed
            violations.extend(f"{path}, {opening}: {each}" for each in _violations(page, opened))
            if opened == "dialog":
                page.keyboard.press("Escape")
                expect(page.get_by_role("dialog")).to_have_count(0)
    assert not violations, "\n".join(violations)


def _rows_of_tree(page: Page) -> list[str]:
    """The names of the rows, as the browser gives them to a screen reader."""
    session: Any = page.context.new_cdp_session(page)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    rows = [node for node in nodes if not node["ignored"] and node["role"]["value"] == "row"]
    return [node["name"]["value"] for node in rows]


def test_24_a_screen_reader_is_told_of_status_attempts_and_duration(dashboard: Dashboard, page: Page) -> None:
    history = Recorded()
    history.step("reserve", 0, 2 * SECOND)
    history.failed("charge", 1, 2 * SECOND, 3 * SECOND, 5 * SECOND)
    history.failed("charge", 2, 5 * SECOND, 6 * SECOND, 10 * SECOND)
    history.step("charge", 10 * SECOND, 12 * SECOND, attempt=3)
    history.step("nap", 12 * SECOND, DAY, kind="sleep", wake_at=BEGAN + DAY)
    history.step("approve", DAY, DAY + 60 * SECOND, kind="signal")
    for number in range(2):
        begin = DAY + (60 + number) * SECOND
        history.step(f"part[{number}]", begin, begin + SECOND, parallel_group_id="part")
    history.step("ship", DAY + 70 * SECOND, DAY + 73 * SECOND, status="failed", error=ERROR)
    open_run(page, dashboard, add(dashboard, history))
    loaded(page)
    _, *labels = _rows_of_tree(page)
    assert labels == [
        "reserve, completed, 2 seconds",
        "charge, completed, 3 attempts, 2 seconds",
        "nap, completed, 1 day",
        "approve, completed, 1 minute",
        "part, completed, 2 of 2 done, 2 seconds",
        "part[0], completed, 1 second",
        "part[1], completed, 1 second",
        "ship, failed, 3 seconds",
    ]
    failing = dashboard.start("retrying")
    dashboard.reached(failing, {"status": "sleeping", "retrying_steps": 1})
    open_run(page, dashboard, failing)
    loaded(page)
    *_, retrying = _rows_of_tree(page)
    assert re.fullmatch(r"charge-card, retrying, 2 attempts, [\d.]+ \w+", retrying)

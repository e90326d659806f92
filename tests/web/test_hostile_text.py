"""Texts that would run a script, in every field that somebody else writes: they are shown, and are nothing else."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Dialog, Page, expect

from tests.web.conftest import NewPage
from tests.web.dashboard import Dashboard, until
from tests.web.hostile_flows import WITHOUT_SEPARATORS
from tests.web.run_page import loaded, open_run
from tests.web.test_runs import namespace_of, start_many
from tests.web.vectors import VECTORS
from tests.web.watching import Problems

NAMESPACE = "hostile"
FLOWS = Path(__file__).parent / "hostile_flows.py"
WATCH = """
    window.ran = [];
    window.xss = () => ran.push("a script ran");
    document.addEventListener("securitypolicyviolation", (e) => ran.push(`${e.violatedDirective}: ${e.sample}`));
"""
THREES = [VECTORS[at : at + 3] for at in range(0, len(VECTORS), 3)]
"""A run has three, so that all runs are on one page."""
NAMES = [text.translate(WITHOUT_SEPARATORS) for text in VECTORS[:10]]
"""Of steps: as many as are in sight."""
SECTIONS = ("runs", "r", "workflows", "schedules", "workers", "operations")
SHOW_ALL = ("Error", "Logs", "Output", "Raw")
UNSHOWN = """(texts) => {
  const said = document.body.textContent;
  return texts.filter((text) => !said.includes(text) && !said.includes(JSON.stringify(text).slice(1, -1)));
}"""
MADE = """() => [...document.body.querySelectorAll("*")].filter((each) =>
  each.matches("script, iframe, object, embed, base, img, image, video, audio, style, link, meta, math, marquee, x") ||
  [...each.attributes].some((held) => held.name.startsWith("on") ||
    (/href|src|action|data$/.test(held.name) && /^\\s*(javascript|data):/i.test(held.value)))
).map((each) => each.outerHTML.slice(0, 200))"""
VISIT = """async ([paths, texts]) => {
  const unshown = [];
  for (const [at, path] of paths.entries()) {
    history.pushState(null, "", path);
    dispatchEvent(new PopStateEvent("popstate"));
    const end = performance.now() + 20_000;
    while (!document.querySelector("main").textContent.includes(texts[at]) && performance.now() < end)
      await new Promise((resolve) => setTimeout(resolve, 2));
    if (performance.now() >= end) unshown.push(path);
  }
  return unshown;
}"""


@pytest.fixture(scope="module")
def hostile(dashboard: Dashboard) -> Iterator[Dashboard]:
    """With a worker for the workflow of hostile_flows.py."""
    namespace_of(dashboard, NAMESPACE)
    worker = dashboard.worker("-n", NAMESPACE, flows=FLOWS)
    yield dashboard
    worker.close()


def _text_only(page: Page, *texts: str) -> None:
    """All of these are there, and nothing was made of any."""
    until(lambda: page.evaluate(UNSHOWN, texts), lambda unshown: not unshown)
    assert page.evaluate(MADE) == []
    assert page.evaluate("ran") == []


def _open(page: Page, path: str) -> None:
    page.goto(f"{path}{'&' if '?' in path else '?'}namespace={NAMESPACE}")
    expect(page.locator("main > :not(.skeleton)").first).to_be_visible()
    expect(page.locator("main .skeleton")).to_have_count(0)


@pytest.fixture
def victim(new_page: NewPage, problems: Problems) -> Iterator[Page]:
    """A page on which no script of somebody else runs, and none is even tried."""
    problems.allow(r"status of 4\d\d")  # nothing is at these addresses, and no key is asked for here
    page = new_page()
    page.add_init_script(WATCH)
    dialogs: list[str] = []

    def dismiss(dialog: Dialog) -> None:
        dialogs.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", dismiss)
    yield page
    assert dialogs == []


def test_26_what_runs_say_is_text(hostile: Dashboard, victim: Page) -> None:
    page, url = victim, hostile.url
    starts = [
        {"workflow": "hostile", "input": texts, "workflow_id": " ".join(texts), "labels": {t: t for t in texts}}
        for texts in THREES
    ]
    small = start_many(hostile, NAMESPACE, starts)
    run_id = hostile.start(
        "hostile", list(VECTORS), namespace=NAMESPACE, labels=dict(zip(VECTORS, VECTORS, strict=True))
    )
    for each in (*small, run_id):
        hostile.reached(each, {"awaits_signal": 1}, namespace=NAMESPACE)

    _open(page, f"{url}inbox")
    _text_only(page, *VECTORS)
    hostile.signal(run_id, "go", {text: text for text in VECTORS}, namespace=NAMESPACE)
    hostile.ended(run_id, namespace=NAMESPACE)
    _open(page, f"{url}runs")
    _text_only(page, *VECTORS)

    _open(page, f"{url}runs/{run_id}?view=values")
    _text_only(page, *VECTORS)
    _open(page, f"{url}runs/{run_id}?view=history")
    _text_only(page, *NAMES)
    _open(page, f"{url}runs/{run_id}/compare/{small[0]}")
    _text_only(page, *NAMES)
    for step in ("fail", "go"):
        open_run(page, hostile, run_id, f"?namespace={NAMESPACE}&step={step}")
        loaded(page)
        tabs = page.get_by_role("tablist", name="About the step")
        for tab in tabs.get_by_role("tab").all():
            tab.click()
            name = tab.inner_text()
            _text_only(page, *(VECTORS if name in SHOW_ALL else ()))


def test_26_what_schedules_say_is_text(hostile: Dashboard, victim: Page) -> None:
    page, url = victim, hostile.url
    body = {"workflow": "hello", "cron": "0 6 1 1 *", "input": {text: text for text in VECTORS}}
    ids = [" ".join(texts) for texts in THREES]
    for each in ids:
        made = hostile.api.put(f"/schedules/{quote(each, safe='')}", json=body, params={"namespace": NAMESPACE})
        assert made.is_success, made.text
    _open(page, f"{url}schedules")
    _text_only(page, *VECTORS)
    _open(page, f"{url}schedules/{quote(ids[0], safe='')}")
    _text_only(page, *VECTORS)


def test_26_what_is_typed_and_what_addresses_say_is_text(hostile: Dashboard, victim: Page) -> None:
    page, url = victim, hostile.url
    _open(page, f"{url}runs")
    search = page.get_by_role("combobox", name="Search runs")
    for text in VECTORS:
        search.fill(text)
    _text_only(page)
    page.keyboard.press("Control+k")
    field = page.get_by_role("dialog").get_by_role("combobox")
    for text in VECTORS:
        field.fill(text)
    _text_only(page)
    page.keyboard.press("Escape")

    paths = [f"/{SECTIONS[at % len(SECTIONS)]}/{quote(text, safe='')}" for at, text in enumerate(VECTORS)]
    assert page.evaluate(VISIT, [[f"{path}?namespace={NAMESPACE}" for path in paths], VECTORS]) == []
    _text_only(page)
    chosen = "&".join(f"{key}={quote(text, safe='')}" for text in VECTORS for key in ("workflow", "tab"))
    _open(page, f"{url}runs?{chosen}")
    _text_only(page, *VECTORS)


@pytest.mark.parametrize("next_", ["javascript:xss()", "//elsewhere.invalid/", "data:text/html,<script>xss()</script>"])
def test_26_nobody_is_sent_elsewhere_after_logging_in(hostile: Dashboard, victim: Page, next_: str) -> None:
    victim.goto(f"{hostile.url}login?next={quote(next_, safe='')}")
    victim.get_by_label("API key").fill("any")
    victim.get_by_role("button", name="Log in").click()
    victim.wait_for_url(f"{hostile.url}runs*")
    _text_only(victim)

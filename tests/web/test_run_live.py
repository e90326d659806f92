"""The page of a run while the run goes on, and what is done to it there."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from kagzi.cli.bench.load import percentile
from tests.campaigns.figures import Figures
from tests.web.dashboard import Dashboard, until
from tests.web.measure import FULL
from tests.web.recorded import ERROR, SECOND, Recorded, add
from tests.web.run_page import in_dialog, open_run, parts, row

FLOWS = Path(__file__).parent / "run_flows.py"
LIVE_STEPS = 50 if FULL else 1
SAME_SERVER_MS, OTHER_SERVER_MS = 300, 1_500
_SEEN_AT = """async (key) => {
    const find = () => document.querySelector(`[role=row][data-key="${key}"][data-state="completed"]`);
    while (!find()) await new Promise((resolve) => setTimeout(resolve, 5));
    return Date.now();
}"""


@pytest.fixture(scope="module")
def shop(dashboard: Dashboard) -> Iterator[Dashboard]:
    """With a worker for the workflows of run_flows.py."""
    worker = dashboard.worker(flows=FLOWS)
    yield dashboard
    worker.close()


def test_05_a_step_appears_without_a_reload_in_the_same_row(dashboard: Dashboard, page: Page) -> None:
    run_id = dashboard.start("gated", 2)
    dashboard.reached(run_id, {"awaits_signal": 1})
    open_run(page, dashboard, run_id)
    expect(row(page, "go")).to_have_attribute("data-state", "waiting")
    page.evaluate("() => { window.was = document.querySelector('[data-key=\"go\"]'); }")
    dashboard.signal(run_id, "go")
    expect(row(page, "go")).to_have_attribute("data-state", "completed")
    expect(row(page, "part-0")).to_have_attribute("data-state", "completed")
    assert page.evaluate("() => window.was === document.querySelector('[data-key=\"go\"]')")  # no reload, and the same
    expect(row(page, "go#2")).to_have_attribute("data-state", "waiting")
    dashboard.signal(run_id, "go")
    expect(page.locator(".run-state")).to_have_text("completed")
    expect(row(page, "part-1")).to_have_attribute("data-state", "completed")


def test_05_a_step_appears_on_another_server(postgres_dashboard: Dashboard, page: Page) -> None:
    """How soon is measured in the campaign."""
    worked = postgres_dashboard
    with Dashboard(worked.database, worked.directory, worker=False) as other:
        shown = {"same": (worked, SAME_SERVER_MS), "other": (other, OTHER_SERVER_MS)}
        for name, (server, limit) in shown.items() if FULL else [("other", shown["other"])]:
            times = _times_to_the_row(worked, server, page)
            page.goto("about:blank")  # before its server is gone
            if FULL:
                p95 = percentile(times, 95)
                Figures("run-page").put(f"a step to its row, {name} server", {"p95 ms": round(p95)})
                assert p95 <= limit


def _times_to_the_row(worked: Dashboard, shown: Dashboard, page: Page) -> list[float]:
    """In milliseconds, from the end of a step."""
    run_id = worked.start("gated", LIVE_STEPS)
    worked.reached(run_id, {"awaits_signal": 1})
    open_run(page, shown, run_id)
    times: list[float] = []
    for number in range(LIVE_STEPS):
        worked.signal(run_id, "go")
        seen: float = page.evaluate(_SEEN_AT, f"part-{number}")
        ended = worked.get(f"/runs/{run_id}/step", id=f"part-{number}")["finished_at"]
        times.append(seen - datetime.fromisoformat(ended).timestamp() * 1_000)
    return times


def test_times_follow_the_zone_and_the_trace_is_shown(dashboard: Dashboard, page: Page) -> None:
    trace = "0af7651916cd43dd8448eb211c80319c"
    context = {"traceparent": f"00-{trace}-b7ad6b7169203331-01"}
    run_id = dashboard.start("sleeping", "1h", context=context)
    dashboard.reached(run_id, {"status": "sleeping"})
    open_run(page, dashboard, run_id)
    expect(page.locator(".run-trace")).to_contain_text("trace 0af76519…319c")
    sentence = page.locator(".why-text")
    expect(sentence.locator("time").first).to_be_visible()
    expect(sentence).not_to_contain_text(re.compile(r"\dT\d\d:"))


def test_10_a_step_that_waits_for_its_next_attempt(dashboard: Dashboard, page: Page) -> None:
    run_id = dashboard.start("retrying")
    dashboard.reached(run_id, {"status": "sleeping", "retrying_steps": 1})
    step = until(
        lambda: dashboard.get(f"/runs/{run_id}/step", id="charge-card"), lambda step: len(step["attempts"]) == 2
    )
    open_run(page, dashboard, run_id)
    expect(parts(page, "charge-card", "attempt")).to_have_count(2)
    for attempt in parts(page, "charge-card", "attempt").all():
        expect(attempt).to_have_attribute("data-state", "failed")
    expect(parts(page, "charge-card", "backoff")).to_have_count(2)
    expect(row(page, "charge-card").locator(".mark-next")).to_have_count(1)
    expect(row(page, "charge-card").locator(".row-note")).to_have_text(re.compile(r"^attempt 3 of 5 in "))
    expect(page.locator(".run-facts")).to_contain_text("1 failing step")
    countdown = page.locator(".why .countdown")
    shown_at = datetime.fromisoformat(countdown.get_attribute("data-until") or "")
    assert abs((shown_at - datetime.fromisoformat(step["retry_at"])).total_seconds()) < 0.001
    left = (shown_at - datetime.now(UTC)).total_seconds()
    units = {"h": 3_600, "m": 60, "s": 1}
    shown = sum(int(count) * units[unit] for count, unit in re.findall(r"(\d+)([hms])", countdown.inner_text()))
    assert left - 1 <= shown <= left + 30  # a loaded machine reads it late

    page.get_by_role("button", name="Retry now…").first.click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(run_id)
    expect(dialog).to_contain_text("charge-card")
    in_dialog(page, "Retry now")
    expect(parts(page, "charge-card", "attempt")).to_have_count(3)
    assert len(dashboard.get(f"/runs/{run_id}/step", id="charge-card")["attempts"]) == 3


def test_a_signal_is_sent_as_it_is_typed(dashboard: Dashboard, page: Page) -> None:
    run_id = dashboard.start("waiting")
    dashboard.reached(run_id, {"awaits_signal": 1})
    open_run(page, dashboard, run_id)
    page.get_by_role("button", name="Send the signal…").click()
    typed = '{"id": 1970670598291982290, "x": 0.10, "a": 1, "a": 2}'
    page.get_by_role("dialog").get_by_label("Value (JSON)").fill(typed)
    in_dialog(page, "Send")
    expect(page.locator(".run-state")).to_have_text("completed")
    assert typed in dashboard.api.get(f"/runs/{run_id}/step", params={"id": "go"}).text


def test_pause_and_cancel_say_what_they_touch_and_act_once(dashboard: Dashboard, page: Page) -> None:
    run_id = dashboard.start("sleeping", "1h")
    dashboard.reached(run_id, {"status": "sleeping"})
    open_run(page, dashboard, run_id)
    page.get_by_role("button", name="Pause…").click()
    expect(page.get_by_role("dialog")).to_contain_text(run_id)
    page.keyboard.press("Escape")
    assert dashboard.run(run_id)["status"] == "sleeping"
    page.get_by_role("button", name="Pause…").click()
    in_dialog(page, "Pause")
    expect(page.locator(".run-state")).to_have_text("paused")
    page.get_by_role("button", name="Resume…").first.click()
    in_dialog(page, "Resume")
    expect(page.locator(".run-state")).not_to_have_text("paused")
    page.get_by_role("button", name="Cancel…").click()
    page.get_by_role("dialog").get_by_label("Reason").fill("not wanted")
    in_dialog(page, "Cancel the run")
    expect(page.locator(".run-state")).to_have_text("cancelled")
    expect(page.locator(".why")).to_contain_text("not wanted")


def test_a_failed_run_says_why_and_is_rerun_from_there(dashboard: Dashboard, page: Page) -> None:
    run_id = dashboard.start("broken", "the card was declined")
    dashboard.ended(run_id)
    open_run(page, dashboard, run_id)
    expect(page.locator(".why-error")).to_contain_text("the card was declined")
    expect(page.locator(".why-frame")).to_contain_text("flows.py")
    page.get_by_role("button", name="Rerun from the failure…").click()
    in_dialog(page, "Rerun")
    until(lambda: dashboard.run(run_id)["last_seq"], lambda seq: seq > 4)
    expect(page.locator(".run-state")).to_have_text("failed")


def test_13_children_open_in_place_and_by_link(shop: Dashboard, page: Page) -> None:
    run_id = shop.start("generations", 100)
    shop.ended(run_id)
    open_run(page, shop, run_id)
    child = row(page, "child")
    child.locator(".row-toggle").click()
    inner = page.locator('[role=row][aria-level="2"][data-key$=":grandchild"]')
    expect(inner).to_be_visible()
    inner.locator(".row-toggle").click()
    deepest = page.locator('[role=row][aria-level="3"][data-key$=":deepest"]')
    deepest.click()
    expect(page.locator(".inspector h2")).to_have_text("deepest")
    link = page.url
    page.get_by_role("link", name="Open run").click()
    expect(page.locator("h1")).to_have_text("grandchild")
    page.go_back()
    expect(page.locator("h1")).to_have_text("generations")
    expect(deepest).to_have_attribute("aria-selected", "true")
    other = page.context.new_page()
    other.goto(link)
    expect(other.locator('[role=row][aria-level="3"][data-key$=":deepest"]')).to_have_attribute("aria-selected", "true")
    expect(other.locator(".inspector h2")).to_have_text("deepest")
    other.close()

    folded = page.locator("[role=row][aria-expanded=false]", has_text="100")
    folded.locator(".row-toggle").click()
    expect(page.locator('[role=row][aria-level="2"]')).to_have_count(102)
    last = page.locator('[role=row][aria-level="2"]').last
    last.locator(".row-toggle").click()
    expect(page.locator('[role=row][aria-level="3"]')).to_have_count(2)


def test_18_attempts_and_logs(shop: Dashboard, page: Page) -> None:
    run_id = shop.start("charging")
    shop.ended(run_id)
    open_run(page, shop, run_id, "?step=charge-card&tab=attempts")
    for attempt in (1, 2):
        page.get_by_role("checkbox", name=f"Compare attempt {attempt}").check()
    diff = page.get_by_role("region", name="Difference", exact=True)
    expect(diff.locator(".diff-removed", has_text="ConnectionError: no route to the bank")).to_have_count(1)
    expect(diff.locator(".diff-added", has_text="ConnectionError: no money there")).to_have_count(1)
    arguments = page.get_by_role("region", name="Difference of the arguments")
    expect(arguments.locator(".diff-same", has_text='"book"')).to_have_count(1)
    expect(arguments.locator(".diff-added", has_text='"attempt 2"')).to_have_count(1)
    page.get_by_role("checkbox", name="Compare attempt 3").check()
    expect(page.get_by_text("Those of attempt 3 are not recorded, or equal to")).to_be_visible()
    page.get_by_role("button", name="ConnectionError: no route to the bank").click()
    expect(page.get_by_text("Arguments", exact=True)).to_have_count(2)
    page.get_by_role("tab", name="Logs").click()
    expect(page.locator(".log-lines li")).to_have_count(15)
    assert [each.inner_text() for each in page.locator(".log-text").all()] == [
        f"line {number} of the log" for _ in range(3) for number in range(5)
    ]


def test_18_attempts_of_before_a_retry_are_told_apart(dashboard: Dashboard, page: Page) -> None:
    history = Recorded()
    history.failed("charge", 1, 0, SECOND, SECOND, forgotten=9, input={"json": {"amount": 5}})
    history.failed("charge", 1, 2 * SECOND, 3 * SECOND, 3 * SECOND, input={"json": {"amount": 6}})
    history.step("charge", 4 * SECOND, 5 * SECOND, attempt=2)
    open_run(page, dashboard, add(dashboard, history), "?step=charge&tab=attempts")
    expect(page.locator(".attempts tbody tr", has_text="before the retry")).to_have_count(1)
    page.get_by_role("checkbox", name="Compare attempt 1 before the retry").check()
    page.get_by_role("checkbox", name="Compare attempt 1", exact=True).check()
    expect(page.get_by_role("heading", name="Compare attempt 1 before the retry and attempt 1")).to_be_visible()
    arguments = page.get_by_role("region", name="Difference of the arguments")
    expect(arguments.locator(".diff-removed", has_text='"amount": 5')).to_have_count(1)
    expect(arguments.locator(".diff-added", has_text='"amount": 6')).to_have_count(1)


def test_18_a_long_traceback_is_whole(dashboard: Dashboard, page: Page) -> None:
    frames = [
        f'  File "/app/shop/f{number}.py", line {number}, in f{number}\n    call({number})' for number in range(50)
    ]
    library = '  File "/usr/lib/python3.11/site-packages/bank/client.py", line 7, in send\n    raise error'
    traceback = "\n".join(["Traceback (most recent call last):", *(f"{frame}\n{library}" for frame in frames), ""])
    history = Recorded()
    history.step("charge", 0, SECOND, status="failed", error={**ERROR, "traceback": traceback})
    open_run(page, dashboard, add(dashboard, history), "?step=charge")
    shown = page.locator(".inspector .traceback")
    expect(shown).to_be_visible()
    shown.locator("summary").first.click()
    expect(shown.get_by_text("client.py").first).to_be_visible()
    text = shown.evaluate(
        "pre => { const all = pre.cloneNode(true); all.querySelectorAll('summary').forEach((each) => each.remove()); "
        "return all.textContent; }"
    )
    assert len(traceback.splitlines()) >= 200
    assert text.splitlines() == traceback.splitlines()
    assert shown.locator(".frame-own").count() == 50

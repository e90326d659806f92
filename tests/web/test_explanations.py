"""Why a run is where it is: for every reason that there is, its page shows the sentence and what to do about it."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from playwright.sync_api import Locator, Page, Route, expect

import kagzi
from tests.support.kagzi_process import RunningCommand
from tests.web.dashboard import Dashboard, until
from tests.web.test_runs import namespace_of

FLOWS = Path(__file__).parent / "explained_flows.py"
NAMESPACE = "explained"
REASONS = (r'reason="([a-z_]+)"', r'LimitReason\(\s*"([a-z_]+)"', r'reason="[a-z_]+" if .* else "([a-z_]+)"')
SILENT = {"running", "completed", "about_to_be_taken"}
"""It simply runs, or has completed: there is nothing to explain."""


class Runs:
    """`start`: a run in the namespace, which has a worker with three slots, and one for `explained_flows`."""

    def __init__(self, dashboard: Dashboard) -> None:
        self.dashboard = dashboard
        self.over_limit = ""

    def start(self, workflow: str, input: Any = None, **fields: Any) -> str:
        return self.dashboard.start(workflow, input, namespace=NAMESPACE, **fields)

    def request(self, path: str, **body: Any) -> None:
        answer = self.dashboard.api.post(path, json=body, params={"namespace": NAMESPACE})
        assert answer.status_code == 200, answer.text

    def limit(self, workflow: str, **limits: Any) -> None:
        answer = self.dashboard.api.patch(f"/workflows/{workflow}", json=limits, params={"namespace": NAMESPACE})
        assert answer.status_code == 200, answer.text

    def explained(self, run_id: str, reason: str) -> dict[str, Any]:
        explain = lambda: self.dashboard.get(f"/runs/{run_id}/explain", namespace=NAMESPACE)  # noqa: E731
        return until(explain, lambda explanation: explanation["reason"] == reason)

    def error_of(self, run_id: str) -> str:
        """Of a failed run; else empty."""
        run = self.dashboard.get(f"/runs/{run_id}", namespace=NAMESPACE)
        return run["error"]["text"] if run["status"] == "failed" else ""

    def paused_run(self) -> str:
        run_id = self.start("waiting")
        self.explained(run_id, "waiting_for_signal")
        self.request(f"/runs/{run_id}/pause", reason="stock-taking")
        return run_id

    def adopted(self) -> str:
        run_id = self.start("waiting")
        self.explained(run_id, "waiting_for_signal")
        self.request(f"/runs/{run_id}/adopt", build_id="repaired")
        self.dashboard.signal(run_id, "go", namespace=NAMESPACE)
        return run_id

    def pausing(self) -> str:
        """One of those that have taken the slots."""
        runs = self.dashboard.get("/runs", namespace=NAMESPACE, workflow="slow", status="running")["rows"]
        run_id = runs[0]["run_id"]
        self.request(f"/runs/{run_id}/pause", reason="stock-taking")
        return run_id

    def terminated(self, run_id: str) -> str:
        self.request(f"/runs/{run_id}/terminate", reason="done with")
        return run_id

    def cancelled(self) -> str:
        run_id = self.start("echo", 1, delay="1h")
        self.request(f"/runs/{run_id}/cancel", reason="done with")
        return run_id

    def waiting_parent(self) -> str:
        run_id = self.start("parent")
        self.dashboard.reached(run_id, {"status": "sleeping"}, namespace=NAMESPACE)
        return run_id

    def behind_another(self) -> str:
        """The second run of a schedule, while the first one is there."""
        body = {"schedule": "one-by-one", "workflow": "patient", "cron": "0 3 1 1 *", "overlap": "buffer_one"}
        answer = self.dashboard.api.post("/schedules", json=body, params={"namespace": NAMESPACE})
        assert answer.status_code in (200, 201), answer.text
        for _ in range(2):
            self.request("/schedules/one-by-one/trigger")
        runs = self.dashboard.get("/runs", namespace=NAMESPACE, schedule="one-by-one")["rows"]
        assert len(runs) == 2
        return runs[0]["run_id"]

    def retried_as_a_whole(self) -> str:
        policy = {"maximum_attempts": 3, "initial_interval_ms": 3_600_000, "maximum_interval_ms": 3_600_000}
        return self.start("hopeless", retry=policy)

    def diverged(self) -> str:
        run_id = self.start("fickle")
        self.explained(run_id, "failed")
        self.request(f"/runs/{run_id}/retry")
        return run_id

    def misfit(self) -> str:
        run_id = self.start("dated")
        self.explained(run_id, "waiting_for_signal")
        self.dashboard.signal(run_id, "day", "some day", namespace=NAMESPACE)
        return run_id

    def being_cancelled(self) -> str:
        run_id = self.start("tidying")
        self.explained(run_id, "waiting_for_signal")
        self.request(f"/runs/{run_id}/cancel", reason="done with")
        until(lambda: self.explained(run_id, "cancel_requested"), lambda why: "in step tidy" in why["sentence"])
        return run_id

    def without_a_worker_that_stays(self) -> str:
        """The worker that serves it has a run to clean up, and an hour for it."""
        (worker,) = self.dashboard.get("/workers", namespace=NAMESPACE, workflow="tidying")["rows"]
        self.request(f"/workers/{worker['worker_id']}/drain")
        return self.start("continuing", 0)

    def over_type_limit(self) -> str:
        self.limit("steps", max_running=1, max_running_per_key=None)
        self.start("steps", 1, delay="1h")  # so that the type is known
        running = self.start("slow", 3_600)
        self.explained(running, "running")
        self.limit("slow", max_running=1)
        self.over_limit = self.start("slow", 3_600)
        return self.over_limit

    def over_key_limit(self) -> str:
        self.limit("slow", max_running=None, max_running_per_key=1)
        self.explained(self.over_limit, "running")
        self.explained(self.start("slow", 3_600, concurrency_key="tenant"), "running")
        return self.start("slow", 1, concurrency_key="tenant")

    def over_rate_limit(self) -> str:
        self.limit("hello", starts_per_second=0.001)
        self.start("hello", "a")
        return self.start("hello", "b")

    def of_paused_type(self) -> str:
        self.limit("order", paused=True)
        return self.start("order", {"order_id": 1, "total": 1.0, "to": {"street": "x"}})


REAL: dict[str, Callable[[Runs], str]] = {
    "no_worker": lambda runs: runs.start("delivery"),
    "no_worker_for_version": lambda runs: runs.start("echo", 1, version="99"),
    "no_worker_for_build": Runs.adopted,
    "delayed_start": lambda runs: runs.start("echo", 1, delay="1h"),
    "sleeping": lambda runs: runs.start("sleeping", "1h"),
    "waiting_for_signal": lambda runs: runs.start("waiting"),
    "waiting_for_retry": lambda runs: runs.start("retrying"),
    "paused": Runs.paused_run,
    "failed": lambda runs: runs.start("broken", "no bread"),
    "timed_out": lambda runs: runs.start("waiting", timeout="100ms"),
    "terminated": lambda runs: runs.terminated(runs.start("waiting")),
    "cancelled": Runs.cancelled,
    "rate_limit": Runs.over_rate_limit,
    "type_paused": Runs.of_paused_type,
    "waiting_for_child": Runs.waiting_parent,
    "waiting_for_run": Runs.behind_another,
    "waiting_for_run_retry": Runs.retried_as_a_whole,
    "continued": lambda runs: runs.start("continuing", 1),
    "diverged": Runs.diverged,
    "signal_does_not_fit": Runs.misfit,
    "cancel_requested": Runs.being_cancelled,
    "workers_draining": Runs.without_a_worker_that_stays,
    # these take the slots, and come last
    "type_limit": Runs.over_type_limit,
    "key_limit": Runs.over_key_limit,
    "waiting_for_slot": lambda runs: runs.start("echo", 1),
    "pause_requested": Runs.pausing,
}
"""How a run gets there."""


class FakeExplanation(NamedTuple):
    """An explanation of a run that a test cannot bring there in a moment: said by the test, in the engine's words."""

    sentence: str
    remedy: str
    facts: dict[str, str]
    button: str | None


FAKES = {
    "delivering": FakeExplanation(
        "It is on its way to worker 3f2a, which has not received it after 40 s: the connection is slow, or much else "
        "is sent before it.",
        "Check the connection from the server to the worker.",
        {"delivering_s": "40"},
        None,
    ),
    "quarantined": FakeExplanation(
        "It is quarantined: it lost 10 workers.", "Find out why it kills its workers.", {}, "Resume…"
    ),
}
BUTTONS = {
    "cancel_requested": "Terminate…",
    "waiting_for_child": "Open the child",
    "waiting_for_run": "Open that run",
    "waiting_for_run_retry": "Retry now…",
    "continued": "Open the next run",
    "diverged": "Resume…",
    "waiting_for_signal": "Send the signal…",
    "waiting_for_retry": "Retry now…",
    "delayed_start": "Start now…",
    "sleeping": "Wake now…",
    "paused": "Resume…",
    "failed": "Rerun from the failure…",
    "timed_out": "Rerun from the failure…",
}
"""What the page can do about it. About the others there is nothing to do, or it is done elsewhere."""


def known_reasons() -> set[str]:
    folder = Path(kagzi.__file__).parent / "engine" / "services" / "explain"
    texts = [path.read_text() for path in folder.glob("*.py")]
    return {word for text in texts for pattern in REASONS for word in re.findall(pattern, text)}


def test_12_every_reason_is_looked_at() -> None:
    assert {*REAL, *FAKES, *SILENT} == known_reasons()


TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+(?:Z|\+00:00)")


def banner(page: Page) -> Locator:
    return page.get_by_role("region", name="Why the run is in this state")


def checked(page: Page, explanation: dict[str, Any], error: str) -> None:
    """`error`: of a failed run. It is shown once: above the sentence, which leaves it out."""
    expect(banner(page).locator(".why-error")).to_have_text([error] if error else [])
    sentence = explanation["sentence"]
    if error:
        sentence = sentence.replace(f": {error.rstrip('.')}", "")
    in_any_zone = ".+".join(map(re.escape, TIME.split(sentence)))
    expect(banner(page)).to_contain_text(re.compile(in_any_zone))
    buttons = banner(page).get_by_role("button").or_(banner(page).get_by_role("link"))
    if explanation["remedy"]:
        expect(banner(page).get_by_text(explanation["remedy"]).or_(buttons).first).to_be_visible()


@pytest.fixture(scope="module")
def runs(dashboard: Dashboard) -> Runs:
    namespace_of(dashboard, NAMESPACE)
    worker: RunningCommand = dashboard.worker("-n", NAMESPACE, "--max-concurrent", "3")
    seldom = dashboard.worker("-n", NAMESPACE, flows=FLOWS)
    assert worker is not seldom
    return Runs(dashboard)


def test_12_every_reason_is_shown_with_its_sentence_and_remedy(runs: Runs, page: Page) -> None:
    for reason, make in REAL.items():
        run_id = make(runs)
        explanation = runs.explained(run_id, reason)
        page.goto(f"{runs.dashboard.url}runs/{run_id}?namespace={NAMESPACE}")
        checked(page, explanation, runs.error_of(run_id))
        if reason in BUTTONS:
            expect(banner(page).get_by_text(BUTTONS[reason], exact=True)).to_be_visible()
    run_id = runs.dashboard.start("waiting")
    runs.dashboard.reached(run_id, {"awaits_signal": 1})
    for reason, fake in FAKES.items():
        answer = {"run_id": run_id, "reason": reason, **fake._asdict()}
        page.route("**/explain*", answering(answer))
        page.goto(f"{runs.dashboard.url}runs/{run_id}")
        checked(page, answer, "")
        if fake.button:
            expect(banner(page).get_by_text(fake.button, exact=True)).to_be_visible()
        page.unroute("**/explain*")


def answering(answer: dict[str, Any]) -> Callable[[Route], None]:
    return lambda route: route.fulfill(json=answer)


def act(page: Page, button: str, confirm: str) -> None:
    banner(page).get_by_role("button", name=button).click()
    page.get_by_role("dialog").get_by_role("button", name=confirm, exact=True).click()
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_12_the_remedies_that_are_buttons_work(dashboard: Dashboard, page: Page) -> None:
    def open_page(run_id: str) -> None:
        page.goto(f"{dashboard.url}runs/{run_id}")

    run_id = dashboard.start("echo", "later", delay="1h")
    open_page(run_id)
    act(page, "Start now…", "Retry now")
    assert dashboard.ended(run_id)["output"] == "later"

    run_id = dashboard.start("retrying")
    dashboard.reached(run_id, {"status": "sleeping", "retrying_steps": 1})
    attempt = dashboard.get(f"/runs/{run_id}/step", id="charge-card")["attempt"]
    open_page(run_id)
    act(page, "Retry now…", "Retry now")
    until(lambda: dashboard.get(f"/runs/{run_id}/step", id="charge-card")["attempt"], lambda now: now > attempt)

    run_id = dashboard.start("waiting")
    dashboard.reached(run_id, {"awaits_signal": 1})
    dashboard.api.post(f"/runs/{run_id}/pause", json={})
    dashboard.reached(run_id, {"status": "paused"})
    open_page(run_id)
    act(page, "Resume…", "Resume")
    dashboard.reached(run_id, {"status": "sleeping"})
    act(page, "Send the signal…", "Send")
    assert dashboard.ended(run_id)["status"] == "completed"

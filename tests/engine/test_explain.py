"""One sentence says why a run is where it is, a word says it to programs, and where something can be done it is said
what."""

from typing import Any

import msgspec
import pytest

from kagzi.core.error_details import ErrorDetail, ErrorKind
from kagzi.core.records import ClaimedRun, Explanation, Payload, RunKey
from kagzi.core.retry.policy import RetryPolicy
from kagzi.core.run.commands import (
    BeginSleep,
    BeginStep,
    CompleteRun,
    FailRun,
    FailStep,
    Park,
    PauseDiverged,
    StartChild,
    StartRun,
    WaitSignal,
)
from kagzi.engine import Engine, Session
from kagzi.store.protocol import LeaseTerms
from kagzi.system import SystemIds
from tests.engine.fakes import MovableClock, RecordingOutlet, TroubledStore, complete, leased, start, worker


class Scene:
    """A worker with one run in its hands."""

    def __init__(self, engine: Engine, outlet: RecordingOutlet, session: Session, run: ClaimedRun) -> None:
        self.engine = engine
        self.outlet = outlet
        self.session = session
        self.run = run
        self._operations = 0

    @property
    def leased(self) -> dict[str, Any]:
        return {"run": self.run.run, "lease": self.run.lease}

    async def do(self, *commands: Any) -> None:
        for command in commands:
            self._operations += 1
            await self.session.submit([(self._operations, command)])
            answer = await self.outlet.answer_to(self._operations)
            assert not hasattr(answer, "error"), answer

    async def park(self, *waits: str) -> None:
        await self.do(Park(**self.leased, waits=waits, known_seq=99))

    async def explain(self) -> Explanation:
        return await self.engine.explanations.explain("default", run_id=self.run.run.run_id)


@pytest.fixture
async def scene(engine: Engine) -> Scene:
    outlet = RecordingOutlet()
    session = await engine.sessions.open(worker("hello", slots=1), (), outlet)
    await engine.runs.start(start())
    (run,) = await outlet.until_received(1)
    session.received([leased(run)])
    return Scene(engine, outlet, session, run)


# --- waiting for a worker ---------------------------------------------------------------------------------------------


async def test_no_worker_serves_the_type(engine: Engine) -> None:
    started = await engine.runs.start(start("lonely"))
    explained = await engine.explanations.explain("default", run_id=started.run_id)
    assert explained.reason == "no_worker"
    assert explained.sentence == "It waits for a worker: none is connected that serves lonely."
    assert "lonely" in explained.remedy
    assert explained.facts["status"] == "pending"


async def test_no_worker_serves_the_version(engine: Engine, scene: Scene) -> None:
    started = await engine.runs.start(start(version="9"))
    explained = await engine.explanations.explain("default", run_id=started.run_id)
    assert explained.reason == "no_worker_for_version"
    assert "version 9 of hello" in explained.sentence
    assert explained.facts["versions_served"] == "1"


async def test_every_slot_is_taken(engine: Engine, scene: Scene) -> None:
    started = await engine.runs.start(start(workflow_id="second"))
    explained = await engine.explanations.explain("default", workflow_id="second")
    assert explained.reason == "waiting_for_slot"
    assert explained.facts["run_id"] == started.run_id
    assert "of 1 slots" in explained.sentence


async def test_a_slot_in_use_counts_at_once(engine: Engine, scene: Scene) -> None:
    """What a worker said with its last heartbeat is seconds old; what it holds is known here."""
    await engine.runs.start(start(workflow_id="second"))
    explained = await engine.explanations.explain("default", workflow_id="second")
    assert "1 of 1 slots in use" in explained.sentence


async def test_a_wait_for_a_worker_is_shown_while_it_lasts_and_afterwards(
    engine: Engine, scene: Scene, clock: MovableClock
) -> None:
    started = await engine.runs.start(start(workflow_id="second"))
    clock.ahead_us += 149_000_000
    waiting = await engine.explanations.explain("default", workflow_id="second")
    assert "It has been waiting for 2m 29s." in waiting.sentence
    assert "ready_at" in waiting.facts
    await scene.do(CompleteRun(**scene.leased, output=Payload(b"1")))
    await scene.outlet.until_received(2)
    running = await engine.explanations.explain("default", run_id=started.run_id)
    assert running.sentence.endswith("It waited 2m 29s for workers.")
    assert 149 <= float(running.facts["queued_s"]) < 150


async def test_nobody_waits_for_a_slot_while_there_is_one(engine: Engine, store: TroubledStore) -> None:
    """A worker that was heard of lately, but is not here to take it."""
    await engine.workers.register(worker("hello", slots=100))
    started = await engine.runs.start(start())
    explained = await engine.explanations.explain("default", run_id=started.run_id)
    assert explained.reason == "about_to_be_taken"
    assert (
        explained.sentence == "It is about to be claimed: 1 worker serving hello version 1 has 100 of 100 slots free."
    )
    assert explained.facts["last_heartbeat_at"] in explained.remedy


async def test_a_name_like_one_that_is_served(engine: Engine, scene: Scene) -> None:
    started = await engine.runs.start(start("helo"))
    explained = await engine.explanations.explain("default", run_id=started.run_id)
    assert explained.sentence.endswith("none is connected that serves helo. Did you mean 'hello'?")
    assert explained.facts["similar_workflow"] == "hello"


async def test_a_delayed_start(engine: Engine) -> None:
    started = await engine.runs.start(start(delay_us=60_000_000))
    explained = await engine.explanations.explain("default", run_id=started.run_id)
    assert explained.reason == "delayed_start"
    assert "it starts at 20" in explained.sentence


# --- in a worker's hands ----------------------------------------------------------------------------------------------


async def test_the_worker_and_the_step_are_named(scene: Scene) -> None:
    await scene.do(BeginStep(**scene.leased, step_id="charge", name="charge"))
    explained = await scene.explain()
    assert explained.reason == "running"
    assert scene.session.worker_id in explained.sentence
    assert "in step charge (attempt 1)" in explained.sentence
    assert explained.facts["steps"] == "charge"


async def test_a_worker_that_took_over_is_not_reported_to_have_begun_it(scene: Scene, clock: MovableClock) -> None:
    run_id = scene.run.run.run_id
    began = (await scene.explain()).facts["started_at"]
    await scene.engine.workers.leave("default", scene.session.worker_id)
    clock.ahead_us += 5_000_000
    second = await scene.engine.sessions.open(worker("hello", slots=1), (), outlet := RecordingOutlet())
    await outlet.until_received(1)
    explained = await scene.engine.explanations.explain("default", run_id=run_id)
    assert explained.sentence.startswith(f"It runs on worker {second.worker_id}; it began at {began}.")


async def test_an_attempt_that_was_lost_with_its_worker(scene: Scene, clock: MovableClock) -> None:
    await scene.do(BeginStep(**scene.leased, step_id="charge", name="charge"))
    await scene.session.close()
    await scene.engine.workers.died([("default", scene.run.worker_id)])
    scene.engine._timers.poll_soon()
    other = RecordingOutlet()
    session = await scene.engine.sessions.open(worker("hello", slots=1, worker_id="worker-2"), (), other)
    (again,) = await other.until_received(1)
    assert again.run == scene.run.run
    explained = await scene.explain()
    words = f"Attempt 1 of step charge was lost with worker {scene.run.worker_id}, noticed at "
    assert words in explained.sentence
    assert explained.sentence.endswith("and is to begin again.")
    assert explained.facts["lost_attempts"] == "1"

    clock.ahead_us += 1
    begin = BeginStep(run=again.run, lease=again.lease, step_id="charge", name="charge")
    await session.submit([(1, begin)])
    await other.answer_to(1)
    assert (await scene.explain()).sentence.endswith("and runs again.")


async def test_a_cancellation_or_pause_under_way(scene: Scene) -> None:
    run_id = scene.run.run.run_id
    await scene.engine.control.pause("default", run_id=run_id, reason="lunch")
    explained = await scene.explain()
    assert explained.reason == "pause_requested"
    assert "(lunch)" in explained.sentence
    await scene.engine.control.cancel("default", run_id=run_id, reason="too dear")
    explained = await scene.explain()
    assert explained.reason == "cancel_requested"
    assert "too dear" in explained.sentence


# --- waiting for something --------------------------------------------------------------------------------------------


async def test_a_sleep(scene: Scene) -> None:
    await scene.do(BeginSleep(**scene.leased, step_id="nap", name="nap", duration_us=60_000_000))
    await scene.park("nap")
    explained = await scene.explain()
    assert explained.reason == "sleeping"
    assert explained.sentence.startswith("It sleeps until 20")
    assert explained.sentence.endswith("in step nap.")


async def test_a_signal_and_how_to_send_it(scene: Scene) -> None:
    await scene.do(WaitSignal(**scene.leased, step_id="approved#2", signal_name="approved"))
    await scene.park("approved#2")
    explained = await scene.explain()
    assert explained.reason == "waiting_for_signal"
    assert explained.sentence == "It waits for the signal 'approved' in step approved#2."
    assert explained.remedy == f"Send it: kagzi signal {scene.run.run.run_id} approved VALUE"


async def test_a_command_to_copy_is_quoted(scene: Scene) -> None:
    """The name is whatever a workflow says."""
    name = "x; $(touch /tmp/x)"
    await scene.do(WaitSignal(**scene.leased, step_id=name, signal_name=name))
    await scene.park(name)
    explained = await scene.explain()
    assert explained.remedy == f"Send it: kagzi signal {scene.run.run.run_id} '{name}' VALUE"


async def test_several_waits_at_once(scene: Scene) -> None:
    await scene.do(
        WaitSignal(**scene.leased, step_id="approved", signal_name="approved"),
        BeginSleep(**scene.leased, step_id="nap", name="nap", duration_us=60_000_000),
    )
    await scene.park("approved", "nap")
    explained = await scene.explain()
    assert explained.reason == "sleeping"  # the nearest
    assert explained.sentence.endswith(", and for 1 other thing.")
    assert explained.facts["waits"] == "nap, approved"


async def test_a_child(scene: Scene) -> None:
    begun = StartRun(run=RunKey("default", ""), workflow_id="", workflow_type="bill", request_id="", on_conflict="fail")
    await scene.do(StartChild(**scene.leased, step_id="bill", name="bill", start=begun))
    await scene.park("bill")
    explained = await scene.explain()
    assert explained.reason == "waiting_for_child"
    assert explained.facts["child_run_id"] in explained.sentence
    assert explained.facts["child_run_id"] in explained.remedy
    assert explained.sentence.endswith("The child waits for a worker: none is connected that serves bill.")


async def test_a_retry_of_a_step_with_its_last_failure(scene: Scene) -> None:
    policy = RetryPolicy(
        maximum_attempts=5, initial_interval_ms=60_000, backoff_coefficient=1.0, maximum_interval_ms=60_000, jitter=0.0
    )
    await scene.do(
        BeginStep(**scene.leased, step_id="call", name="call", retry=policy),
        FailStep(**scene.leased, step_id="call", attempt=1, error=ErrorDetail(type="OSError", message="no route")),
    )
    await scene.park("call")
    explained = await scene.explain()
    assert explained.reason == "waiting_for_retry"
    assert "retry step call: attempt 2 of 5 at 20" in explained.sentence
    assert "OSError: no route" in explained.sentence


async def test_a_retry_of_the_whole_run(engine: Engine) -> None:
    outlet = RecordingOutlet()
    session = await engine.sessions.open(worker("hello"), (), outlet)
    policy = RetryPolicy(
        maximum_attempts=3, initial_interval_ms=60_000, backoff_coefficient=1.0, maximum_interval_ms=60_000, jitter=0.0
    )
    await engine.runs.start(start(retry=policy))
    (run,) = await outlet.until_received(1)
    await session.submit([(1, FailRun(run=run.run, lease=run.lease, error=ErrorDetail(type="OSError", message="no")))])
    await outlet.answer_to(1)
    explained = await engine.explanations.explain("default", run_id=run.run.run_id)
    assert explained.reason == "waiting_for_run_retry"
    assert "attempt 2 of 3 at 20" in explained.sentence


async def test_behind_another_run(engine: Engine, store: TroubledStore, clock: MovableClock) -> None:
    first = await engine.runs.start(start())
    key = RunKey("default", SystemIds().run_id(clock.now(), "default"))
    behind = StartRun(
        run=key, workflow_id="second", workflow_type="hello", request_id="second", blocked_by=first.run_id
    )
    now = clock.now()
    await store.write([behind], now, LeaseTerms(now, now))
    explained = await engine.explanations.explain("default", run_id=key.run_id)
    assert explained.reason == "waiting_for_run"
    assert first.run_id in explained.sentence


# --- paused and ended -------------------------------------------------------------------------------------------------


async def test_paused_by_somebody(engine: Engine) -> None:
    started = await engine.runs.start(start())
    await engine.control.pause("default", run_id=started.run_id)
    explained = await engine.explanations.explain("default", run_id=started.run_id)
    assert explained.reason == "paused"
    assert f"kagzi resume {started.run_id}" in explained.remedy
    assert explained.sentence == "It was paused."
    await engine.control.resume("default", run_id=started.run_id)
    await engine.control.pause("default", run_id=started.run_id, reason="the bank is closed.")
    explained = await engine.explanations.explain("default", run_id=started.run_id)
    assert explained.sentence == "It was paused: the bank is closed."
    assert explained.facts["pause_reason"] == "the bank is closed."


async def test_paused_because_the_code_does_not_fit(scene: Scene) -> None:
    problem = ErrorDetail(
        kind=ErrorKind.NONDETERMINISM, message="step pay is new at order.py:12", subject="step", subject_id="pay"
    )
    await scene.do(PauseDiverged(**scene.leased, problem=problem, build_id="b1"))
    explained = await scene.explain()
    assert explained.reason == "diverged"
    assert "order.py:12" in explained.sentence
    assert explained.facts["step"] == "pay"
    assert "another build id" in explained.remedy


async def test_completed(scene: Scene) -> None:
    await scene.do(complete(scene.run))
    explained = await scene.explain()
    assert (explained.reason, explained.sentence[:17]) == ("completed", "It completed at 2")


async def test_a_step_that_was_not_retried_says_why_and_what_would(scene: Scene) -> None:
    error = ErrorDetail(type="ValueError", message="no amount", kind=ErrorKind.PERMANENT)
    await scene.do(BeginStep(**scene.leased, step_id="charge", name="charge", attempt=1))
    await scene.engine.tasks.submit(FailStep(**scene.leased, step_id="charge", attempt=1, error=error))
    await scene.do(FailRun(**scene.leased, error=msgspec.structs.replace(error, subject="step", subject_id="charge")))
    explained = await scene.explain()
    why = "not retried: ValueError is a programming error; retry_on=[ValueError] retries it"
    assert explained.sentence.endswith(f" in step charge: ValueError: no amount ({why}).")
    assert explained.facts["not_retried"] == why


async def test_failed_in_a_step(scene: Scene) -> None:
    error = ErrorDetail(type="StepError", message="card declined", subject="step", subject_id="pay")
    await scene.do(FailRun(**scene.leased, error=error))
    explained = await scene.explain()
    assert explained.reason == "failed"
    assert "in step pay: StepError: card declined." in explained.sentence
    assert f"kagzi retry {scene.run.run.run_id}" in explained.remedy


async def test_cancelled_and_terminated(engine: Engine) -> None:
    first, second = await engine.runs.start(start()), await engine.runs.start(start())
    await engine.control.cancel("default", run_id=first.run_id, reason="changed my mind")
    await engine.control.terminate("default", run_id=second.run_id)
    cancelled = await engine.explanations.explain("default", run_id=first.run_id)
    terminated = await engine.explanations.explain("default", run_id=second.run_id)
    assert (cancelled.reason, terminated.reason) == ("cancelled", "terminated")
    assert "changed my mind" in cancelled.sentence


async def test_past_its_deadline(engine: Engine) -> None:
    started = await engine.runs.start(start(timeout_us=30_000))
    await engine.runs.wait("default", run_id=started.run_id, timeout_ms=10_000)
    explained = await engine.explanations.explain("default", run_id=started.run_id)
    assert explained.reason == "timed_out"

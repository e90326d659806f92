"""A step whose worker does not report in time is failed by the server, one grace after its timeout."""

import pytest

from kagzi.core.error_details import ErrorCode, ErrorKind
from kagzi.core.records import Payload
from kagzi.core.retry.policy import RetryPolicy
from kagzi.core.run.commands import BeginStep, CompleteStep
from kagzi.core.run.outcomes import Begun, Refused
from kagzi.core.states import StepStatus
from kagzi.engine import Engine
from tests.engine.conftest import MakeEngine
from tests.engine.fakes import MovableClock, RecordingOutlet, leased, start, until, worker

TWICE = RetryPolicy(maximum_attempts=2, initial_interval_ms=0, jitter=0.0)


async def step_status(engine: Engine, run_id: str) -> tuple[StepStatus, int]:
    step = await engine.steps.get("default", run_id, "slow")
    return step.status, step.attempt


async def test_the_attempt_of_an_overdue_step_is_lost_and_its_holder_notified(
    make_engine: MakeEngine, clock: MovableClock, caplog: pytest.LogCaptureFixture
) -> None:
    engine = make_engine(reconnect_grace_ms=1_000, poll_interval_ms=600_000)
    await engine.start()
    started = await engine.runs.start(start())
    outlet = RecordingOutlet()
    session = await engine.sessions.open(worker("hello"), (), outlet)
    (run,) = await outlet.until_received(1)
    mine = {"run": run.run, "lease": run.lease, "step_id": "slow"}
    await session.submit([(1, BeginStep(**mine, name="slow", timeout_ms=2_000, retry=TWICE))])
    assert isinstance(await outlet.answer_to(1), Begun)

    clock.ahead_us += 2_900_000
    await session.heartbeat([leased(run)])
    assert await step_status(engine, started.run_id) == (StepStatus.RUNNING, 1)

    clock.ahead_us += 200_000
    await session.heartbeat([leased(run)])

    async def failed() -> bool:
        return await step_status(engine, started.run_id) == (StepStatus.PENDING, 2)

    await until(failed)
    (attempt,) = (await engine.steps.get("default", started.run_id, "slow")).attempts
    assert (attempt.error.kind, attempt.error.code) == (ErrorKind.TIMEOUT, ErrorCode.TIMEOUT)
    assert "2 s" in attempt.error.message
    [logged] = [each.getMessage() for each in caplog.records if "step 'slow' failed, attempt 1" in each.getMessage()]
    assert started.run_id in logged
    await session.submit([(2, CompleteStep(**mine, attempt=1, output=Payload(b"1")))])
    late = await outlet.answer_to(2)
    assert isinstance(late, Refused)
    assert late.error.code is ErrorCode.PRECONDITION_FAILED
    assert [notice.kind for notice in outlet.notices_received] == ["result"]

"""What a server says about runs that a worker holds: it reaches their executions, and only theirs."""

import asyncio

import pytest

from kagzi.core.errors import REASON
from kagzi.v1 import common_pb2
from kagzi.v1 import worker_pb2 as pb
from tests.sdk.net.fake_executor import Answers
from tests.sdk.net.fake_server import WAIT_S, FakeServer, lease, task
from tests.sdk.net.session_kit import Worker, step, welcomed

LOST, CANCEL = pb.RUN_NOTICE_KIND_LEASE_LOST, pb.RUN_NOTICE_KIND_CANCEL_REQUESTED
PAUSE, RESULT = pb.RUN_NOTICE_KIND_PAUSE_REQUESTED, pb.RUN_NOTICE_KIND_RESULT


async def test_a_lost_lease_and_a_cancellation(server: FakeServer, worker: Worker) -> None:
    stream = await welcomed(worker, server)
    stream.say(tasks=[task("r1"), task("r2", counter=3)])
    first, second = await worker.executor.accepted(2)
    stream.say(
        notices=[
            pb.RunNotice(run_id="r2", lease=lease(2), kind=LOST),  # of an older lease: not about this one
            pb.RunNotice(run_id="r1", lease=lease(), kind=CANCEL, reason="enough"),
            pb.RunNotice(run_id="r1", lease=lease(), kind=LOST, reason="taken over"),
        ]
    )
    async with asyncio.timeout(WAIT_S):
        await worker.executor.until(lambda: first.abandoned)
    assert (first.cancelled, first.abandoned, second.abandoned) == (["enough"], ["taken over"], [])


async def test_a_pause_and_a_result(server: FakeServer, worker: Worker) -> None:
    stream = await welcomed(worker, server)
    stream.say(tasks=[task("r1"), task("r2")])
    first, second = await worker.executor.accepted(2)
    stream.say(
        notices=[
            pb.RunNotice(run_id="r1", lease=lease(2), kind=RESULT),  # of another lease
            pb.RunNotice(run_id="r1", lease=lease(), kind=RESULT),
            pb.RunNotice(run_id="r1", lease=lease(), kind=RESULT),
            pb.RunNotice(run_id="r1", lease=lease(), kind=PAUSE, reason="lunch"),
            pb.RunNotice(run_id="gone", lease=lease(), kind=PAUSE),
            pb.RunNotice(run_id="r2", lease=lease(), kind=99),  # type: ignore[arg-type]  of a newer server
            pb.RunNotice(run_id="r2", lease=lease(), kind=CANCEL),
        ]
    )
    async with asyncio.timeout(WAIT_S):
        await worker.executor.until(lambda: second.cancelled)
    assert (first.notices_received, first.paused, first.cancelled) == (2, ["lunch"], [])
    assert (second.notices_received, second.paused, second.abandoned) == (0, [], [])


async def test_a_step_announced_too_late_for_a_cancellation_is_how_the_run_hears_of_it(
    server: FakeServer, worker: Worker
) -> None:
    stream = await welcomed(worker, server)
    stream.say(tasks=[task()])
    (execution,) = await worker.executor.accepted(1)
    answers = Answers()
    execution.port.announce().begin_step.step_id = "s"
    step("s", answers, worker)
    begin, complete = await stream.operations(2)
    cancelled = common_pb2.ErrorDetail(
        code=common_pb2.ERROR_CODE_CANCELLED, message="the run is to be cancelled", metadata={REASON: "enough"}
    )
    unknown = common_pb2.ErrorDetail(code=common_pb2.ERROR_CODE_PRECONDITION_FAILED, message="never begun")
    stream.say(
        answers=[
            pb.OperationAnswer(id=begin.id, refused=cancelled),
            pb.OperationAnswer(id=complete.id, refused=unknown),
        ]
    )
    answer = await answers.next()
    assert answer.detail is not None
    assert answer.detail.refused.code == common_pb2.ERROR_CODE_CANCELLED
    assert execution.cancelled == ["enough"]  # why, not in which words it was refused
    assert not execution.abandoned  # it may clean up, and end as cancelled


async def test_a_warning_is_logged_once_whether_or_not_its_run_is_still_held(
    server: FakeServer, worker: Worker, caplog: pytest.LogCaptureFixture
) -> None:
    stream = await welcomed(worker, server)
    stream.say(tasks=[task("r1")])
    (first,) = await worker.executor.accepted(1)
    words = "No worker serves 'chidl'. The child run waits until one does."
    stream.say(
        notices=[
            pb.RunNotice(run_id="parked", lease=lease(), kind=pb.RUN_NOTICE_KIND_WARNING, reason=words),
            pb.RunNotice(run_id="r1", lease=lease(), kind=pb.RUN_NOTICE_KIND_WARNING, reason=words),
            pb.RunNotice(run_id="r1", lease=lease(), kind=CANCEL, reason="enough"),
        ]
    )
    async with asyncio.timeout(WAIT_S):
        await worker.executor.until(lambda: first.cancelled)
    assert [each.getMessage() for each in caplog.records if words in each.getMessage()] == [f"run parked: {words}"]

"""A worker in another language that does not enforce a step's timeout: the server does, one grace later."""

import asyncio

import grpc
import pytest

from kagzi.v1 import admin_pb2, common_pb2, worker_pb2
from kagzi.v1 import workflow_pb2 as pb
from tests.server.stubs import TIMEOUT_S, Stubs, json_payload, leased
from tests.support.timeouts import LOADED_MACHINE_S

WAIT_S = LOADED_MACHINE_S
ONCE = common_pb2.RetryPolicy(maximum_attempts=1)
TWICE = common_pb2.RetryPolicy(maximum_attempts=2, initial_interval_ms=1)


async def begin(
    stubs: Stubs, task: worker_pb2.PollTaskResponse, policy: common_pb2.RetryPolicy, attempt: int = 0
) -> None:
    request = worker_pb2.BeginStepRequest(
        **leased(task),
        step_name="slow",
        kind=worker_pb2.STEP_KIND_FUNCTION,
        timeout_ms=200,
        retry_policy=policy,
        attempt=attempt,
    )
    assert (await stubs.workers.BeginStep(request, timeout=TIMEOUT_S)).should_execute


async def step(stubs: Stubs, run_id: str) -> worker_pb2.Step:
    request = admin_pb2.GetStepRequest(run_id=run_id, step_id="slow")
    return (await stubs.admin.GetStep(request, timeout=TIMEOUT_S)).step


async def hang(stubs: Stubs, worker_id: str, task: worker_pb2.PollTaskResponse, status: int) -> worker_pb2.Step:
    """Beat, and report nothing, until the step has that status."""
    async with asyncio.timeout(WAIT_S):
        while (record := await step(stubs, task.run_id)).status != status:
            beat = worker_pb2.HeartbeatRequest(worker_id=worker_id, leased=[worker_pb2.LeasedRun(**leased(task))])
            answer = await stubs.workers.Heartbeat(beat, timeout=TIMEOUT_S)
            assert not answer.lost
            await asyncio.sleep(0.05)
    return record


async def test_a_hanging_attempt_is_failed_and_retried(stubs: Stubs) -> None:
    worker_id = await stubs.register()
    await stubs.start()
    task = await stubs.poll(worker_id)
    await begin(stubs, task, TWICE)
    record = await hang(stubs, worker_id, task, worker_pb2.STEP_STATUS_PENDING)
    assert [attempt.error.kind for attempt in record.attempts] == [common_pb2.ERROR_KIND_TIMEOUT]
    late = worker_pb2.CompleteStepRequest(**leased(task), step_id="slow", attempt=1, output=json_payload("1"))
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await stubs.workers.CompleteStep(late, timeout=TIMEOUT_S)
    assert refusal.value.code() == grpc.StatusCode.FAILED_PRECONDITION
    await begin(stubs, task, TWICE, attempt=2)
    done = worker_pb2.CompleteStepRequest(**leased(task), step_id="slow", attempt=2, output=json_payload("2"))
    await stubs.workers.CompleteStep(done, timeout=TIMEOUT_S)
    assert (await step(stubs, task.run_id)).output.data == b"2"


async def test_out_of_attempts_the_timeout_is_the_result(stubs: Stubs) -> None:
    worker_id = await stubs.register()
    await stubs.start()
    task = await stubs.poll(worker_id)
    await begin(stubs, task, ONCE)
    record = await hang(stubs, worker_id, task, worker_pb2.STEP_STATUS_FAILED)
    assert "timeout of 0.2 s" in record.error.message + record.error.cause.message
    fail = worker_pb2.FailStepRequest(
        **leased(task), step_id="slow", attempt=1, error=common_pb2.ErrorDetail(message="mine")
    )
    answer = await stubs.workers.FailStep(fail, timeout=TIMEOUT_S)
    assert not answer.scheduled_retry  # what was recorded first counts
    end = worker_pb2.FailWorkflowRequest(**leased(task), error=common_pb2.ErrorDetail(message="given up"))
    assert (await stubs.workers.FailWorkflow(end, timeout=TIMEOUT_S)).status == pb.WORKFLOW_STATUS_FAILED

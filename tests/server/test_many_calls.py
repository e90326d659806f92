"""A burst of calls on one connection: every call is answered, or refused by us in words. gRPC itself cancels none."""

import asyncio
from collections import Counter

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration

from kagzi.server.grpc.interceptor import Budgets
from kagzi.server.grpc.listener import CONNECTION_CALLS, PENDING_CALLS
from kagzi.v1 import worker_pb2, workflow_pb2
from kagzi.wire.status import from_rpc_error
from tests.server.stubs import Stubs

CALLS = 2_500  # gRPC itself begins to cancel at 1,000 that wait
TIMEOUT_S = 120.0


async def outcome(call: object) -> str:
    try:
        await call  # type: ignore[misc]
    except grpc.aio.AioRpcError as error:
        return f"{error.code().name}: {from_rpc_error(error).message}"
    return "answered"


@pytest.mark.parametrize("transport", ["grpc"])
async def test_a_burst_of_waits_is_answered(memory_stubs: Stubs) -> None:
    started = await memory_stubs.start()
    request = workflow_pb2.WaitRequest(run_id=started.run_id, timeout=Duration(nanos=100_000_000))
    calls = [outcome(memory_stubs.workflows.Wait(request, timeout=TIMEOUT_S)) for _ in range(CALLS)]
    assert Counter(await asyncio.gather(*calls)) == {"answered": CALLS}


@pytest.mark.parametrize("transport", ["grpc"])
async def test_a_burst_of_polls_is_answered(memory_stubs: Stubs) -> None:
    worker_id = await memory_stubs.register()
    request = worker_pb2.PollTaskRequest(worker_id=worker_id, wait=Duration(nanos=100_000_000))
    calls = [outcome(memory_stubs.workers.PollTask(request, timeout=TIMEOUT_S)) for _ in range(1_500)]
    assert Counter(await asyncio.gather(*calls)) == {"answered": 1_500}


def test_the_interceptor_is_full_before_grpc_is() -> None:
    budgets = Budgets()
    admitted = sum(budget.limit for budget in (budgets.calls, budgets.polls, budgets.streams))
    assert admitted < CONNECTION_CALLS < PENDING_CALLS

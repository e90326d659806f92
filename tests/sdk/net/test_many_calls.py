"""More calls at once than a server serves: they wait in the client, in their order, instead of being refused."""

import asyncio
from typing import Any

from kagzi import Kagzi, RunInfo
from kagzi.core import limits
from kagzi.core.errors import PreconditionFailed
from kagzi.v1 import workflow_pb2 as wf
from tests.support.timeouts import LOADED_MACHINE_S

from .fake_server import FakeServer

MORE = 40


def workflow(request: wf.GetWorkflowRequest) -> wf.GetWorkflowResponse:
    running = wf.Workflow(
        run_id=f"run-{request.workflow_id}",
        workflow_id=request.workflow_id,
        namespace_id="default",
        workflow_type="greet",
        status=wf.WORKFLOW_STATUS_RUNNING,
    )
    running.created_at.GetCurrentTime()
    return wf.GetWorkflowResponse(workflow=running)


async def call_often(server: FakeServer, client: Kagzi, calls: int) -> list[asyncio.Task[Any]]:
    """Returns when the server has as many as it is given, and has answered others since."""
    tasks = [asyncio.create_task(client.get(f"order-{number}").info()) for number in range(calls)]
    async with asyncio.timeout(LOADED_MACHINE_S):
        await server.until_called("GetWorkflow", limits.CLIENT_CALLS)
        for _ in range(5):
            async with Kagzi.connect(server.address):
                pass
    return tasks


async def test_calls_beyond_the_limit_wait_in_the_client(server: FakeServer) -> None:
    server.answers["GetWorkflow"] = workflow
    latch = server.latches["GetWorkflow"] = asyncio.Event()
    async with Kagzi.connect(server.address) as client:
        tasks = await call_often(server, client, limits.CLIENT_CALLS + MORE)
        assert len(server.requests("GetWorkflow")) == limits.CLIENT_CALLS
        tasks[limits.CLIENT_CALLS].cancel()  # one that waits for its turn
        latch.set()
        async with asyncio.timeout(LOADED_MACHINE_S):
            infos = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(infos[limits.CLIENT_CALLS], asyncio.CancelledError)
        assert len(server.requests("GetWorkflow")) == limits.CLIENT_CALLS + MORE - 1
        assert sum(isinstance(info, RunInfo) for info in infos) == limits.CLIENT_CALLS + MORE - 1


async def test_a_client_that_is_closed_leaves_nobody_waiting(server: FakeServer) -> None:
    server.latches["GetWorkflow"] = asyncio.Event()
    async with Kagzi.connect(server.address) as client:
        tasks = await call_often(server, client, limits.CLIENT_CALLS + MORE)
    async with asyncio.timeout(LOADED_MACHINE_S):
        problems = await asyncio.gather(*tasks, return_exceptions=True)
    assert {type(problem) for problem in problems} == {PreconditionFailed}

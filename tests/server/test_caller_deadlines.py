"""The caller's deadline comes with its call. The server answers before it, with what is wrong: at the deadline nobody
would know."""

import asyncio
from typing import Any

import grpc
import pytest

from kagzi.core.errors import DOWN, Unavailable
from kagzi.core.outages import DATABASE
from kagzi.server.grpc import deadlines as patience
from kagzi.server.grpc import interceptor
from kagzi.server.grpc.interceptor import MARGIN_S, Interceptor
from kagzi.system import SystemIds
from kagzi.v1 import admin_pb2, workflow_pb2
from kagzi.wire.status import from_rpc_error
from tests.server.conftest import Serve, StartServer
from tests.server.stubs import TIMEOUT_S, Stubs, refused

DEADLINE_S = 13.0


@pytest.fixture(autouse=True)
def ample(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most of it is the server's, to answer: a busy machine does not excuse being late."""
    monkeypatch.setattr(interceptor, "_MARGIN", 0.9)
    monkeypatch.setattr(interceptor, "MARGIN_S", DEADLINE_S)
    monkeypatch.setattr(interceptor, "POLL_MARGIN_S", DEADLINE_S)


def test_little_of_a_deadline_is_kept() -> None:
    assert MARGIN_S <= 2.0
    assert patience.MARGIN_MS >= 500  # more than the 250 ms that the interceptor keeps of a poll


class Stuck:
    """A service that waits for a database."""

    def __init__(self) -> None:
        self.cancelled = 0

    async def _wait(self) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise

    async def StartWorkflow(self, request: Any) -> Any:
        await self._wait()

    async def GetWorkflow(self, request: Any) -> Any:
        await self._wait()

    async def Wait(self, request: Any, remaining_s: float | None) -> Any:
        await self._wait()


CALLS = [
    ("StartWorkflow", workflow_pb2.StartWorkflowRequest(workflow_type="x")),
    ("GetWorkflow", workflow_pb2.GetWorkflowRequest(run_id="x")),
    ("Wait", workflow_pb2.WaitRequest(run_id="x")),
]


@pytest.mark.parametrize(
    ("transport", "words"),
    [("grpc", ""), ("grpc", f"{DATABASE} cannot be reached"), ("in_process", f"{DATABASE} cannot be reached")],
)
async def test_a_call_that_takes_too_long_is_answered_before_its_deadline(serve: Serve, words: str) -> None:
    stuck = Stuck()

    async def use(stubs: Stubs) -> None:
        calls = [getattr(stubs.workflows, name)(request, timeout=DEADLINE_S) for name, request in CALLS]
        for failure in await asyncio.gather(*map(refused, calls)):
            assert failure.code() is grpc.StatusCode.UNAVAILABLE, failure  # DEADLINE_EXCEEDED: nobody answered
            problem = from_rpc_error(failure)
            assert isinstance(problem, Unavailable)
            assert problem.metadata.get(DOWN) == ("database" if words else None)
            assert (words or "could not be done within 1.") in problem.message

    await serve({"kagzi.v1.WorkflowService": stuck}, Interceptor(ids=SystemIds(), store_problem=lambda: words), use)
    assert stuck.cancelled == len(CALLS)


async def test_a_store_that_does_not_answer_is_reported_by_the_server_itself(
    start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It hangs instead of failing, as a database whose machine is frozen does: no error tells the server anything."""
    server = await start_server()
    engine = server._engine
    assert engine is not None
    stuck, store = asyncio.Event(), engine._journal._store
    write = store.write

    async def hang(*arguments: Any) -> Any:
        await stuck.wait()
        return await write(*arguments)

    monkeypatch.setattr(store, "write", hang)
    async with grpc.aio.insecure_channel(server.grpc_address) as channel:
        stubs = Stubs(channel)
        start = workflow_pb2.StartWorkflowRequest(workflow_type="x", workflow_id="one", request_id="one")
        problem = from_rpc_error(await refused(stubs.workflows.StartWorkflow(start, timeout=DEADLINE_S)))
        assert f"{DATABASE} has not answered for 1 s" in problem.message
        info = await stubs.admin.GetServerInfo(admin_pb2.GetServerInfoRequest(), timeout=TIMEOUT_S)
        assert info.store_problem.startswith(f"{DATABASE} has not answered for")
        assert engine.health() is None  # a slow database must not send callers elsewhere
        stuck.set()
        # What was asked for is not lost, and not done twice.
        answer = await stubs.workflows.StartWorkflow(start, timeout=TIMEOUT_S)
        assert answer.run_id
        info = await stubs.admin.GetServerInfo(admin_pb2.GetServerInfoRequest(), timeout=TIMEOUT_S)
        assert info.store_problem == ""

"""A session that fails in its hello, at whatever step, leaves nothing behind that runs could be given to."""

import asyncio
from typing import Any, cast

import grpc
import pytest

from kagzi.core.limits import Settings
from kagzi.engine import Engine
from kagzi.server.app import Server
from kagzi.server.grpc.incomplete import IncompleteMessages
from kagzi.server.grpc.interceptor import Context
from kagzi.server.grpc.session import SessionStream
from kagzi.server.grpc.unread import Unread
from kagzi.system import SystemClock
from kagzi.v1 import worker_pb2 as pb
from tests.server.conftest import StartServer
from tests.server.stubs import Stubs
from tests.server.test_session import Spoken
from tests.support.timeouts import LOADED_MACHINE_S

# Longer than any test: what a ghost has swallowed does not come back by itself.
LONG = Settings(lease_ms=600_000, heartbeat_ms=60_000, reconnect_grace_ms=600_000, poll_interval_ms=600_000)
RUNS = 10


def hello(**more: Any) -> pb.SessionRequest:
    register = pb.RegisterRequest(workflow_types=["greet"], worker_id="failing", max_concurrent=100)
    return pb.SessionRequest(hello=pb.SessionHello(register=register), **more)


class BrokenContext:
    """A stream whose other side says hello, and whose writes fail."""

    def __init__(self, request: pb.SessionRequest, failure: Exception | None = None) -> None:
        self._request: pb.SessionRequest | None = request
        self._failure = failure
        self.written = 0

    async def read(self) -> object:
        await asyncio.sleep(0)
        if self._request is None:
            await asyncio.Event().wait()
        assert self._request is not None
        data, self._request = self._request.SerializeToString(), None
        return data

    async def write(self, data: bytes) -> None:
        await asyncio.sleep(0)
        self.written += 1
        if self._failure is not None:
            raise self._failure


@pytest.fixture
async def lasting(start_server: StartServer, database_url: str) -> Server:
    return await start_server(database_url, settings=LONG)


def engine_of(server: Server) -> Engine:
    assert server._engine is not None
    return server._engine


def sessions_of(server: Server) -> int:
    """Registered ones, and those that runs could be given to."""
    engine = engine_of(server)
    slots = engine._matcher._claimants._group_of
    return len(engine.sessions._sessions.keys() | {(slot.namespace, slot.worker_id) for slot in slots})


def stream(server: Server, context: BrokenContext) -> SessionStream:
    return SessionStream(
        engine_of(server).sessions,
        cast("Context", context),
        clock=SystemClock(),
        settings=LONG,
        version="test",
        unread=Unread(),
        incomplete=IncompleteMessages(),
    )


async def assert_all_reach_a_healthy_worker(server: Server) -> None:
    """Each is given to it within its own start: nothing has to run out first."""
    async with grpc.aio.insecure_channel(server.grpc_address) as channel:
        stubs = Stubs(channel, server.grpc_address)
        worker = Spoken(stubs)
        await worker.hello()
        started = [(await stubs.start()).run_id for _ in range(RUNS)]
        assert sorted([(await worker.task()).run_id for _ in range(RUNS)]) == sorted(started)


async def test_the_welcome_cannot_be_written(lasting: Server) -> None:
    for _ in range(RUNS):
        context = BrokenContext(hello(), grpc.aio.UsageError("the stream is gone"))
        with pytest.raises(grpc.aio.UsageError):
            await stream(lasting, context).serve()
        assert context.written == 1, "it did not come to the welcome"
        assert sessions_of(lasting) == 0
    await assert_all_reach_a_healthy_worker(lasting)


async def test_hung_up_at_every_step(lasting: Server) -> None:
    """Cut at once, after one turn of the loop, after two, and so on; and again, counted from when the session is
    open."""
    welcomed = 0
    for opened, turns in [*((False, turns) for turns in range(3)), *((True, turns) for turns in range(30))]:
        context = BrokenContext(hello(update=pb.SessionUpdate(completed_delta=1)))
        serving = asyncio.ensure_future(stream(lasting, context).serve())
        async with asyncio.timeout(LOADED_MACHINE_S):
            while opened and not sessions_of(lasting):  # noqa: ASYNC110  there is no event for it
                await asyncio.sleep(0)
        for _ in range(turns):
            await asyncio.sleep(0)
        welcomed += context.written
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        assert sessions_of(lasting) == 0, f"cut after {turns} turns; open: {opened}"
    assert 10 < welcomed < 33, "it was not cut before and after the welcome: this shows too little"
    await assert_all_reach_a_healthy_worker(lasting)


BAD = {
    "a negative count": {"update": pb.SessionUpdate(completed_delta=-1)},
    "another negative count": {"update": pb.SessionUpdate(failed_delta=-1)},
    "goodbye at once": {"update": pb.SessionUpdate(goodbye=True)},
}


@pytest.mark.parametrize("more", BAD.values(), ids=BAD.keys())
async def test_what_comes_with_the_hello_is_refused(lasting: Server, more: dict[str, Any]) -> None:
    async with grpc.aio.insecure_channel(lasting.grpc_address) as channel:
        failing = Spoken(Stubs(channel, lasting.grpc_address))
        await failing.send(**{"hello": hello().hello, **more})
        assert await failing.until_closed() in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.OK)
    assert sessions_of(lasting) == 0
    await assert_all_reach_a_healthy_worker(lasting)

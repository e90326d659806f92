"""What is refused is not kept: a server's memory after any number of refused calls is that before them, whichever way
they came and whatever they were refused for. `make refusals` sends 10,000 of each kind."""

import asyncio
import gc
import os
import traceback
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, closing, suppress
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple, cast
from urllib.parse import urlsplit

import grpc
import psutil
import pytest

from kagzi.core.errors import KagziError, ServerUnavailable
from kagzi.core.limits import MIB
from kagzi.server.app import Server
from kagzi.server.grpc.budgets import FirstMessages
from kagzi.v1 import admin_pb2, common_pb2, workflow_pb2
from tests.server.apart_world import Caller, admin, workflows
from tests.server.conftest import ANY_PORT, IN_PROCESS, StartServer, channel_to
from tests.server.keys import first_key
from tests.server.stubs import TIMEOUT_S
from tests.server.test_hostile_input import NOT_SENT
from tests.support.kagzi_process import RunningCommand
from tests.support.transports import GRPC, WEBSOCKET, PlainWebSocket

CALLS = int(os.environ.get("KAGZI_TEST_REFUSALS", "120"))
WARM_UP = 20
BODY_BYTES = 3 * MIB
GROWN_BYTES = 48 * MIB
"""What a server may grow by. The calls of the test are many times as much, the bodies under way at once less."""
HEADER_BYTES = 60_000
HEADER_CALLS = 10 * CALLS

Send = Callable[[int], Awaitable[object]]


class Process(NamedTuple):
    """A server as a process of its own, and a key that is good for all of it."""

    command: RunningCommand
    grpc: str
    http: str
    key: str

    @property
    def memory_bytes(self) -> int:
        return int(psutil.Process(self.command.process.pid).memory_info().rss)


@pytest.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[Process]:
    """It requires keys."""
    async with _process(tmp_path, "--auth", "keys") as process:
        yield process


@pytest.fixture
async def unguarded(tmp_path: Path) -> AsyncIterator[Process]:
    async with _process(tmp_path) as process:
        yield process


@asynccontextmanager
async def _process(directory: Path, *options: str) -> AsyncIterator[Process]:
    database = f"sqlite:///{directory}/kagzi.db"
    key = await first_key(database) if options else ""
    ports = ("--listen", "127.0.0.1:0", "--http", "127.0.0.1:0")
    command = RunningCommand("server", "--db", database, *ports, *options, cwd=directory)
    try:
        ready = await asyncio.to_thread(command.says, r"kagzi server ready grpc=(\S+) http=(\S+)")
        yield Process(command, ready[1], ready[2], key)
    finally:
        await asyncio.to_thread(command.close)


@asynccontextmanager
async def _way_to(process: Process, way: str) -> AsyncIterator[grpc.aio.Channel]:
    async with grpc.aio.insecure_channel(process.grpc) as channel:
        if way == GRPC:
            yield channel
            return
        info = await Caller(channel, process.key).one(admin("GetServerInfo"), admin_pb2.GetServerInfoRequest())
        websocket = PlainWebSocket()
        await websocket.open(urlsplit(info.websocket_url).port or 0, info.listener_id)
        yield websocket.channel
        await websocket.close()


async def _grown_by(process: Process, send: Send, calls: int = CALLS) -> int:
    for number in range(WARM_UP):
        await send(number)
    before = process.memory_bytes
    for number in range(WARM_UP, WARM_UP + calls):
        await send(number)
    return process.memory_bytes - before


def made_up(number: int) -> str:
    return f"kgz_{number:016x}_{number:064x}"


def a_start(**fields: Any) -> bytes:
    request = workflow_pb2.StartWorkflowRequest(workflow_type="flow", **fields)
    return request.SerializeToString()


BODY = common_pb2.Payload(data=b"1" * BODY_BYTES)


async def _refused(channel: Any, path: str, body: bytes, code: grpc.StatusCode, key: str = "") -> None:
    metadata = (("authorization", f"Bearer {key}"),) if key else ()
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await channel.unary_unary(path)(body, metadata=metadata, timeout=TIMEOUT_S)
    assert refusal.value.code() is code


async def _refused_stream(channel: Any, path: str, body: bytes, code: grpc.StatusCode, key: str = "") -> None:
    metadata = (("authorization", f"Bearer {key}"),) if key else ()
    call = channel.stream_stream(path)(metadata=metadata, timeout=TIMEOUT_S)
    with suppress(grpc.aio.AioRpcError):  # over gRPC the call may be over before its message is written
        await call.write(body)
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await call.read()
    if refusal.value.details() != NOT_SENT:
        assert refusal.value.code() is code


@pytest.mark.parametrize("kind", [_refused, _refused_stream])
@pytest.mark.parametrize("way", [GRPC, WEBSOCKET])
@pytest.mark.parametrize("key", ["made up", "none"])
async def test_calls_without_a_good_key(key: str, way: str, kind: Any, guarded: Process) -> None:
    path = workflows("StartWorkflow" if kind is _refused else "WaitStream")
    body = a_start(input=BODY)
    async with _way_to(guarded, way) as channel:

        async def send(number: int) -> None:
            sent = made_up(number) if key == "made up" else ""
            await kind(channel, path, body, grpc.StatusCode.UNAUTHENTICATED, sent)

        assert await _grown_by(guarded, send) < GROWN_BYTES


@pytest.mark.parametrize("way", [GRPC, WEBSOCKET])
async def test_inputs_that_are_too_large(way: str, unguarded: Process) -> None:
    body = a_start(input=BODY)
    async with _way_to(unguarded, way) as channel:

        async def send(number: int) -> None:
            await _refused(channel, workflows("StartWorkflow"), body, grpc.StatusCode.INVALID_ARGUMENT)

        assert await _grown_by(unguarded, send) < GROWN_BYTES


@pytest.mark.parametrize("way", [GRPC, WEBSOCKET])
async def test_streams_whose_first_message_is_refused(way: str, unguarded: Process) -> None:
    async with _way_to(unguarded, way) as channel:

        async def send(number: int) -> None:
            path, code = workflows("WaitStream"), grpc.StatusCode.INVALID_ARGUMENT
            await _refused_stream(channel, path, b"\xff" * BODY_BYTES, code)

        assert await _grown_by(unguarded, send) < GROWN_BYTES


@pytest.mark.parametrize("way", [GRPC, WEBSOCKET])
async def test_signals_to_a_run_that_has_ended(way: str, unguarded: Process) -> None:
    async with _way_to(unguarded, way) as channel:
        run_id = await _ended_run(channel)
        payload = common_pb2.Payload(data=b"1" * (3 * MIB // 2))
        signal = workflow_pb2.SignalWorkflowRequest(run_id=run_id, signal_name="go", payload=payload)
        body = signal.SerializeToString()

        async def send(number: int) -> None:
            await _refused(channel, workflows("SignalWorkflow"), body, grpc.StatusCode.FAILED_PRECONDITION)

        assert await _grown_by(unguarded, send) < GROWN_BYTES


async def _ended_run(channel: Any) -> str:
    caller = Caller(channel, "")
    started = await caller.one(workflows("StartWorkflow"), workflow_pb2.StartWorkflowRequest(workflow_type="flow"))
    run_id: str = started.run_id
    await caller.one(workflows("TerminateWorkflow"), workflow_pb2.TerminateWorkflowRequest(run_id=run_id))
    return run_id


async def test_http_requests_with_long_headers_and_no_good_key(guarded: Process) -> None:
    def ask(connection: HTTPConnection, number: int) -> None:
        headers = {"Authorization": f"Bearer {made_up(number)}", "X-Long": "x" * HEADER_BYTES}
        connection.request("GET", "/api/v1/runs", headers=headers)
        response = connection.getresponse()
        response.read()
        assert response.status == 401

    with closing(HTTPConnection(urlsplit(guarded.http).netloc)) as connection:
        send = partial(asyncio.to_thread, ask, connection)
        assert await _grown_by(guarded, send, HEADER_CALLS) < GROWN_BYTES


async def test_http_requests_whose_input_is_too_large(unguarded: Process) -> None:
    body = b'{"workflow": "flow", "input": "' + b"x" * BODY_BYTES + b'"}'

    def ask(connection: HTTPConnection, number: int) -> None:
        connection.request("POST", "/api/v1/runs", body=body, headers={"Content-Type": "application/json"})
        response = connection.getresponse()
        response.read()
        assert response.status == 400

    with closing(HTTPConnection(urlsplit(unguarded.http).netloc)) as connection:
        assert await _grown_by(unguarded, partial(asyncio.to_thread, ask, connection)) < GROWN_BYTES


class _Silent:
    """A stream that says nothing."""

    async def read(self) -> object:
        return await asyncio.get_running_loop().create_future()


@pytest.mark.parametrize("refused_by", ["other streams", "a stop"])
async def test_each_silent_stream_is_refused_with_an_error_of_its_own(refused_by: str) -> None:
    """An error that is raised again keeps the frames of all who got it before."""
    most = 2 if refused_by == "other streams" else CALLS
    first_messages = FirstMessages(most)
    streams = [asyncio.ensure_future(first_messages.read(_Silent())) for _ in range(CALLS)]
    await asyncio.sleep(0)
    first_messages.close(lambda: ServerUnavailable("stopping"))
    errors = await asyncio.gather(*streams, return_exceptions=True)
    assert len({id(error) for error in errors}) == CALLS
    assert {len(traceback.extract_tb(cast("KagziError", error).__traceback__)) for error in errors} == {1}


# --- in this process: without the collector, so that not even garbage may hold what was refused -----------------------

TRACED_CALLS = 20


@pytest.fixture
def uncollected() -> Iterator[None]:
    gc.collect()
    gc.disable()
    tracemalloc.start()
    yield
    tracemalloc.stop()
    gc.enable()


@pytest.mark.parametrize("what", ["input", "signal"])
@pytest.mark.parametrize("way", [GRPC, WEBSOCKET, IN_PROCESS])
@pytest.mark.usefixtures("uncollected")
async def test_not_even_garbage_holds_what_was_refused(what: str, way: str, start_server: StartServer) -> None:
    server: Server = await start_server(http=None if way == IN_PROCESS else ANY_PORT)
    async with channel_to(server, way) as channel:
        if what == "input":
            path, code = workflows("StartWorkflow"), grpc.StatusCode.INVALID_ARGUMENT
            body = a_start(input=BODY)
        else:
            payload = common_pb2.Payload(data=b"1" * (3 * MIB // 2))
            run_id = await _ended_run(channel)
            signal = workflow_pb2.SignalWorkflowRequest(run_id=run_id, signal_name="go", payload=payload)
            path, code = workflows("SignalWorkflow"), grpc.StatusCode.FAILED_PRECONDITION
            body = signal.SerializeToString()
        for _ in range(WARM_UP):
            await _refused(channel, path, body, code)
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(TRACED_CALLS):
            await _refused(channel, path, body, code)
        assert tracemalloc.get_traced_memory()[0] - before < 2 * BODY_BYTES

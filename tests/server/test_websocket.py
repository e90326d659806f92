"""Calls by WebSocket: strangers and broken clients harm nobody, limits hold, and nothing is left behind."""

import asyncio
import base64
import gc
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from struct import pack
from typing import Any, cast

import grpc
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kagzi.core import limits
from kagzi.core.errors import ResourceExhausted
from kagzi.server import websocket as listeners
from kagzi.server.calls import CallServer
from kagzi.server.grpc.interceptor import Interceptor
from kagzi.server.grpc.registration import handlers
from kagzi.system import SystemIds
from kagzi.v1 import workflow_pb2 as pb
from kagzi.wire.calls import websocket as wire
from kagzi.wire.calls.call import ServerEnd
from kagzi.wire.calls.frames import SUBPROTOCOL, Kind, write_open
from kagzi.wire.calls.path import PATH
from kagzi.wire.calls.websocket import LISTENER_HEADER
from kagzi.wire.status import from_rpc_error
from tests.server.conftest import ANY_PORT, LISTENER_ID, StartServer, waited_for, websocket_server
from tests.server.stubs import TIMEOUT_S, Stubs, refused
from tests.server.test_in_process import CHUNK, WORKFLOWS, Service
from tests.support.polling import until
from tests.support.transports import PlainWebSocket, preferred_channel

START = "/kagzi.v1.WorkflowService/StartWorkflow"
HEADER = msgspec.msgpack.encode((START, ()))
PART = bytes(wire.FRAME_BYTES)
CALL = write_open(1, HEADER, TIMEOUT_S, pb.StartWorkflowRequest(workflow_type="x").SerializeToString())


class World:
    def __init__(self, service: Service, port: int) -> None:
        self.service = service
        self.port = port

    @asynccontextmanager
    async def client(self) -> AsyncIterator[PlainWebSocket]:
        client = PlainWebSocket()
        await client.open(self.port, LISTENER_ID)
        yield client
        await client.close()

    @asynccontextmanager
    async def stubs(self) -> AsyncIterator[Stubs]:
        async with self.client() as client:
            yield Stubs(cast("grpc.aio.Channel", client.channel))

    async def still_serves(self) -> None:
        async with self.stubs() as stubs:
            await stubs.workflows.StartWorkflow(pb.StartWorkflowRequest(), timeout=TIMEOUT_S)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    service = Service()
    async with websocket_server(CallServer(handlers(Interceptor(ids=SystemIds()), {WORKFLOWS: service}))) as port:
        yield World(service, port)


class Raw:
    """A client made of bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def until_closed(self) -> bytes:
        async with asyncio.timeout(TIMEOUT_S):
            return await self.reader.read()

    async def close_frame(self) -> tuple[int, str]:
        """Why the server closes: code and reason."""
        data = await self.until_closed()
        assert data[0] == 0x88, data
        return int.from_bytes(data[2:4], "big"), data[4 : 2 + data[1]].decode()


def upgrade(**changes: str | None) -> bytes:
    headers: dict[str, str | None] = {
        "Host": "localhost",
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(),
        "Sec-WebSocket-Protocol": SUBPROTOCOL,
        LISTENER_HEADER: LISTENER_ID,
        **changes,
    }
    lines = [f"{name}: {value}" for name, value in headers.items() if value is not None]
    return "\r\n".join((f"GET {PATH} HTTP/1.1", *lines, "", "")).encode()


def masked(payload: bytes, opcode: int = 0x2, *, fin: bool = True) -> bytes:
    """A frame of a client, whose mask changes nothing."""
    size = len(payload)
    if size < 126:
        length = pack("!B", 0x80 | size)
    elif size < 1 << 16:
        length = pack("!BH", 0x80 | 126, size)
    else:
        length = pack("!BQ", 0x80 | 127, size)
    return bytes([(0x80 if fin else 0) | opcode]) + length + bytes(4) + payload


@asynccontextmanager
async def raw(port: int, request: bytes | None = None) -> AsyncIterator[Raw]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(upgrade() if request is None else request)
    if request is None:
        async with asyncio.timeout(TIMEOUT_S):
            assert b"101 " in await reader.readuntil(b"\r\n\r\n")
    yield Raw(reader, writer)
    await _close(writer)


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()
    with suppress(OSError):
        await writer.wait_closed()


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"Origin": "https://a.web.page"}, b"403"),
        ({LISTENER_HEADER: "another"}, b"421"),
        ({LISTENER_HEADER: None}, b"421"),
        ({LISTENER_HEADER: "\xfc"}, b"421"),
        ({"Sec-WebSocket-Version": "8"}, b"426"),
        ({"Sec-WebSocket-Protocol": "kagzi.calls.99"}, b"400"),
        ({"Sec-WebSocket-Key": None}, b"400"),
    ],
)
async def test_who_may_not_connect_is_told_why(world: World, changes: dict[str, Any], status: bytes) -> None:
    async with raw(world.port, upgrade(**changes)) as client:
        answer = await client.until_closed()
    assert answer.startswith(b"HTTP/1.1 " + status)
    assert answer.partition(b"\r\n\r\n")[2]


async def test_calls_that_are_cancelled_leave_no_garbage() -> None:
    """An end of a call and its task, or an error and its frames, that keep each other until garbage is collected."""
    header = msgspec.msgpack.encode(("/kagzi.v1.WorkflowService/WaitStream", ()))
    calls = CallServer(handlers(Interceptor(ids=SystemIds()), {WORKFLOWS: Service()}))
    begun: list[str] = []
    begin = calls.begin

    def counted(path: str, *call: Any) -> None:
        begun.append(path)
        begin(path, *call)

    calls.begin = counted
    async with websocket_server(calls) as port, raw(port) as client:

        async def cancel(first: int) -> None:
            seen = len(begun)
            for call in range(first, first + 100):
                opened = write_open(call, header, None, None)
                client.writer.write(masked(opened) + masked(pack("!BI", Kind.CANCEL, call)))
            await client.writer.drain()
            await until(lambda: len(begun) == seen + 100)
            await until(lambda: calls.loop is not None and not calls._calls)

        await cancel(1)
        gc.collect()
        gc.disable()
        try:
            await cancel(1_000)
            assert not [each for each in gc.get_objects() if isinstance(each, ServerEnd)]
        finally:
            gc.enable()


async def test_connections_beyond_the_limit_are_refused() -> None:
    calls = CallServer(handlers(Interceptor(ids=SystemIds()), {WORKFLOWS: Service()}))
    async with websocket_server(calls, max_connections=1) as port, raw(port), raw(port, upgrade()) as second:
        assert b"503" in await second.until_closed()


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(size=st.integers(0, 600))
async def test_a_client_that_is_cut_at_any_byte_harms_nobody(size: int) -> None:
    service = Service()
    async with websocket_server(CallServer(handlers(Interceptor(ids=SystemIds()), {WORKFLOWS: service}))) as port:
        conversation = upgrade() + masked(CALL) + masked(CALL[:60])
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(conversation[:size])
        await writer.drain()
        await _close(writer)
        await World(service, port).still_serves()


@pytest.mark.parametrize(
    ("data", "code", "words"),
    [
        (pack("!BBQ", 0x82, 0xFF, 1 << 62), 1009, "exceeding max allowed size"),
        (pack("!BBQ", 0x82, 0xFF, 100 * limits.MIB), 1009, "exceeding max allowed size"),
        (pack("!BBQ", 0x82, 0xFF, 1 << 63), 1002, "length"),
        (masked(pack("!BI", 99, 1)), 1002, "a frame has kind 99, which no client sends"),
        (masked(pack("!BI", Kind.ANSWER, 1)), 1002, "which no client sends"),
        (masked(b"\x01"), 1002, "the shortest has 5"),
        (masked(b"hello", 0x1), 1003, "binary"),
        (masked(b"", 0x0), 1002, "out of order"),
        (masked(PART, fin=False) + masked(PART, 0x0, fin=False) * 80, 1009, "in parts"),
        (masked(bytes(wire.FRAME_BYTES + 1)), 1009, "exceeding max allowed size"),
        (b"\x82\x01x", 1002, "un-masked"),
        *(
            (masked(CALL, 0x82 | bit), 1002, "a frame is marked as compressed, or otherwise extended")
            for bit in (0x40, 0x20, 0x10)
        ),
        (masked(CALL) + masked(write_open(2, b"\xc1", None, b"")), 1002, "header of a call cannot be read"),
    ],
    ids=lambda value: "frame" if isinstance(value, bytes) else None,
)
async def test_what_is_none_of_the_protocol_ends_the_connection(
    world: World, data: bytes, code: int, words: str
) -> None:
    async with raw(world.port) as client:
        client.writer.write(data)
        answers = await client.until_closed()
    closing = answers[answers.rindex(b"\x88") :]
    assert int.from_bytes(closing[2:4], "big") == code
    assert words in closing[4:].decode()
    await world.still_serves()


async def test_a_message_in_parts_is_a_message(world: World) -> None:
    async with raw(world.port) as client:
        client.writer.write(masked(CALL[:9], fin=False) + masked(b"", 0x9) + masked(CALL[9:], 0x0))
        await until(lambda: bool(world.service.requests))
    assert world.service.requests[0].workflow_type == "x"


async def test_a_large_request_is_sent_in_parts(world: World) -> None:
    size = limits.MESSAGE_HARD_BYTES - limits.KIB
    async with world.stubs() as stubs:
        request = pb.StartWorkflowRequest(workflow_type="x" * size)
        await stubs.workflows.StartWorkflow(request, timeout=TIMEOUT_S)
    assert len(world.service.requests[0].workflow_type) == size


async def test_messages_that_never_come_whole_are_given_up_beyond_a_limit(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "INCOMPLETE_BYTES", 5 * len(PART))
    async with raw(world.port) as first, raw(world.port) as second:
        first.writer.write(masked(PART, fin=False) + masked(PART, 0x0, fin=False))
        await first.writer.drain()
        await world.still_serves()
        second.writer.write(masked(PART, fin=False) + masked(PART, 0x0, fin=False) * 3)
        code, reason = await first.close_frame()
        assert (code, reason[:23]) == (1013, "the rest of a message d")
        second.writer.write(masked(CALL, 0x0))  # it goes on, and is none of ours
        assert (await second.close_frame())[0] == 1002
    async with raw(world.port) as third:  # nothing of the others is counted any more
        third.writer.write(masked(CALL[:9], fin=False) + masked(PART[:100], 0x0, fin=False) + masked(CALL[9:], 0x0))
        assert (await third.close_frame())[0] == 1002
    await world.still_serves()


async def test_a_flood_of_small_frames_leaves_others_their_turn(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library reads the more at once, the more there is, and handles all of it before it returns."""
    in_turn = most = 0
    handle = wire.WebSocket.on_ws_frame

    def counted(websocket: Any, transport: Any, frame: Any) -> None:
        nonlocal in_turn, most
        in_turn += 1
        most = max(most, in_turn)
        handle(websocket, transport, frame)

    async def turns() -> None:
        nonlocal in_turn
        while True:
            in_turn = 0
            await asyncio.sleep(0)

    monkeypatch.setattr(wire.WebSocket, "on_ws_frame", counted)
    counting = asyncio.ensure_future(turns())
    async with raw(world.port) as client:
        pong = masked(b"", 0xA)
        client.writer.write(pong * 300_000 + masked(CALL))
        await until(lambda: bool(world.service.requests))
    counting.cancel()
    assert most <= 64 * limits.KIB // len(pong) + 10


async def test_a_client_that_answers_no_ping_is_gone(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "SERVER_PING_S", 0.2)
    monkeypatch.setattr(wire, "SERVER_PONG_S", 0.1)
    async with raw(world.port) as client:
        path = "/kagzi.v1.WorkflowService/CancelWorkflow"
        call = write_open(1, msgspec.msgpack.encode((path, ())), None, b"")
        client.writer.write(masked(call))
        async with asyncio.timeout(TIMEOUT_S):
            await world.service.began.wait()
            await world.service.cancelled.wait()


async def test_a_server_that_answers_no_ping_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "CLIENT_PING_S", 0.2)
    monkeypatch.setattr(wire, "CLIENT_PONG_S", 0.1)
    service = Service()
    async with websocket_server(CallServer(handlers(Interceptor(ids=SystemIds()), {WORKFLOWS: service}))) as port:
        world = World(service, port)
        async with _frozen_proxy(port) as (proxied, freeze):
            client = PlainWebSocket()
            await client.open(proxied, LISTENER_ID)
            stubs = Stubs(cast("grpc.aio.Channel", client.channel))
            call = stubs.workflows.CancelWorkflow(pb.CancelWorkflowRequest(run_id="x"), timeout=TIMEOUT_S)
            waiting = asyncio.ensure_future(refused(call))
            async with asyncio.timeout(TIMEOUT_S):
                await service.began.wait()
                freeze.set()
                assert (await waiting).code() is grpc.StatusCode.UNAVAILABLE
            await client.close()
        await world.still_serves()


@asynccontextmanager
async def _frozen_proxy(port: int) -> AsyncIterator[tuple[int, asyncio.Event]]:
    """Passes everything on until it is frozen; its connections stay open."""
    frozen = asyncio.Event()
    tasks: set[asyncio.Task[None]] = set()
    writers: list[asyncio.StreamWriter] = []

    async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            if not frozen.is_set():
                writer.write(data)
                await writer.drain()
        writer.close()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = await asyncio.open_connection("127.0.0.1", port)
        writers.extend((writer, there[1]))
        tasks.update((asyncio.create_task(pipe(reader, there[1])), asyncio.create_task(pipe(there[0], writer))))

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1], frozen
    server.close()
    for task in tasks:
        task.cancel()
    for writer in writers:
        await _close(writer)


async def test_who_does_not_read_is_not_written_to(world: World) -> None:
    """Neither its call's window nor its socket takes more; others are served meanwhile."""
    async with raw(world.port) as client:
        path = "/kagzi.v1.WorkflowService/ExportWorkflow"
        call = write_open(1, msgspec.msgpack.encode((path, ())), None, pb.ExportWorkflowRequest().SerializeToString())
        client.writer.write(masked(call))
        await until(lambda: world.service.written > 0)
        await world.still_serves()
        written = world.service.written
        await world.still_serves()
        assert world.service.written == written <= 64 * limits.KIB // len(CHUNK) + 2


async def test_calls_beyond_the_limit_of_a_connection_are_refused(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listeners, "CONNECTION_CALLS", 2)
    async with world.stubs() as stubs:
        requests = [pb.CancelWorkflowRequest(run_id="x") for _ in range(3)]
        calls = [stubs.workflows.CancelWorkflow(request, timeout=TIMEOUT_S) for request in requests]
        failure = from_rpc_error(await refused(calls[2]))
        assert isinstance(failure, ResourceExhausted)
        assert failure.metadata == {"limit": "connection_calls", "maximum": "2"}
        for call in calls[:2]:
            call.cancel()


async def test_methods_that_do_not_exist_leave_nothing_behind() -> None:
    calls = CallServer(handlers(Interceptor(ids=SystemIds()), {WORKFLOWS: Service()}))
    async with websocket_server(calls) as port:
        client = PlainWebSocket()
        await client.open(port, LISTENER_ID)
        for number in range(20):
            method: Any = client.channel.unary_unary(f"/kagzi.v1.WorkflowService/Made{number}")
            assert (await refused(method(b"", timeout=TIMEOUT_S))).code() is grpc.StatusCode.UNIMPLEMENTED
        await client.close()
    assert not calls._handlers


@pytest.mark.parametrize("before", [0, 5])
async def test_requests_that_wait_are_bounded(world: World, monkeypatch: pytest.MonkeyPatch, before: int) -> None:
    """`before`: calls of one request each, which have been answered. They make no room for more."""
    monkeypatch.setattr(listeners, "UNREAD_CONNECTION_BYTES", 100 * limits.KIB)
    calls = CallServer(handlers(Interceptor(ids=SystemIds()), {WORKFLOWS: world.service}))
    async with websocket_server(calls) as port, World(world.service, port).stubs() as stubs:
        for _ in range(before):
            request = pb.StartWorkflowRequest(workflow_type="x" * 100 * limits.KIB)
            await stubs.workflows.StartWorkflow(request, timeout=TIMEOUT_S)
        streams = [stubs.workflows.ImportWorkflow() for _ in range(5)]
        failures: list[BaseException] = []
        for stream in streams:
            try:
                for _ in range(2):
                    await stream.write(pb.ImportWorkflowRequest(json=bytes(40 * limits.KIB)))
            except grpc.aio.AioRpcError as error:
                failures.append(error)
        results = await asyncio.gather(*(_answer(stream) for stream in streams[-1:]))
        failure = from_rpc_error(cast("grpc.aio.AioRpcError", results[0]))
        assert isinstance(failure, ResourceExhausted)
        assert failure.metadata["limit"] == "unread_requests_bytes"
        for stream in streams:
            stream.cancel()


async def _answer(stream: Any) -> BaseException:
    try:
        async with asyncio.timeout(TIMEOUT_S):
            await stream.write(pb.ImportWorkflowRequest(json=bytes(40 * limits.KIB)))
            await stream
    except grpc.aio.AioRpcError as error:
        return error
    raise AssertionError("it was served")


async def test_a_connection_without_calls_is_closed_after_a_while(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listeners, "IDLE_S", 0.05)
    async with world.client() as client:
        async with asyncio.timeout(TIMEOUT_S):
            await client.lost


async def test_a_server_that_stops_says_so_after_its_last_answer(start_server: StartServer) -> None:
    server = await start_server(http=ANY_PORT)
    async with preferred_channel(server.grpc_address) as channel:
        stubs = Stubs(channel)
        run_id = (await stubs.start()).run_id
        waiting = asyncio.ensure_future(
            _awaited(stubs.workflows.Wait(pb.WaitRequest(run_id=run_id), timeout=TIMEOUT_S))
        )
        stream = stubs.workflows.WaitStream()
        await stream.write(pb.WaitStreamRequest(run_ids=[run_id]))
        await until(partial(waited_for, server, run_id, 2))
        await server.stop(TIMEOUT_S)
        response = cast("pb.WaitResponse", await waiting)
        assert not response.ended  # answered with what there was
        assert "the server is stopping" in str((await refused(stream.read())).details())


async def test_nothing_is_left_when_both_sides_are_closed(start_server: StartServer) -> None:
    before = asyncio.all_tasks()
    server = await start_server(http=ANY_PORT)
    async with preferred_channel(server.grpc_address) as channel:
        await Stubs(channel).start()
        stream = Stubs(channel).workflows.WaitStream()
        await stream.write(pb.WaitStreamRequest(run_ids=["x" * 32]))
    await server.stop(0)
    await until(lambda: not [task for task in asyncio.all_tasks() - before if not task.done()])


async def _awaited(call: Any) -> Any:
    return await call

"""Calls as frames: whatever comes is a call, or is refused as what it is; nothing is lost, and nobody is overrun."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from struct import pack

import grpc
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kagzi.wire.calls.call import GONE, OK, WINDOW_BYTES, WINDOW_MESSAGES, ClientEnd, ServerEnd
from kagzi.wire.calls.frames import (
    HEADER_BYTES,
    RESPONSE_BYTES,
    BadFrame,
    ClientCalls,
    Kind,
    Opened,
    ServerCalls,
    read_status,
    write_open,
    write_status,
)
from kagzi.wire.status import RpcStatus

HEADER = msgspec.msgpack.encode(("/service/method", (("key", "value"),)))
ANYTHING = st.binary(max_size=64)
BODIES = st.one_of(
    ANYTHING,
    st.builds(lambda size, body: pack("!IH", 1_000, size) + body, st.integers(0, 0xFFFF), ANYTHING),
    st.just(pack("!IH", 1_000, len(HEADER)) + HEADER),
    st.builds(lambda status: write_status(1, status)[5:], st.just(OK)),
    st.builds(lambda a, b: pack("!II", a, b), st.integers(0, 0xFFFF_FFFF), st.integers(0, 0xFFFF_FFFF)),
)
FRAMES = st.one_of(
    ANYTHING,
    st.builds(
        lambda kind, call, body: pack("!BI", kind, call) + body,
        st.one_of(st.sampled_from(list(Kind)), st.integers(0, 255)),
        st.integers(0, 3),
        BODIES,
    ),
)


class Served(ServerCalls):
    """Calls that nobody answers."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self.begun: list[tuple[Opened, ServerEnd, float | None]] = []
        self.sent: list[bytes] = []
        self.send = self.sent.append

    def begin(self, opened: Opened, end: ServerEnd, timeout_s: float | None) -> None:
        self.begun.append((opened, end, timeout_s))


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """Nothing runs on it."""
    made = asyncio.new_event_loop()
    yield made
    made.close()


@given(frames=st.lists(FRAMES, max_size=8))
def test_whatever_comes_is_served_or_refused(loop: asyncio.AbstractEventLoop, frames: list[bytes]) -> None:
    served, client = Served(loop), ClientCalls(loop)
    end = ClientEnd(loop)
    client.open(end, "/service/method", (), None, None)
    for calls in (served, client):
        for frame in frames:
            with suppress(BadFrame):
                calls.receive(frame)
        calls.lost()
    assert end.status is not None
    assert all(each.is_over for _, each, _ in served.begun)
    assert not served.open_calls


@given(size=st.integers(0, 40))
def test_a_frame_that_is_cut_is_refused_or_shorter(loop: asyncio.AbstractEventLoop, size: int) -> None:
    whole = write_open(1, HEADER, 1.0, b"request")
    served = Served(loop)
    try:
        served.receive(whole[:size])
    except BadFrame:
        assert not served.begun
        assert size < len(whole) - len(b"request")
    else:
        assert served.begun[0][0] == Opened("/service/method", (("key", "value"),))


@pytest.mark.parametrize("code", list(grpc.StatusCode))
def test_a_status_arrives_as_it_was(code: grpc.StatusCode) -> None:
    status = RpcStatus(code, "why, ü", (("grpc-status-details-bin", b"\x00\xff"),))
    assert read_status(write_status(7, status)[5:]) == status


@pytest.mark.parametrize(("timeout_s", "left_s"), [(None, None), (1.5, 1.5), (-1.0, 0.0), (1e9, 4_294_967.294)])
def test_what_is_left_of_the_deadline_is_sent(
    loop: asyncio.AbstractEventLoop, timeout_s: float | None, left_s: float | None
) -> None:
    served = Served(loop)
    served.receive(write_open(1, HEADER, timeout_s, b""))
    assert served.begun[0][2] == left_s


def test_who_sends_more_than_was_read_is_refused(loop: asyncio.AbstractEventLoop) -> None:
    served = Served(loop)
    served.receive(write_open(1, HEADER, None, None))
    message = pack("!BI", Kind.MESSAGE, 1)
    for _ in range(WINDOW_MESSAGES + 1):
        served.receive(message + b"x")
    with pytest.raises(BadFrame, match="before what it has sent was read"):
        served.receive(message + b"x")
    served.receive(write_open(2, HEADER, None, None))
    message = pack("!BI", Kind.MESSAGE, 2)
    served.receive(message + bytes(WINDOW_BYTES + 1))
    with pytest.raises(BadFrame, match="before what it has sent was read"):
        served.receive(message + b"x")


def test_a_call_is_opened_once(loop: asyncio.AbstractEventLoop) -> None:
    served = Served(loop)
    served.receive(write_open(1, HEADER, None, None))
    with pytest.raises(BadFrame, match="call 1 is open already"):
        served.receive(write_open(1, HEADER, None, None))


def test_metadata_that_is_too_large_is_not_sent_and_not_read(loop: asyncio.AbstractEventLoop) -> None:
    client, end = ClientCalls(loop), ClientEnd(loop)
    sent: list[bytes] = []
    client.send = sent.append
    client.open(end, "/service/method", (("key", "x" * HEADER_BYTES),), None, None)
    assert end.status is not None
    assert end.status.code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert str(HEADER_BYTES) in end.status.details
    assert not sent
    with pytest.raises(BadFrame, match=f"limit is {HEADER_BYTES}"):
        Served(loop).receive(write_open(1, bytes(HEADER_BYTES + 1), None, None))


def test_an_answer_that_is_too_large_ends_its_call_only(loop: asyncio.AbstractEventLoop) -> None:
    served = Served(loop)
    served.receive(write_open(1, HEADER, None, None))
    served.receive(write_open(2, HEADER, None, b""))
    first, second = (end for _, end, _ in served.begun)
    cancelled: list[int] = []
    first.when_cancelled = lambda: cancelled.append(1)
    first.send(bytes(RESPONSE_BYTES + 1))
    assert cancelled == [1]
    second.finish(OK, bytes(RESPONSE_BYTES + 1))
    statuses = [read_status(frame[5:]) for frame in served.sent]
    assert [status.code for status in statuses] == [grpc.StatusCode.RESOURCE_EXHAUSTED] * 2
    assert not served.open_calls


MESSAGES = st.lists(st.integers(0, 3 * WINDOW_BYTES // 2), min_size=1, max_size=12)


@given(sizes=MESSAGES, chunk=st.integers(1, 4), to_server=st.booleans())
async def test_messages_arrive_in_order_and_none_before_there_is_space(
    sizes: list[int], chunk: int, to_server: bool
) -> None:
    """A server refuses what comes too early, so nothing does."""
    running = asyncio.get_running_loop()
    served, client = Served(running), ClientCalls(running)
    served.send, client.send = client.receive, served.receive
    end = ClientEnd(running)
    client.open(end, "/service/method", (), None, None)
    _, server_end, _ = served.begun[0]
    writer, reader = (end, server_end) if to_server else (server_end, end)

    async def write() -> None:
        for index, size in enumerate(sizes):
            writer.send(bytes([index]) + bytes(size))
            await writer.writable()
        end.send_no_more() if to_server else server_end.finish(OK)

    writing = asyncio.ensure_future(write())
    received: list[int] = []
    while (data := await reader.read()) is not None:
        assert data[0] == len(received)
        received.append(len(data) - 1)
        if len(received) % chunk == 0:
            await asyncio.sleep(0)
    await writing
    assert received == sizes


def test_a_connection_that_is_lost_ends_its_calls(loop: asyncio.AbstractEventLoop) -> None:
    client, end = ClientCalls(loop), ClientEnd(loop)
    client.open(end, "/service/method", (), None, None)
    client.lost()
    assert end.status == GONE
    assert client.had_calls

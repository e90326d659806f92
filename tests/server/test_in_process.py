"""Calls within a process: what gRPC does for calls and streams is done there as well, by the same rules."""

import asyncio
import contextvars
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, cast

import grpc
import pytest

from kagzi.core import limits
from kagzi.sdk.transport.calls import CallChannel, receive
from kagzi.server import in_process
from kagzi.server.calls import CallServer
from kagzi.server.grpc.interceptor import Interceptor
from kagzi.server.grpc.registration import handlers
from kagzi.server.in_process import InProcessListener
from kagzi.system import SystemIds
from kagzi.v1 import common_pb2
from kagzi.v1 import workflow_pb2 as pb
from kagzi.wire.calls.call import WINDOW_BYTES, WINDOW_MESSAGES
from tests.server.conftest import Serve, StartServer, waited_for
from tests.server.stubs import TIMEOUT_S, Stubs, refused
from tests.support.polling import until

WORKFLOWS = "kagzi.v1.WorkflowService"
CHUNK = b"x" * (16 * limits.KIB)
whose: contextvars.ContextVar[str] = contextvars.ContextVar("whose", default="nobody's")


class Service:
    """Remembers what it was given, and what became of its calls."""

    def __init__(self) -> None:
        self.requests: list[pb.StartWorkflowRequest] = []
        self.response = pb.StartWorkflowResponse(run_id="r")
        self.began = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.read = self.written = 0
        self.proceed = asyncio.Event()

    async def StartWorkflow(self, request: pb.StartWorkflowRequest) -> pb.StartWorkflowResponse:
        self.requests.append(request)
        self.response.warning = whose.get()
        return self.response

    async def CancelWorkflow(self, request: pb.CancelWorkflowRequest) -> None:
        await self._hang()

    async def WaitStream(self, context: Any) -> None:
        await self._hang()

    async def ExportWorkflow(self, context: Any) -> None:
        """Writes without end."""
        await context.read()
        try:
            while True:
                self.written += 1
                await context.write(pb.ExportWorkflowResponse(json=CHUNK).SerializeToString())
        except asyncio.CancelledError:
            self.cancelled.set()
            raise

    async def ImportWorkflow(self, context: Any) -> None:
        """Reads one, then nothing until it is told to go on, then everything."""
        await context.read()
        await self.proceed.wait()
        while (data := await context.read()) is not grpc.aio.EOF:
            self.read += len(pb.ImportWorkflowRequest.FromString(data).json)
        await context.write(pb.ImportWorkflowResponse(run_id=str(self.read)).SerializeToString())

    async def Watch(self, context: Any) -> None:
        """An answer larger than clients read."""
        await context.read()
        try:
            await context.write(pb.WatchResponse(status_text="x" * limits.MESSAGE_READ_BYTES).SerializeToString())
        except asyncio.CancelledError:
            self.cancelled.set()
            raise

    async def _hang(self) -> None:
        self.began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise


@pytest.fixture
def service() -> Service:
    return Service()


@pytest.fixture
async def calls(service: Service) -> AsyncIterator[CallServer]:
    made = CallServer(handlers(Interceptor(ids=SystemIds()), {WORKFLOWS: service}))
    made.start()
    yield made
    await made.stop(0)


@pytest.fixture
def listener(calls: CallServer) -> InProcessListener:
    return InProcessListener(calls)


@pytest.fixture
async def stubs(listener: InProcessListener) -> AsyncIterator[Stubs]:
    channel = CallChannel(listener.open_call)
    yield Stubs(cast("grpc.aio.Channel", channel))
    await channel.close()


async def soon(event: asyncio.Event) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        await event.wait()


# --- on both ways -----------------------------------------------------------------------------------------------------


async def test_a_caller_that_is_cancelled_cancels_the_handler(serve: Serve, service: Service) -> None:
    async def use(stubs: Stubs) -> None:
        call = stubs.workflows.CancelWorkflow(pb.CancelWorkflowRequest(run_id="x"), timeout=TIMEOUT_S)
        waiting = asyncio.ensure_future(_awaited(call))
        await soon(service.began)
        waiting.cancel()
        await soon(service.cancelled)
        with pytest.raises(asyncio.CancelledError):
            await waiting

    await serve({WORKFLOWS: service}, Interceptor(ids=SystemIds()), use)


async def test_responses_are_taken_on_arrival_until_taking_one_fails(serve: Serve, service: Service) -> None:
    enough = 3 * WINDOW_BYTES // len(CHUNK)  # the writer has to hear that they were read
    taken: list[tuple[bytes, str]] = []

    def take(response: pb.ExportWorkflowResponse) -> None:
        taken.append((response.json, whose.get()))
        if len(taken) == enough:
            raise ValueError("enough")

    async def use(stubs: Stubs) -> None:
        whose.set("the reader's")
        call = stubs.workflows.ExportWorkflow(pb.ExportWorkflowRequest(run_id="x"), timeout=TIMEOUT_S)
        await until(lambda: service.written > 1)  # some arrive before anybody reads
        with pytest.raises(ValueError, match="enough"):
            await receive(call, take)
        assert call.done() or isinstance(call, grpc.aio.Call)  # gRPC leaves it to its caller
        call.cancel()

    await serve({WORKFLOWS: service}, Interceptor(ids=SystemIds()), use)
    assert taken == [(CHUNK, "the reader's")] * enough


async def test_a_response_that_is_too_large_is_refused_on_arrival(serve: Serve, service: Service) -> None:
    async def use(stubs: Stubs) -> None:
        call = stubs.workflows.Watch(pb.WatchRequest(run_id="x"), timeout=TIMEOUT_S)
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await receive(call, pytest.fail)
        assert failed.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED

    await serve({WORKFLOWS: service}, Interceptor(ids=SystemIds()), use)


async def test_a_stream_that_is_cancelled_cancels_the_handler(serve: Serve, service: Service) -> None:
    async def use(stubs: Stubs) -> None:
        call = stubs.workflows.WaitStream(timeout=TIMEOUT_S)
        await call.write(pb.WaitStreamRequest())
        await soon(service.began)
        call.cancel()
        await soon(service.cancelled)
        with pytest.raises(asyncio.CancelledError):
            await call.read()

    await serve({WORKFLOWS: service}, Interceptor(ids=SystemIds()), use)


async def test_a_stream_past_its_deadline_is_over_on_both_sides(serve: Serve, service: Service) -> None:
    async def use(stubs: Stubs) -> None:
        call = stubs.workflows.WaitStream(timeout=0.3)
        await call.write(pb.WaitStreamRequest())
        failure = await refused(call.read())
        assert failure.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        await soon(service.cancelled)

    await serve({WORKFLOWS: service}, Interceptor(ids=SystemIds()), use)


async def _awaited(call: Any) -> object:
    return await call


# --- within the process -----------------------------------------------------------------------------------------------


async def test_neither_side_sees_what_the_other_does_to_its_message(stubs: Stubs, service: Service) -> None:
    request = pb.StartWorkflowRequest(workflow_type="greet", input=common_pb2.Payload(data=b"1"))
    call = stubs.workflows.StartWorkflow(request, timeout=TIMEOUT_S)
    request.workflow_type, request.input.data = "changed", b"2"
    response = await call
    [received] = service.requests
    assert (received.workflow_type, received.input.data) == ("greet", b"1")
    service.response.run_id = "changed"
    assert response.run_id == "r"
    response.warning = "changed"
    assert service.response.warning == "nobody's"


async def test_context_variables_stay_with_the_caller(stubs: Stubs) -> None:
    whose.set("the caller's")
    response = await stubs.workflows.StartWorkflow(pb.StartWorkflowRequest(), timeout=TIMEOUT_S)
    assert response.warning == "nobody's"


async def test_a_reader_that_takes_nothing_stops_the_writer(stubs: Stubs, service: Service) -> None:
    call = stubs.workflows.ExportWorkflow(pb.ExportWorkflowRequest(), timeout=TIMEOUT_S)
    await until(lambda: service.written > 1)
    for _ in range(10):
        await asyncio.sleep(0)
    window = WINDOW_BYTES // len(CHUNK) + 1
    assert service.written <= window
    for number in range(3 * window):  # it goes on as it is read
        assert (await call.read()).json == CHUNK, number
    assert 3 * window <= service.written <= 4 * window + 1
    call.cancel()
    await soon(service.cancelled)


async def test_a_handler_that_reads_nothing_stops_the_caller(stubs: Stubs, service: Service) -> None:
    made = 0

    def requests(size: int, count: int) -> Any:
        nonlocal made
        for _ in range(count):
            made += 1
            yield pb.ImportWorkflowRequest(json=b"x" * size)

    call = stubs.workflows.ImportWorkflow(requests(1, 1_000), timeout=TIMEOUT_S)
    await until(lambda: made > WINDOW_MESSAGES)
    for _ in range(10):
        await asyncio.sleep(0)
    assert made <= WINDOW_MESSAGES + 2
    service.proceed.set()
    assert (await call).run_id == "999"
    assert made == 1_000


async def test_requests_that_cannot_be_made_end_their_call(stubs: Stubs) -> None:
    def requests() -> Any:
        yield pb.ImportWorkflowRequest()
        raise KeyError("lost")

    with pytest.raises(KeyError, match="lost"):
        await stubs.workflows.ImportWorkflow(requests(), timeout=TIMEOUT_S)


async def test_requests_are_not_made_for_a_call_that_is_over(stubs: Stubs) -> None:
    def requests() -> Any:
        for number in range(1_000_000):
            yield pb.WatchRequest(after_seq=number)
        pytest.fail("it went on")

    call = stubs.channel.stream_unary(
        "/kagzi.v1.WorkflowService/GetWorkflow", request_serializer=pb.WatchRequest.SerializeToString
    )
    assert (await refused(call(requests(), timeout=TIMEOUT_S))).code() is grpc.StatusCode.UNIMPLEMENTED
    await asyncio.sleep(0)


async def test_messages_have_the_limits_they_have_on_a_wire(stubs: Stubs, service: Service) -> None:
    large = pb.StartWorkflowRequest(input=common_pb2.Payload(data=b"x" * limits.MESSAGE_READ_BYTES))
    sent = await refused(stubs.workflows.StartWorkflow(large, timeout=TIMEOUT_S))
    streamed = await refused(stubs.workflows.Watch(pb.WatchRequest(), timeout=TIMEOUT_S).read())
    assert not service.requests
    service.response.url = "x" * limits.MESSAGE_READ_BYTES
    received = await refused(stubs.workflows.StartWorkflow(pb.StartWorkflowRequest(), timeout=TIMEOUT_S))
    for failure, what in ((sent, "Sent"), (streamed, "Received"), (received, "Received")):
        assert failure.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert f"{what} message larger than max" in (failure.details() or "")
    await soon(service.cancelled)


async def test_a_channel_that_is_closed_cancels_its_calls(listener: InProcessListener, service: Service) -> None:
    channel = CallChannel(listener.open_call)
    call = Stubs(cast("grpc.aio.Channel", channel)).workflows.CancelWorkflow(pb.CancelWorkflowRequest())
    waiting = asyncio.ensure_future(_awaited(call))
    await soon(service.began)
    await channel.close()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await soon(service.cancelled)


async def test_a_server_that_stops_fails_calls_as_unavailable(
    calls: CallServer, stubs: Stubs, service: Service
) -> None:
    stream = stubs.workflows.WaitStream()
    await stream.write(pb.WaitStreamRequest())
    await soon(service.began)
    await calls.stop(0)
    assert (await refused(stream.read())).code() is grpc.StatusCode.UNAVAILABLE
    assert service.cancelled.is_set()
    late = await refused(stubs.workflows.StartWorkflow(pb.StartWorkflowRequest(), timeout=TIMEOUT_S))
    assert late.code() is grpc.StatusCode.UNAVAILABLE


async def test_calls_in_flight_get_their_grace(start_server: StartServer) -> None:
    server = await start_server()
    channel = CallChannel(server.open_call)
    stubs = Stubs(cast("grpc.aio.Channel", channel))
    run_id = (await stubs.start()).run_id
    waiting = asyncio.ensure_future(_awaited(stubs.workflows.Wait(pb.WaitRequest(run_id=run_id), timeout=TIMEOUT_S)))
    await until(partial(waited_for, server, run_id, 1))
    await server.stop(TIMEOUT_S)
    response = cast("pb.WaitResponse", await waiting)
    assert not response.ended  # answered with what there was


# --- from another loop ------------------------------------------------------------------------------------------------


@asynccontextmanager
async def elsewhere() -> AsyncIterator[Callable[[Any], "asyncio.Future[Any]"]]:
    """Another loop, in its thread. What is given runs coroutines there."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield lambda coroutine: asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, loop))
    finally:
        loop.call_soon_threadsafe(loop.stop)
        await asyncio.to_thread(thread.join)
        loop.close()


async def test_a_caller_on_another_loop_is_served_in_order_and_bounded(
    listener: InProcessListener, service: Service
) -> None:
    async def read_some() -> int:
        stubs = Stubs(cast("grpc.aio.Channel", CallChannel(listener.open_call)))
        call = stubs.workflows.ExportWorkflow(pb.ExportWorkflowRequest(), timeout=TIMEOUT_S)
        for _ in range(100):
            assert (await call.read()).json == CHUNK
        call.cancel()
        return 100

    async with elsewhere() as run:
        assert await run(read_some()) == 100
        await soon(service.cancelled)
        assert service.written <= 100 + 2 * (WINDOW_BYTES // len(CHUNK) + 1)


async def test_a_caller_whose_loop_is_gone_is_abandoned(
    listener: InProcessListener, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_process, "CHECK_S", 0.05)

    async def begin() -> None:
        stubs = Stubs(cast("grpc.aio.Channel", CallChannel(listener.open_call)))
        await stubs.workflows.ExportWorkflow(pb.ExportWorkflowRequest()).read()

    async with elsewhere() as run:
        await run(begin())
    await soon(service.cancelled)


async def test_a_server_whose_loop_is_gone_is_unavailable(service: Service) -> None:
    gone: list[InProcessListener] = []

    async def start() -> None:
        calls = CallServer(handlers(Interceptor(ids=SystemIds()), {WORKFLOWS: service}))
        calls.start()
        gone.append(InProcessListener(calls))

    async with elsewhere() as run:
        await run(start())
    stubs = Stubs(cast("grpc.aio.Channel", CallChannel(gone[0].open_call)))
    failure = await refused(stubs.workflows.StartWorkflow(pb.StartWorkflowRequest(), timeout=TIMEOUT_S))
    assert failure.code() is grpc.StatusCode.UNAVAILABLE

"""A Kagzi server made of lists: it records what it is asked and answers what a test says."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, NoReturn

import grpc
import grpc.aio

from kagzi.core.errors import KagziError, NotFound, Unavailable
from kagzi.server.calls import CallServer
from kagzi.server.websocket import WebSocketListener
from kagzi.v1 import admin_pb2, common_pb2
from kagzi.v1 import worker_pb2 as pb
from kagzi.v1 import workflow_pb2 as wf
from kagzi.wire.calls.frames import VERSION
from kagzi.wire.calls.path import PATH
from kagzi.wire.common import write_error
from kagzi.wire.status import RpcStatus, detail_of, to_status
from tests.support.timeouts import LOADED_MACHINE_S

WAIT_S = LOADED_MACHINE_S
LEASE_MS = 15_000
HEARTBEAT_MS = 5_000


class FakeSession:
    """One stream of a worker."""

    def __init__(self) -> None:
        self.raw: list[bytes] = []
        self.requests: asyncio.Queue[pb.SessionRequest] = asyncio.Queue()
        self._answers: asyncio.Queue[pb.SessionResponse | KagziError | None] = asyncio.Queue()
        self.ended = asyncio.Event()

    async def next(self, wanted: Callable[[pb.SessionRequest], Any] = lambda _: True) -> pb.SessionRequest:
        """The next message that is wanted; others are passed over."""
        async with asyncio.timeout(WAIT_S):
            while True:
                request = await self.requests.get()
                if wanted(request):
                    return request

    async def operations(self, count: int) -> list[pb.Operation]:
        """The next `count` operations, over as many messages as they take."""
        operations: list[pb.Operation] = []
        while len(operations) < count:
            request = await self.next(lambda request: request.runs)
            operations.extend(operation for run in request.runs for operation in run.operations)
        return operations

    def say(self, **parts: Any) -> None:
        self._answers.put_nowait(pb.SessionResponse(**parts))

    def acknowledge(self, *operations: pb.Operation, first_seq: int = 1, at_us: int = 7) -> None:
        ids = [operation.id for operation in operations]
        seqs = list(range(first_seq, first_seq + len(ids)))
        self.say(acknowledged=[pb.Acknowledged(at_us=at_us, ids=ids, seqs=seqs)])

    def refuse(self, error: KagziError) -> None:
        self._answers.put_nowait(error)

    def hang_up(self) -> None:
        self._answers.put_nowait(None)

    async def serve(self, read: Callable[[], Awaitable[Any]], write: Callable[[bytes], Awaitable[None]]) -> None:
        reader = asyncio.create_task(self._read(read))
        try:
            while (response := await self._answers.get()) is not None:
                if isinstance(response, KagziError):
                    raise response
                await write(response.SerializeToString())
        finally:
            reader.cancel()
            self.ended.set()

    async def _read(self, read: Callable[[], Awaitable[Any]]) -> None:
        while (data := await read()) is not grpc.aio.EOF:
            self.raw.append(data)
            self.requests.put_nowait(pb.SessionRequest.FromString(data))
        self.hang_up()


def run_id_of(start: wf.StartWorkflowRequest) -> str:
    return f"run-of-{start.workflow_id or start.request_id}"


class FakeServer:
    def __init__(self) -> None:
        self.warning = ""  # in the answer to every start
        self.port = 0
        self.info = admin_pb2.GetServerInfoResponse(
            version="0.1.0", api_version="v1", min_sdk_version="0.1.0", http_url="http://127.0.0.1:8420"
        )
        self.calls: list[tuple[str, Any]] = []
        self.metadata: list[dict[str, Any]] = []
        self.failures: dict[str, list[KagziError]] = {}
        self.latches: dict[str, asyncio.Event] = {}
        self.answers: dict[str, Callable[[Any], Any]] = {}
        self.sessions: asyncio.Queue[FakeSession] = asyncio.Queue()
        self.waits: list[str] = []
        self.forgotten: list[str] = []
        self.wait_streams = 0
        self.subscribes = False  # whether a start may name a stream of waits; servers of old do not know of it
        self._named_waits: dict[str, set[str]] = {}
        self.outcomes: dict[str, wf.RunOutcome] = {}
        self.lease_ms = LEASE_MS
        self.heartbeat_ms = HEARTBEAT_MS
        self.features: tuple[str, ...] = ()  # that its welcome names
        self._changes = asyncio.Condition()
        self._open: set[FakeSession] = set()
        self._server: grpc.aio.Server | None = None
        self.by_websocket: list[str] = []
        """Paths of the calls that came that way."""
        self._calls: CallServer | None = None
        self._listener: WebSocketListener | None = None
        self._websocket_port: asyncio.Server | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def start(self) -> None:
        self._server = grpc.aio.server()
        self._server.add_generic_rpc_handlers([_Handlers(self)])
        self.port = self._server.add_insecure_port(f"127.0.0.1:{self.port}")
        await self._server.start()

    async def offer_websocket(self, *, listener_id: str = "fake") -> None:
        """Until `stop`."""
        self._calls = CallServer([_CountedHandlers(self)])
        self._calls.start()
        self._listener = WebSocketListener(self._calls, listener_id=listener_id, max_connections=100)
        loop = asyncio.get_running_loop()
        self._websocket_port = await loop.create_server(self._listener.protocol, "127.0.0.1", 0)
        port: int = self._websocket_port.sockets[0].getsockname()[1]
        self.info.websocket_url = f"ws://0.0.0.0:{port}{PATH}"  # the host is that of gRPC
        self.info.websocket_version = VERSION
        self.info.listener_id = listener_id

    def abort_websockets(self) -> None:
        """The connections, not the listener."""
        assert self._listener is not None
        for connection in tuple(self._listener._connections):
            connection.abort()

    async def refuse_websockets(self) -> None:
        """Nobody listens there any more; what is open is cut."""
        if self._websocket_port is not None and self._calls is not None and self._listener is not None:
            self._websocket_port.close()
            self.abort_websockets()
            await self._calls.stop(0)
        self._websocket_port = None

    async def stop(self) -> None:
        """At once, as a crash: whatever is open is cut."""
        await self.refuse_websockets()
        server, self._server = self._server, None
        if server is not None:
            await server.stop(None)
            await server.wait_for_termination(WAIT_S)

    async def session(
        self, *, welcome: bool = True, lost: tuple[pb.LeasedRun, ...] = ()
    ) -> tuple[FakeSession, pb.SessionRequest]:
        """The next stream a worker opens, and its hello."""
        async with asyncio.timeout(WAIT_S):
            session = await self.sessions.get()
        hello = await session.next()
        if welcome:
            session.say(
                welcome=pb.SessionWelcome(
                    worker_id=hello.hello.register.worker_id,
                    lease_ms=self.lease_ms,
                    heartbeat_ms=self.heartbeat_ms,
                    lost=lost,
                    features=self.features,
                )
            )
        return session, hello

    async def until_called(self, method: str, times: int) -> None:
        async with self._changes:
            await self._changes.wait_for(lambda: len(self.requests(method)) >= times)

    def requests(self, method: str) -> list[Any]:
        return [request for name, request in self.calls if name == method]

    async def end(self, run_id: str, **outcome: Any) -> None:
        async with self._changes:
            self.outcomes[run_id] = wf.RunOutcome(run_id=run_id, **outcome)
            self._changes.notify_all()

    # --- answers ------------------------------------------------------------------------------------------------------

    async def unary(self, method: str, request: Any) -> Any:
        async with self._changes:
            self.calls.append((method, request))
            self._changes.notify_all()
        if self.failures.get(method):
            raise self.failures[method].pop(0)
        subscribed = method == "StartBatch" and await self._subscribe(request)
        if method in self.latches:
            await self.latches[method].wait()
        if method in self.answers:
            return self.answers[method](request)
        answer = getattr(self, f"_{method}")(request)
        if subscribed:
            answer.subscribed = True
        return answer

    async def _subscribe(self, request: wf.StartBatchRequest) -> bool:
        wanted = self._named_waits.get(request.wait_stream_id)
        if not self.subscribes or wanted is None:
            return False
        async with self._changes:
            wanted.update(run_id_of(request.starts[place]) for place in request.waited)
            self._changes.notify_all()
        return True

    def _GetServerInfo(self, request: admin_pb2.GetServerInfoRequest) -> admin_pb2.GetServerInfoResponse:
        return self.info

    def _StartBatch(self, request: wf.StartBatchRequest) -> wf.StartBatchResponse:
        items: list[wf.StartBatchResponse.Item] = []
        for start in request.starts:
            if start.workflow_type == "refused":
                error = write_error(detail_of(NotFound("no such thing")))
                items.append(wf.StartBatchResponse.Item(error=error))
                continue
            run_id = run_id_of(start)
            started = wf.StartWorkflowResponse(
                run_id=run_id,
                workflow_id=start.workflow_id,
                status=wf.WORKFLOW_STATUS_PENDING,
                url=f"http://x/runs/{run_id}",
                warning=self.warning,
            )
            items.append(wf.StartBatchResponse.Item(started=started))
        return wf.StartBatchResponse(items=items)

    def _Heartbeat(self, request: pb.HeartbeatRequest) -> pb.HeartbeatResponse:
        return pb.HeartbeatResponse(accepted=True)

    def _CancelWorkflow(self, request: wf.CancelWorkflowRequest) -> wf.CancelWorkflowResponse:
        return wf.CancelWorkflowResponse(status=wf.WORKFLOW_STATUS_RUNNING)

    async def serve_waits(self, read: Callable[[], Awaitable[Any]], write: Callable[[bytes], Awaitable[None]]) -> None:
        self.wait_streams += 1
        wanted: set[str] = set()

        async def ask() -> None:
            while (data := await read()) is not grpc.aio.EOF:
                request = wf.WaitStreamRequest.FromString(data)
                async with self._changes:
                    if request.stream_id:
                        self._named_waits[request.stream_id] = wanted
                    self.forgotten.extend(request.forget)
                    self.waits.extend(request.run_ids)
                    wanted.update(request.run_ids)
                    wanted.difference_update(request.forget)
                    self._changes.notify_all()

        reader = asyncio.create_task(ask())
        try:
            while not (reader.done() and not wanted):
                async with self._changes:
                    await self._changes.wait_for(lambda: any(each in self.outcomes for each in wanted) or reader.done())
                    ready = [each for each in wanted if each in self.outcomes]
                    wanted.difference_update(ready)
                if ready:
                    response = wf.WaitStreamResponse(outcomes=[self.outcomes[each] for each in ready])
                    await write(response.SerializeToString())
        finally:
            reader.cancel()

    async def until_waited_for(self, *run_ids: str) -> None:
        async with asyncio.timeout(WAIT_S), self._changes:
            await self._changes.wait_for(lambda: set(run_ids) <= set(self.waits))


class _CountedHandlers(grpc.GenericRpcHandler):
    """By WebSocket: the same, and counted."""

    def __init__(self, server: FakeServer) -> None:
        self._server = server

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        handler = _Handlers(self._server).service(handler_call_details)
        path = handler_call_details.method
        if handler.unary_unary is None:

            async def stream(requests: Any, context: Any) -> Any:
                self._server.by_websocket.append(path)
                return await _refusable(handler.stream_stream(requests, _Abortable(context)))

            return grpc.stream_stream_rpc_method_handler(stream)

        async def unary(request: bytes, context: Any) -> Any:
            self._server.by_websocket.append(path)
            return await _refusable(handler.unary_unary(request, _Abortable(context)))

        return grpc.unary_unary_rpc_method_handler(unary)


class _Refused(Exception):
    def __init__(self, status: RpcStatus) -> None:
        self.status = status


class _Abortable:
    """The context of a call by WebSocket, with gRPC's `abort`."""

    def __init__(self, context: Any) -> None:
        self._context = context

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    async def abort(self, code: grpc.StatusCode, details: str, metadata: Any) -> NoReturn:
        raise _Refused(RpcStatus(code, details, metadata))


async def _refusable(answer: Awaitable[Any]) -> Any:
    try:
        return await answer
    except _Refused as refused:
        return refused.status


class _Handlers(grpc.GenericRpcHandler):
    def __init__(self, server: FakeServer) -> None:
        self._server = server

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        method = handler_call_details.method.rpartition("/")[2]
        self._server.metadata.append(dict(handler_call_details.invocation_metadata))
        if method == "Session":
            return grpc.stream_stream_rpc_method_handler(self._session)
        if method == "WaitStream":
            return grpc.stream_stream_rpc_method_handler(self._waits)
        if method == "GetHistory":
            return grpc.unary_stream_rpc_method_handler(
                self._history, request_deserializer=pb.GetHistoryRequest.FromString
            )
        return self._unary(method, handler_call_details.method)

    def _unary(self, method: str, path: str) -> Any:
        async def answer(request: bytes, context: grpc.aio.ServicerContext) -> bytes:
            try:
                response = await self._server.unary(method, _REQUESTS[method].FromString(request))
            except KagziError as error:
                await _abort(context, error)
            return response.SerializeToString()

        return grpc.unary_unary_rpc_method_handler(answer)

    async def _session(self, requests: Any, context: grpc.aio.ServicerContext) -> None:
        session = FakeSession()
        self._server.sessions.put_nowait(session)
        try:
            await session.serve(context.read, context.write)
        except KagziError as error:
            await _abort(context, error)

    async def _waits(self, requests: Any, context: grpc.aio.ServicerContext) -> None:
        await self._server.serve_waits(context.read, context.write)

    async def _history(self, request: pb.GetHistoryRequest, context: grpc.aio.ServicerContext) -> AsyncIterator[bytes]:
        self._server.calls.append(("GetHistory", request))
        try:
            pages = self._server.answers["GetHistory"](request)
        except KagziError as error:
            await _abort(context, error)
        for page in pages:
            if page is None:
                await context.abort(grpc.StatusCode.UNAVAILABLE, "cut")
            yield page.SerializeToString()


async def _abort(context: grpc.aio.ServicerContext, error: KagziError) -> NoReturn:
    status = to_status(error)
    await context.abort(status.code, status.details, status.metadata)
    raise AssertionError("abort returns never")


_REQUESTS: dict[str, Any] = {
    "GetServerInfo": admin_pb2.GetServerInfoRequest,
    "ListSteps": admin_pb2.ListStepsRequest,
    "ReplaceSignal": wf.ReplaceSignalRequest,
    "StartBatch": wf.StartBatchRequest,
    "GetWorkflow": wf.GetWorkflowRequest,
    "ListWorkflows": wf.ListWorkflowsRequest,
    "CancelWorkflow": wf.CancelWorkflowRequest,
    "TerminateWorkflow": wf.TerminateWorkflowRequest,
    "PauseWorkflow": wf.PauseWorkflowRequest,
    "ResumeWorkflow": wf.ResumeWorkflowRequest,
    "RetryWorkflow": wf.RetryWorkflowRequest,
    "WakeStep": wf.WakeStepRequest,
    "ForkWorkflow": wf.ForkWorkflowRequest,
    "SignalWorkflow": wf.SignalWorkflowRequest,
    "SignalWithStart": wf.SignalWithStartRequest,
    "CountWorkflows": wf.CountWorkflowsRequest,
    "ExplainWorkflow": wf.ExplainWorkflowRequest,
    "Heartbeat": pb.HeartbeatRequest,
}

GONE = Unavailable("gone for a moment")


def lease(counter: int = 1, nonce: int = 99) -> common_pb2.Lease:
    return common_pb2.Lease(counter=counter, nonce=nonce)


def task(run_id: str = "r1", counter: int = 1) -> pb.Task:
    return pb.Task(
        run_id=run_id, workflow_type="hello", lease=lease(counter), workflow_id=run_id, namespace_id="default"
    )

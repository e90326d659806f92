"""Batches the starts of one client, many to a message.

Starts of the same event loop iteration, or made while a batch is in flight, share a message. A single start is sent at
once. Many starts are divided into as many batches as the server asks for.
"""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from ...core import limits
from ...core.errors import InternalError, KagziError, PreconditionFailed, Unavailable
from ...core.run.commands import StartRequest
from ...v1 import common_pb2
from ...v1 import workflow_pb2 as pb
from ...wire.calls.call import Metadata
from ...wire.common import read_error
from ...wire.enums import RUN_STATUS_FROM_WIRE
from ...wire.requests import write_start
from ...wire.status import error_of
from ..tracing.tracing import find_tracing, trace_metadata
from ..workflow.codec import ANY
from ..workflow.signals import Signal
from .backend import Backend, encode_signal
from .run import Run
from .start import StartOptions, checked_workflow_name, refuse_oversized, start_request
from .unserved import UNSERVED
from .waits import WaitsOfStarts

if TYPE_CHECKING:  # needs OpenTelemetry
    from ..tracing.spans import StartSpan

BATCH_ITEMS = 100
_BATCHES_UNDER_WAY = 4
_LEAST_PART = 20  # fewer are not worth a message and a transaction of their own
_SMALL_BATCHES_UNDER_WAY = 2  # with more in flight, collecting a larger batch pays off


class _Pending:
    """One start that is not acknowledged yet. `waited`: its caller also waits for the end of the run. `trace`: the
    trace metadata of its span."""

    __slots__ = ("request", "response", "run_id", "trace", "waited", "waits")

    def __init__(
        self,
        request: pb.StartWorkflowRequest,
        response: "asyncio.Future[pb.StartWorkflowResponse]",
        *,
        waited: bool,
        trace: Metadata,
    ) -> None:
        self.request = request
        self.trace = trace
        self.response = response
        self.waited = waited
        self.waits: WaitsOfStarts | None = None
        self.run_id = ""

    def settle(self, item: pb.StartBatchResponse.Item) -> None:
        if self.response.done():
            return
        if item.HasField("started"):
            self.response.set_result(item.started)
        else:
            self.response.set_exception(error_of(read_error(item.error)))

    def subscribed(self, waits: WaitsOfStarts, started: pb.StartWorkflowResponse) -> None:
        """The server will send the end of the run without a further request."""
        self.waits, self.run_id = waits, started.run_id
        waits.subscribed(started.run_id, is_new=not started.already_exists)
        if self.response.done():
            waits.forget(self.run_id)  # the caller no longer waits

    def forget_end(self) -> None:
        if self.waits is not None:
            self.waits.forget(self.run_id)


class Starter:
    """Starts runs for one client."""

    def __init__(self, backend: Backend, namespace: str) -> None:
        self._backend = backend
        self._namespace = namespace
        self._tracing = find_tracing()
        self._pending: dict[str, list[_Pending]] = {}
        self._under_way: dict[asyncio.Task[None], int] = {}  # with the number of starts of each
        self._flush_due = False
        self._unanswered = 0  # starts in flight, over all batches

    async def start(self, options: StartOptions, request_id: str | None = None) -> Run[Any]:
        """Raises KagziError. Cancelling the caller does not stop the start."""
        span = self._span_of(options)
        request = self._request(options, request_id or self._backend.new_id(), span)
        response = self._queue(request, span).response
        return self._run(options, request, await (response if span is None else span.of(response)))

    async def run(self, options: StartOptions) -> Any:
        """Start a run and wait for its result. Raises KagziError. The start itself announces the wait: if a wait stream
        is open, no further request is needed."""
        span = self._span_of(options)
        request = self._request(options, self._backend.new_id(), span)
        pending = self._queue(request, span, waited=True)
        try:
            response = await (pending.response if span is None else span.of(pending.response))
            return await self._run(options, request, response).result()
        finally:
            pending.forget_end()

    def _queue(self, request: StartRequest, span: "StartSpan | None", *, waited: bool = False) -> _Pending:
        loop = asyncio.get_running_loop()
        trace = trace_metadata() if span is None else span.metadata
        pending = _Pending(write_start(request), loop.create_future(), waited=waited, trace=trace)
        queued = self._pending.get(request.namespace)
        if queued is None:
            self._pending[request.namespace] = [pending]
        else:
            queued.append(pending)
        if not self._flush_due:
            self._flush_due = True
            loop.call_soon(self._flush)
        return pending

    async def signal_with_start(self, options: StartOptions, signal: Signal[Any] | str, value: Any) -> Run[Any]:
        """Both or neither, in a message of its own."""
        span = self._span_of(options)
        start = self._request(options, self._backend.new_id(), span)
        name, payload = encode_signal(signal, value)
        request = pb.SignalWithStartRequest(
            start=write_start(start),
            signal_name=name,
            payload=payload,
            request_id=start.request_id,
            namespace_id=start.namespace,
        )
        trace = trace_metadata() if span is None else span.metadata
        call = self._backend.call(lambda link: link.workflows.SignalWithStart, request, trace=trace)
        response = await call if span is None else await span.of(call)
        return self._run(options, start, response.started)

    def _span_of(self, options: StartOptions) -> "StartSpan | None":
        """The span of a start, if this program records spans."""
        if self._tracing is None:
            return None
        if options.context is not None and not isinstance(cast("object", options.context), Mapping):
            return None  # encoding it raises the error
        name = checked_workflow_name(options.workflow)
        return self._tracing.start(options.namespace or self._namespace, name, options.context)

    def _request(self, options: StartOptions, request_id: str, span: "StartSpan | None") -> StartRequest:
        request = start_request(options, namespace=self._namespace, request_id=request_id, span=span)
        refuse_oversized(request, self._backend.connection.max_payload_bytes)
        return request

    def _run(self, options: StartOptions, request: StartRequest, response: pb.StartWorkflowResponse) -> Run[Any]:
        UNSERVED.warn(request.namespace, request.workflow_type, response.warning)
        return Run(
            self._backend,
            request.namespace,
            output=ANY if isinstance(options.workflow, str) else options.workflow.output_codec,
            run_id=response.run_id,
            workflow_id=response.workflow_id,
            url=response.url,
            created=not response.already_exists,
            last_status=RUN_STATUS_FROM_WIRE.get(response.status),
        )

    def _flush(self) -> None:
        self._flush_due = False
        for namespace in list(self._pending):
            while (pending := self._pending.get(namespace)) and self._may_leave(pending):
                batch = _take_batch(pending, self._most_items(pending))
                if not pending:
                    del self._pending[namespace]
                task = asyncio.get_running_loop().create_task(self._send(namespace, batch))
                self._under_way[task] = len(batch)
                self._unanswered += len(batch)
                task.add_done_callback(self._sent)

    def _most_items(self, pending: list[_Pending]) -> int:
        """The size of a batch: the unanswered starts divided by the number of batches that the server wants. While one
        is written, client and server prepare the next; in one message, every start would wait for all others."""
        part = -(-(self._unanswered + len(pending)) // self._backend.connection.start_batches)
        return BATCH_ITEMS if part < _LEAST_PART else min(part, BATCH_ITEMS)

    def _may_leave(self, pending: list[_Pending]) -> bool:
        limit = _BATCHES_UNDER_WAY if len(pending) >= BATCH_ITEMS else _SMALL_BATCHES_UNDER_WAY
        return len(self._under_way) < limit

    def _sent(self, task: asyncio.Task[None]) -> None:
        self._unanswered -= self._under_way.pop(task)
        if self._pending:
            self._flush()

    async def _send(self, namespace: str, batch: list[_Pending]) -> None:
        request = pb.StartBatchRequest(namespace_id=namespace, starts=[each.request for each in batch])
        waited = [place for place, each in enumerate(batch) if each.waited]
        waits = self._backend.waits.for_starts(namespace) if waited else None
        if waits is None:
            await self._ask(request, batch)
            return
        request.wait_stream_id = waits.stream_id
        request.waited.extend(waited)
        try:
            await self._ask(request, batch, waits)
        finally:
            waits.close()

    async def _ask(
        self, request: pb.StartBatchRequest, batch: list[_Pending], waits: WaitsOfStarts | None = None
    ) -> None:
        try:
            response = await self._backend.call(
                lambda link: link.workflows.StartBatch, request, refused=_store_is_away, trace=batch[0].trace
            )
        except KagziError as error:
            _settle_all(batch, error)
            return
        except asyncio.CancelledError:
            _settle_all(batch, _closed())
            raise
        if len(response.items) != len(batch):
            _settle_all(batch, InternalError(f"{len(batch)} starts got {len(response.items)} responses."))
            return
        for pending, item in zip(batch, response.items, strict=True):
            if pending.waited and waits is not None and response.subscribed and item.HasField("started"):
                pending.subscribed(waits, item.started)
            pending.settle(item)

    async def close(self) -> None:
        """Starts in flight are aborted; whether they took effect is unknown."""
        tasks = list(self._under_way)
        for task in tasks:
            task.cancel()
        for pending in self._pending.values():
            _settle_all(pending, _closed())
        self._pending.clear()
        await asyncio.gather(*tasks, return_exceptions=True)


def _take_batch(pending: list[_Pending], most: int) -> list[_Pending]:
    """Remove and return the first starts: at most `most`, and as many as fit into a message."""
    size = 0
    count = 0
    for each in pending[:most]:
        size += each.request.ByteSize()
        if count and size > limits.MESSAGE_SOFT_BYTES:
            break
        count += 1
    batch = pending[:count]
    del pending[:count]
    return batch


def _store_is_away(response: pb.StartBatchResponse) -> Unavailable | None:
    """The error if the server accepted the starts but could not write some. All can be sent again: each has a
    request id."""
    for item in response.items:
        if item.error.code == common_pb2.ERROR_CODE_UNAVAILABLE:
            error = error_of(read_error(item.error))
            return error if isinstance(error, Unavailable) else None
    return None


def _settle_all(batch: list[_Pending], error: KagziError) -> None:
    for pending in batch:
        if not pending.response.done():
            pending.response.set_exception(error)


def _closed() -> PreconditionFailed:
    return PreconditionFailed("This client was closed during a start. Whether the run exists is unknown.")

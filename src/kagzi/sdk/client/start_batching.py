"""Batches the starts of one client, many to a message.

Whatever is started in the same loop pass, or while a batch is under way, travels together. A lone start leaves at once.
"""

import asyncio
from typing import Any, NamedTuple

from ...core import limits
from ...core.errors import InternalError, KagziError, PreconditionFailed, Unavailable
from ...core.run.commands import StartRequest
from ...v1 import common_pb2
from ...v1 import workflow_pb2 as pb
from ...wire.common import read_error
from ...wire.enums import RUN_STATUS_FROM_WIRE
from ...wire.requests import write_start
from ...wire.status import error_of
from ..workflow.codec import ANY
from ..workflow.signals import Signal
from .backend import Backend, encode_signal
from .run import Run
from .start import StartOptions, refuse_oversized, start_request
from .unserved import UNSERVED

BATCH_ITEMS = 100
_BATCHES_UNDER_WAY = 4
_SMALL_BATCHES_UNDER_WAY = 2  # beyond that, waiting for company is worth more than leaving


class _Pending(NamedTuple):
    """One start that is not acknowledged yet."""

    request: pb.StartWorkflowRequest
    response: "asyncio.Future[pb.StartWorkflowResponse]"


class Starter:
    """Starts runs for one client."""

    def __init__(self, backend: Backend, namespace: str) -> None:
        self._backend = backend
        self._namespace = namespace
        self._pending: dict[str, list[_Pending]] = {}
        self._under_way: set[asyncio.Task[None]] = set()
        self._flush_due = False

    async def start(self, options: StartOptions, request_id: str | None = None) -> Run[Any]:
        """Raises KagziError. A caller who stops waiting does not stop the start."""
        request = self._request(options, request_id or self._backend.new_id())
        loop = asyncio.get_running_loop()
        pending = _Pending(write_start(request), loop.create_future())
        self._pending.setdefault(request.namespace, []).append(pending)
        if not self._flush_due:
            self._flush_due = True
            loop.call_soon(self._flush)
        return self._run(options, request, await pending.response)

    async def signal_with_start(self, options: StartOptions, signal: Signal[Any] | str, value: Any) -> Run[Any]:
        """Both or neither, in a message of its own."""
        start = self._request(options, self._backend.new_id())
        name, payload = encode_signal(signal, value)
        request = pb.SignalWithStartRequest(
            start=write_start(start),
            signal_name=name,
            payload=payload,
            request_id=start.request_id,
            namespace_id=start.namespace,
        )
        response = await self._backend.call(lambda link: link.workflows.SignalWithStart, request)
        return self._run(options, start, response.started)

    def _request(self, options: StartOptions, request_id: str) -> StartRequest:
        request = start_request(options, namespace=self._namespace, request_id=request_id)
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
                batch = _take_batch(pending)
                if not pending:
                    del self._pending[namespace]
                task = asyncio.get_running_loop().create_task(self._send(namespace, batch))
                self._under_way.add(task)
                task.add_done_callback(self._sent)

    def _may_leave(self, pending: list[_Pending]) -> bool:
        limit = _BATCHES_UNDER_WAY if len(pending) >= BATCH_ITEMS else _SMALL_BATCHES_UNDER_WAY
        return len(self._under_way) < limit

    def _sent(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        if self._pending:
            self._flush()

    async def _send(self, namespace: str, batch: list[_Pending]) -> None:
        request = pb.StartBatchRequest(namespace_id=namespace, starts=[each.request for each in batch])
        try:
            response = await self._backend.call(lambda link: link.workflows.StartBatch, request, refused=_store_is_away)
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
            _settle(pending, item)

    async def close(self) -> None:
        """Starts under way are cut short; whether they took place is unknown."""
        tasks = list(self._under_way)
        for task in tasks:
            task.cancel()
        for pending in self._pending.values():
            _settle_all(pending, _closed())
        self._pending.clear()
        await asyncio.gather(*tasks, return_exceptions=True)


def _take_batch(pending: list[_Pending]) -> list[_Pending]:
    """The first of them, as many as fit into a message; they are taken off the list."""
    size = 0
    count = 0
    for each in pending[:BATCH_ITEMS]:
        size += each.request.ByteSize()
        if count and size > limits.MESSAGE_SOFT_BYTES:
            break
        count += 1
    batch = pending[:count]
    del pending[:count]
    return batch


def _store_is_away(response: pb.StartBatchResponse) -> Unavailable | None:
    """Starts that could not be written although the server took them. All can be sent again: each has its request
    id."""
    for item in response.items:
        if item.error.code == common_pb2.ERROR_CODE_UNAVAILABLE:
            error = error_of(read_error(item.error))
            return error if isinstance(error, Unavailable) else None
    return None


def _settle(pending: _Pending, item: pb.StartBatchResponse.Item) -> None:
    if pending.response.done():
        return
    if item.HasField("started"):
        pending.response.set_result(item.started)
    else:
        pending.response.set_exception(error_of(read_error(item.error)))


def _settle_all(batch: list[_Pending], error: KagziError) -> None:
    for pending in batch:
        if not pending.response.done():
            pending.response.set_exception(error)


def _closed() -> PreconditionFailed:
    return PreconditionFailed("This client was closed during a start. Whether the run exists is unknown.")

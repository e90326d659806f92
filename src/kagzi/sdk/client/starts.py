"""Starts of one client, many to a message.

Whatever is started in the same loop pass, or while a batch is under way, travels together. A lone start leaves at once.
"""

import asyncio

from ...core import limits
from ...core.commands import StartRequest
from ...core.errors import InternalError, KagziError, PreconditionFailed, Unavailable
from ...v1 import common_pb2
from ...v1 import workflow_pb2 as pb
from ...wire.common import read_error
from ...wire.runs import write_start
from ...wire.status import error_of
from ..transport.connection import Connection

BATCH_ITEMS = 100
_BATCHES_UNDER_WAY = 4
_SMALL_BATCHES_UNDER_WAY = 2  # beyond that, waiting for company is worth more than leaving


class _Asked:
    """One start that nobody has answered yet."""

    __slots__ = ("answer", "letter")

    def __init__(self, letter: pb.StartWorkflowRequest, answer: "asyncio.Future[pb.StartWorkflowResponse]") -> None:
        self.letter = letter
        self.answer = answer


class Starter:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._asked: dict[str, list[_Asked]] = {}
        self._under_way: set[asyncio.Task[None]] = set()
        self._flush_due = False

    def start(self, request: StartRequest) -> "asyncio.Future[pb.StartWorkflowResponse]":
        """The server's answer, or a KagziError. A caller who stops waiting does not stop the start."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[pb.StartWorkflowResponse] = loop.create_future()
        self._asked.setdefault(request.namespace, []).append(_Asked(write_start(request), answer))
        if not self._flush_due:
            self._flush_due = True
            loop.call_soon(self._flush)
        return answer

    def _flush(self) -> None:
        self._flush_due = False
        for namespace in list(self._asked):
            while (asked := self._asked.get(namespace)) and self._may_leave(asked):
                batch = _cut(asked)
                if not asked:
                    del self._asked[namespace]
                task = asyncio.get_running_loop().create_task(self._send(namespace, batch))
                self._under_way.add(task)
                task.add_done_callback(self._sent)

    def _may_leave(self, asked: list[_Asked]) -> bool:
        limit = _BATCHES_UNDER_WAY if len(asked) >= BATCH_ITEMS else _SMALL_BATCHES_UNDER_WAY
        return len(self._under_way) < limit

    def _sent(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        if self._asked:
            self._flush()

    async def _send(self, namespace: str, batch: list[_Asked]) -> None:
        request = pb.StartBatchRequest(namespace_id=namespace, starts=[asked.letter for asked in batch])
        try:
            response = await self._connection.call(
                lambda link: link.workflows.StartBatch, request, refused=_store_is_away
            )
        except KagziError as error:
            _settle_all(batch, error)
            return
        except asyncio.CancelledError:
            _settle_all(batch, _closed())
            raise
        if len(response.items) != len(batch):
            _settle_all(batch, InternalError(f"{len(batch)} starts got {len(response.items)} answers."))
            return
        for asked, item in zip(batch, response.items, strict=True):
            _settle(asked, item)

    async def close(self) -> None:
        """Starts under way are cut short; whether they took place is unknown."""
        tasks = list(self._under_way)
        for task in tasks:
            task.cancel()
        for asked in self._asked.values():
            _settle_all(asked, _closed())
        self._asked.clear()
        await asyncio.gather(*tasks, return_exceptions=True)


def _cut(asked: list[_Asked]) -> list[_Asked]:
    """The first of them, as many as fit into a message; they are taken off the list."""
    size = 0
    count = 0
    for each in asked[:BATCH_ITEMS]:
        size += each.letter.ByteSize()
        if count and size > limits.MESSAGE_SOFT_BYTES:
            break
        count += 1
    batch = asked[:count]
    del asked[:count]
    return batch


def _store_is_away(response: pb.StartBatchResponse) -> Unavailable | None:
    """Starts that could not be written although the server took them. All can be sent again: each has its request id."""
    for item in response.items:
        if item.error.code == common_pb2.ERROR_CODE_UNAVAILABLE:
            error = error_of(read_error(item.error))
            return error if isinstance(error, Unavailable) else None
    return None


def _settle(asked: _Asked, item: pb.StartBatchResponse.Item) -> None:
    if asked.answer.done():
        return
    if item.HasField("started"):
        asked.answer.set_result(item.started)
    else:
        asked.answer.set_exception(error_of(read_error(item.error)))


def _settle_all(batch: list[_Asked], error: KagziError) -> None:
    for asked in batch:
        if not asked.answer.done():
            asked.answer.set_exception(error)


def _closed() -> PreconditionFailed:
    return PreconditionFailed("This client was closed while a start was under way. Whether the run exists is unknown.")

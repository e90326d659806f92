"""Waits for the ends of runs: many waits share one stream and are sent again after it breaks.

A stream of waits is either closed, open, or broken until the next one is opened. It is left as a whole: nothing is read
from a stream on which nothing is written any more (docs/adr/0088-a-stream-of-waits-is-left-as-a-whole.md).
"""

import asyncio
import logging
from collections.abc import Callable, Iterable

import grpc.aio

from ...core.errors import InternalError, KagziError, PreconditionFailed, not_found
from ...core.records import RunEnd
from ...v1 import workflow_pb2 as pb
from ...wire.requests import read_outcome
from ..transport.connection import Connection
from ..transport.link import Link
from ..transport.tries import Tries
from ..transport.unreachable import Outage
from .wait_table import WaitTable

logger = logging.getLogger("kagzi.client")

OUTAGE_S = 300.0  # waits may be long, so they survive long outages
IDLE_S = 10.0  # how long a stream without waits stays open

_Call = grpc.aio.StreamStreamCall[pb.WaitStreamRequest, pb.WaitStreamResponse]
_Waiter = asyncio.Future[RunEnd]


class Waits:
    """All waits of one client."""

    def __init__(self, connection: Connection, new_id: Callable[[], str]) -> None:
        self._connection = connection
        self._new_id = new_id
        self._streams: dict[str, list[_Waiting]] = {}

    async def ended(self, namespace: str, run_id: str) -> RunEnd:
        """How the run ended. Raises NotFound; Unavailable after minutes without a server."""
        streams = self._streams.setdefault(namespace, [])
        stream = next((each for each in streams if each.table.can_add(run_id)), None)
        if stream is None:
            stream = _Waiting(self._connection, namespace, self._new_id)
            streams.append(stream)
        return await stream.ended(run_id)

    def for_starts(self, namespace: str) -> "WaitsOfStarts | None":
        """The stream on which the server can send the ends of runs that are about to be started, without a further
        request; None if none is open."""
        streams = self._streams.get(namespace, ())
        return next((WaitsOfStarts(each.table) for each in streams if each.table.can_be_named), None)

    async def close(self) -> None:
        for streams in self._streams.values():
            for stream in streams:
                await stream.close()
        self._streams.clear()


class WaitsOfStarts:
    """The waits of one message of starts, whose runs have no ids yet. `stream_id` is sent to the server. `close` it
    when the message has been answered, after `subscribed`, or has failed."""

    def __init__(self, table: WaitTable[_Waiter]) -> None:
        self._table = table
        self.stream_id = table.stream_id
        table.starts_under_way += 1

    def subscribed(self, run_id: str, *, is_new: bool) -> None:
        """The end of this run arrives on the stream, or is requested. It is kept until it is awaited or forgotten.
        `is_new`: the run did not exist before the start."""
        self._table.started(run_id, self.stream_id, is_new=is_new)

    def forget(self, run_id: str) -> None:
        """The end of this run will not be awaited."""
        self._table.forget_start(run_id)

    def close(self) -> None:
        self._table.end_start()


class _Waiting:
    """The waits that share a stream. The stream is open while there are waits, and a little longer."""

    def __init__(self, connection: Connection, namespace: str, new_id: Callable[[], str]) -> None:
        self._connection = connection
        self._new_id = new_id
        self._namespace = namespace
        self._changed = asyncio.Event()
        self.table: WaitTable[_Waiter] = WaitTable(self._changed.set)
        self._tries: Tries | None = None
        self._task: asyncio.Task[None] | None = None

    async def ended(self, run_id: str) -> RunEnd:
        waiter: _Waiter = asyncio.get_running_loop().create_future()
        end = self.table.want(run_id, waiter)
        if end is not None:
            return end
        if self._task is None:
            self._task = asyncio.create_task(self._live(), name="kagzi-waits")
        try:
            return await waiter
        finally:
            self.table.give_up(run_id, waiter)

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))
        self._fail(PreconditionFailed("This client was closed while a result was awaited."))

    # --- the stream ---------------------------------------------------------------------------------------------------

    async def _live(self) -> None:
        try:
            await self._keep_open()
        except KagziError as error:
            self._fail(error)
        except Exception as error:
            logger.exception("the stream of waits failed")
            self._fail(InternalError(f"the stream of waits failed: {error!r}"))
        finally:
            self._task = None  # whoever waits from now on opens another one

    async def _keep_open(self) -> None:
        """Keeps a stream open until there are no waits. Raises the reason if that fails."""
        with self._connection.tries(OUTAGE_S, stream=True) as tries:
            self._tries = tries
            while self.table.is_wanted:
                link = self._connection.link
                tries.next_timeout_s()
                problem = await self._one_stream(link)
                if problem is not None and self.table.is_wanted:
                    await self._connection.try_again(tries, link, problem)

    async def _one_stream(self, link: Link) -> KagziError | Outage | None:
        """Sends all waits until the stream ends. Returns why it broke; None if there were no waits for a while."""
        try:
            with link:
                is_broken = await self._converse(link)
        except grpc.aio.AioRpcError as error:
            return self._connection.problem_of(error)
        return self._connection.broken("closed the stream of waits") if is_broken else None

    async def _converse(self, link: Link) -> bool:
        """Returns whether the server ended the stream. Raises the status if it failed."""
        call = link.workflows.WaitStream(metadata=link.metadata)
        self.table.open_stream(self._new_id())
        reader = asyncio.create_task(self._read(call), name="kagzi-waits-read")
        writer = asyncio.create_task(self._write(call), name="kagzi-waits-write")
        try:
            await asyncio.wait((reader, writer), return_when=asyncio.FIRST_COMPLETED)
            if call.done():  # the reader is told why, also if the writer has noticed first
                await asyncio.wait((reader,))
        finally:
            self.table.close_stream()
            call.cancel()
            reader.cancel()
            writer.cancel()
            await asyncio.wait((reader, writer))
        failure = None if writer.cancelled() else writer.exception()
        if not reader.cancelled():
            reader.result()
        elif failure is not None:
            raise failure
        elif not writer.cancelled():
            return False
        return True

    async def _write(self, call: _Call) -> None:
        """Returns when there were no waits for a while."""
        while True:
            while (message := self.table.next_message()) is not None:
                await call.write(
                    pb.WaitStreamRequest(
                        namespace_id=self._namespace,
                        run_ids=message.run_ids,
                        forget=message.forget,
                        stream_id=message.stream_id,
                    )
                )
                self.table.sent()
            self._changed.clear()
            if not await self._has_changed():
                return

    async def _has_changed(self) -> bool:
        """Returns False when there were no waits for a while."""
        while True:
            try:
                async with asyncio.timeout(IDLE_S):
                    await self._changed.wait()
                return True
            except TimeoutError:
                if self.table.is_idle:
                    return False

    async def _read(self, call: _Call) -> None:
        while isinstance(response := await call.read(), pb.WaitStreamResponse):
            if self._tries is not None:
                self._tries.succeeded()
            for outcome in response.outcomes:
                end = read_outcome(outcome, namespace=self._namespace)
                for waiter in self.table.ended(outcome.run_id, end):
                    if not waiter.done():
                        waiter.set_result(end)
            for run_id in response.not_found:
                _fail(self.table.missing(run_id), not_found("run", run_id))

    def _fail(self, problem: KagziError) -> None:
        _fail(self.table.fail(), problem)


def _fail(waiters: Iterable[_Waiter], problem: KagziError) -> None:
    for waiter in waiters:
        if not waiter.done():
            waiter.set_exception(problem)

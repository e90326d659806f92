"""Waits for the ends of runs: many waits share one stream and are sent again after it breaks."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable

import grpc.aio

from ...core import limits
from ...core.errors import InternalError, KagziError, PreconditionFailed, not_found
from ...core.records import RunEnd
from ...v1 import workflow_pb2 as pb
from ...wire.requests import read_outcome
from ..transport.connection import Connection
from ..transport.link import Link
from ..transport.tries import Tries
from ..transport.unreachable import Outage

logger = logging.getLogger("kagzi.client")

OUTAGE_S = 300.0  # waits may be long, so they survive long outages
IDLE_S = 10.0  # how long a stream without waits stays open
_IDS_PER_MESSAGE = 1_000

_Call = grpc.aio.StreamStreamCall[pb.WaitStreamRequest, pb.WaitStreamResponse]


class Waits:
    """All waits of one client."""

    def __init__(self, connection: Connection, new_id: Callable[[], str]) -> None:
        self._connection = connection
        self._new_id = new_id
        self._streams: dict[str, list[_Waiting]] = {}

    async def ended(self, namespace: str, run_id: str) -> RunEnd:
        """How the run ended. Raises NotFound; Unavailable after minutes without a server."""
        streams = self._streams.setdefault(namespace, [])
        stream = next((each for each in streams if each.can_add(run_id)), None)
        if stream is None:
            stream = _Waiting(self._connection, namespace, self._new_id)
            streams.append(stream)
        return await stream.ended(run_id)

    def for_starts(self, namespace: str) -> "WaitsOfStarts | None":
        """The stream on which the server can send the ends of runs that are about to be started, without a further
        request; None if none is open."""
        return next((WaitsOfStarts(each) for each in self._streams.get(namespace, ()) if each.can_be_named), None)

    async def close(self) -> None:
        for streams in self._streams.values():
            for stream in streams:
                await stream.close()
        self._streams.clear()


class WaitsOfStarts:
    """The waits of one message of starts, whose runs have no ids yet. `stream_id` is sent to the server. `close` it
    when the message has been answered, after `subscribed`, or has failed."""

    def __init__(self, stream: "_Waiting") -> None:
        self._stream = stream
        self.stream_id = stream.stream_id
        stream.starts_under_way += 1

    def subscribed(self, run_id: str) -> None:
        """The end of this run arrives on the stream, or is requested if the stream broke meanwhile. It is kept until it
        is awaited or forgotten."""
        self._stream.subscribed(run_id, ask=self.stream_id != self._stream.stream_id)

    def forget(self, run_id: str) -> None:
        """The end of this run will not be awaited."""
        self._stream.forget_unawaited(run_id)

    def close(self) -> None:
        self._stream.starts_under_way -= 1
        self._stream.drop_unexpected()


class _Waiting:
    """The waits that share a stream. The stream is open while there are waits, and a little longer."""

    def __init__(self, connection: Connection, namespace: str, new_id: Callable[[], str]) -> None:
        self._connection = connection
        self._new_id = new_id
        self._namespace = namespace
        self._wanted: dict[str, list[asyncio.Future[RunEnd]]] = {}
        self._fresh: list[str] = []
        self._forgotten: list[str] = []
        self._ended: dict[str, RunEnd] = {}  # arrived before they were awaited: their starts are still in flight
        self.starts_under_way = 0
        self.stream_id = ""  # set while the server knows the stream by it
        self._wake = asyncio.Event()
        self._tries: Tries | None = None
        self._task: asyncio.Task[None] | None = None

    def can_add(self, run_id: str) -> bool:
        return run_id in self._wanted or len(self._wanted) < limits.WAITS_PER_STREAM

    @property
    def can_be_named(self) -> bool:
        is_full = len(self._wanted) + _IDS_PER_MESSAGE > limits.WAITS_PER_STREAM
        return bool(self.stream_id) and not is_full and len(self._ended) < _IDS_PER_MESSAGE

    def subscribed(self, run_id: str, *, ask: bool) -> None:
        if run_id not in self._wanted:
            self._wanted[run_id] = []
            if ask and run_id not in self._ended:
                self._fresh.append(run_id)
                self._wake.set()

    def forget_unawaited(self, run_id: str) -> None:
        if self._wanted.get(run_id) == []:
            self._stop_asking(run_id)

    def drop_unexpected(self) -> None:
        """Drop ends that no start will await: the message with their starts was not answered."""
        if not self.starts_under_way and self._ended:
            self._ended = {run_id: end for run_id, end in self._ended.items() if run_id in self._wanted}

    async def ended(self, run_id: str) -> RunEnd:
        if run_id in self._ended and self._wanted.get(run_id) == []:
            del self._wanted[run_id]
            return self._ended.pop(run_id)
        waiter: asyncio.Future[RunEnd] = asyncio.get_running_loop().create_future()
        waiters = self._wanted.get(run_id)
        if waiters is None:
            self._wanted[run_id] = [waiter]
            self._fresh.append(run_id)
            self._wake.set()
        else:
            waiters.append(waiter)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._live(), name="kagzi-waits")
        try:
            return await waiter
        finally:
            self._stop_waiting(run_id, waiter)

    def _stop_waiting(self, run_id: str, waiter: "asyncio.Future[RunEnd]") -> None:
        waiters = self._wanted.get(run_id)
        if waiters is None or waiter not in waiters:
            return
        waiters.remove(waiter)
        if not waiters:
            self._stop_asking(run_id)

    def _stop_asking(self, run_id: str) -> None:
        del self._wanted[run_id]
        if self._ended.pop(run_id, None) is None:
            self._forgotten.append(run_id)
            self._wake.set()

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

    async def _keep_open(self) -> None:
        """Keeps a stream open until there are no waits. Raises the reason if that fails."""
        with self._connection.tries(OUTAGE_S, stream=True) as tries:
            while True:
                link = self._connection.link
                self._tries = tries
                tries.next_timeout_s()
                problem = await self._one_stream(link)
                if not self._wanted:
                    return
                await self._connection.try_again(tries, link, problem)

    async def _one_stream(self, link: Link) -> KagziError | Outage:
        """Sends all waits until the stream ends. Returns why it ended."""
        try:
            with link:
                await self._converse(link)
        except grpc.aio.AioRpcError as error:
            return self._connection.problem_of(error)
        return self._connection.broken("closed the stream of waits")

    async def _converse(self, link: Link) -> None:
        call = link.workflows.WaitStream(metadata=link.metadata)
        writer = asyncio.create_task(self._write(call), name="kagzi-waits-write")
        try:
            async for response in _responses(call):
                self._take_in(response)
        finally:
            self.stream_id = ""
            call.cancel()
            writer.cancel()
            await asyncio.wait((writer,))
            if not writer.cancelled():
                writer.exception()  # the stream is broken; the reader reports why

    async def _write(self, call: _Call) -> None:
        self._forgotten.clear()
        self._fresh = [run_id for run_id in self._wanted if run_id not in self._ended]
        stream_id = self._new_id()
        while True:
            fresh, self._fresh = self._fresh[:_IDS_PER_MESSAGE], self._fresh[_IDS_PER_MESSAGE:]
            forgotten, self._forgotten = self._forgotten, []
            if fresh or forgotten:
                request = pb.WaitStreamRequest(namespace_id=self._namespace, run_ids=fresh, forget=forgotten)
                if not self.stream_id:
                    request.stream_id = stream_id
                await call.write(request)
                self.stream_id = stream_id
            if not self._fresh and not await self._something_new():
                self.stream_id = ""
                await call.done_writing()
                return

    async def _something_new(self) -> bool:
        """Returns False once there have been no waits for a while."""
        while not self._wake.is_set():
            try:
                async with asyncio.timeout(IDLE_S):
                    await self._wake.wait()
            except TimeoutError:
                if not self._wanted and not self.starts_under_way:
                    return False
        self._wake.clear()
        return True

    def _take_in(self, response: pb.WaitStreamResponse) -> None:
        if self._tries is not None:
            self._tries.succeeded()
        for outcome in response.outcomes:
            end = read_outcome(outcome, namespace=self._namespace)
            if not self._wanted.get(outcome.run_id):
                if outcome.run_id in self._wanted or self.starts_under_way:
                    self._ended[outcome.run_id] = end
                continue
            for waiter in self._wanted.pop(outcome.run_id):
                if not waiter.done():
                    waiter.set_result(end)
        for run_id in response.not_found:
            for waiter in self._wanted.pop(run_id, ()):
                if not waiter.done():
                    waiter.set_exception(not_found("run", run_id))

    def _fail(self, problem: KagziError) -> None:
        wanted, self._wanted = self._wanted, {}
        for waiters in wanted.values():
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_exception(problem)


async def _responses(call: _Call) -> AsyncIterator[pb.WaitStreamResponse]:
    while isinstance(response := await call.read(), pb.WaitStreamResponse):
        yield response

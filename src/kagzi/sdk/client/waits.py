"""Waits for the ends of runs: many waits on one stream, sent again after a break."""

import asyncio
import logging
from collections.abc import AsyncIterator

import grpc.aio

from ...core import limits
from ...core.errors import InternalError, KagziError, PreconditionFailed, not_found
from ...core.records import RunEnd
from ...v1 import workflow_pb2 as pb
from ...wire.requests import read_outcome
from ..transport.connection import Connection, Link
from ..transport.tries import Tries
from ..transport.unreachable import Outage

logger = logging.getLogger("kagzi.client")

OUTAGE_S = 300.0  # a wait may be long, and so may be an outage in it
IDLE_S = 10.0  # how long a stream without waits is kept for the next one
_IDS_PER_MESSAGE = 1_000

_Call = grpc.aio.StreamStreamCall[pb.WaitStreamRequest, pb.WaitStreamResponse]


class Waits:
    """All waits of one client."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._streams: dict[str, list[_Waiting]] = {}

    async def ended(self, namespace: str, run_id: str) -> RunEnd:
        """How the run ended. Raises NotFound; Unavailable after minutes without a server."""
        streams = self._streams.setdefault(namespace, [])
        stream = next((each for each in streams if each.can_add(run_id)), None)
        if stream is None:
            stream = _Waiting(self._connection, namespace)
            streams.append(stream)
        return await stream.ended(run_id)

    async def close(self) -> None:
        for streams in self._streams.values():
            for stream in streams:
                await stream.close()
        self._streams.clear()


class _Waiting:
    """The waits that share a stream. It is open while there are any, and a little longer."""

    def __init__(self, connection: Connection, namespace: str) -> None:
        self._connection = connection
        self._namespace = namespace
        self._wanted: dict[str, list[asyncio.Future[RunEnd]]] = {}
        self._fresh: list[str] = []
        self._forgotten: list[str] = []
        self._wake = asyncio.Event()
        self._tries: Tries | None = None
        self._task: asyncio.Task[None] | None = None

    def can_add(self, run_id: str) -> bool:
        return run_id in self._wanted or len(self._wanted) < limits.WAITS_PER_STREAM

    async def ended(self, run_id: str) -> RunEnd:
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
            del self._wanted[run_id]
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
        """Until nobody waits. Raises why it cannot be kept open."""
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
        """Ask for everything that is wanted, until the stream ends. Returns why it ended."""
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
            call.cancel()
            writer.cancel()
            await asyncio.wait((writer,))
            if not writer.cancelled():
                writer.exception()  # a broken stream; the reader says how it broke

    async def _write(self, call: _Call) -> None:
        self._forgotten.clear()
        self._fresh = list(self._wanted)
        while True:
            fresh, self._fresh = self._fresh[:_IDS_PER_MESSAGE], self._fresh[_IDS_PER_MESSAGE:]
            forgotten, self._forgotten = self._forgotten, []
            if fresh or forgotten:
                await call.write(pb.WaitStreamRequest(namespace_id=self._namespace, run_ids=fresh, forget=forgotten))
            if not self._fresh and not await self._something_new():
                await call.done_writing()
                return

    async def _something_new(self) -> bool:
        """False: nobody waits any more, for a while now."""
        while not self._wake.is_set():
            try:
                async with asyncio.timeout(IDLE_S):
                    await self._wake.wait()
            except TimeoutError:
                if not self._wanted:
                    return False
        self._wake.clear()
        return True

    def _take_in(self, response: pb.WaitStreamResponse) -> None:
        if self._tries is not None:
            self._tries.succeeded()
        for outcome in response.outcomes:
            end = read_outcome(outcome, namespace=self._namespace)
            for waiter in self._wanted.pop(outcome.run_id, ()):
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

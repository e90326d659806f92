"""The waits of a client and of a server, with a network between them that delays, breaks and is away. Time does not
pass by itself."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, cast

import grpc
import grpc.aio

from kagzi.core import limits
from kagzi.core.errors import DOWN_SERVER, KagziError
from kagzi.core.records import Payload, RunEnd, RunKey
from kagzi.core.states import RunStatus
from kagzi.engine.services.waits import WaitHub
from kagzi.engine.services.waits import Waits as ServedWaits
from kagzi.sdk.client.waits import Waits
from kagzi.sdk.transport.connection import Connection
from kagzi.sdk.transport.unreachable import Outage
from kagzi.server.grpc.answer_budget import Answers
from kagzi.server.grpc.deadlines import Deadlines
from kagzi.server.grpc.wait_stream import WaitStream, WaitStreams
from kagzi.store.protocol import Store
from kagzi.v1 import workflow_pb2 as pb

NAMESPACE = "default"
RECONNECT_S = 0.05


def run_id(number: int) -> str:
    return f"00000000-0000-7000-8000-{number:012d}"


def run_end(run: str) -> RunEnd:
    return RunEnd(run=RunKey(NAMESPACE, run), status=RunStatus.COMPLETED, output=Payload(data=run.encode()))


class Network:
    """`delay_s`: how long the next message is on its way."""

    def __init__(self, delay_s: Callable[[], float] = lambda: 0.001) -> None:
        self.delay_s = delay_s
        self.is_away = False
        self.calls: list[Call] = []

    def break_all(self) -> None:
        for call in self.calls:
            call.fail()

    @property
    def open_calls(self) -> int:
        return sum(not call.done() for call in self.calls)


class Pipe:
    """One direction of a stream: in order, each message late."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._sent: asyncio.Queue[Any] = asyncio.Queue()
        self.arrived: asyncio.Queue[Any] = asyncio.Queue()
        self._carrying = asyncio.create_task(self._carry())

    def send(self, message: Any) -> None:
        self._sent.put_nowait(message)

    async def _carry(self) -> None:
        while True:
            message = await self._sent.get()
            await asyncio.sleep(self._network.delay_s())
            self.arrived.put_nowait(message)

    def stop(self) -> None:
        self._carrying.cancel()


class Call:
    """A stream as grpc.aio has it, client's end, with the server's own handler at the other."""

    def __init__(self, network: Network, serve: "Callable[[Any], Any]") -> None:
        self._up, self._down = Pipe(network), Pipe(network)
        self._serve = serve
        self._over: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
        self._serving = asyncio.create_task(self._served())
        network.calls.append(self)
        if network.is_away:
            self.fail()

    async def _served(self) -> None:
        await self._serve(SimpleNamespace(read=self._up.arrived.get, write=self._answer))
        self._down.send(grpc.aio.EOF)

    async def _answer(self, data: bytes) -> None:
        self._down.send(data)

    def done(self) -> bool:
        return self._over.done()

    def _end(self, error: BaseException) -> None:
        if not self._over.done():
            self._over.set_result(error)
            self._serving.cancel()
            self._up.stop()
            self._down.stop()

    def fail(self) -> None:
        self._end(grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, grpc.aio.Metadata(), grpc.aio.Metadata(), "cut"))

    def cancel(self) -> bool:
        self._end(asyncio.CancelledError())
        return True

    async def write(self, message: pb.WaitStreamRequest) -> None:
        if self._over.done():
            raise asyncio.InvalidStateError("the call is over")
        self._up.send(message.SerializeToString())

    async def done_writing(self) -> None:
        self._up.send(grpc.aio.EOF)

    async def read(self) -> Any:
        getting = asyncio.ensure_future(self._down.arrived.get())
        try:
            await asyncio.wait({getting, self._over}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            getting.cancel()
        if self._over.done():
            raise self._over.result()
        data = getting.result()
        return data if data is grpc.aio.EOF else pb.WaitStreamResponse.FromString(data)


class Tries:
    def next_timeout_s(self) -> float:
        return 1.0

    def succeeded(self) -> None:
        pass


class World:
    """A client's waits, and a server whose runs end when a test says so."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.endings: dict[str, RunEnd] = {}
        self.unknown: set[str] = set()
        self._known: set[str] = set()  # nobody can ask for a run before it exists
        self.reads = 0
        self._hub = WaitHub(cast("Store", self))
        self._streams = WaitStreams()
        self._hub_task = asyncio.create_task(self._hub.run())
        self._names = iter(range(1_000_000))
        self.waits = Waits(cast("Connection", self), lambda: f"stream-{next(self._names)}")

    # --- the server ---------------------------------------------------------------------------------------------------

    async def endings_of(self, runs: Sequence[RunKey]) -> list[RunEnd | RunStatus | None]:
        self.reads += 1
        await asyncio.sleep(self.network.delay_s())
        return [None if run.run_id in self.unknown else self.endings.get(run.run_id, RunStatus.RUNNING) for run in runs]

    def open_waits(self, namespace: str, deliver: Any) -> ServedWaits:
        return self._hub.open(namespace, deliver)

    def end(self, run: str) -> None:
        self._known.add(run)
        self.endings[run] = run_end(run)
        self._hub.ended([self.endings[run]])

    async def _serve(self, context: Any) -> None:
        answers = Answers(limits.ANSWERS_BYTES, limits.ANSWERS_NAMESPACE_BYTES, 1_000_000)
        await WaitStream(
            cast("Any", self), context, Deadlines(), _admitted, answers=answers, streams=self._streams
        ).serve()

    # --- the connection of the client ---------------------------------------------------------------------------------

    @property
    def link(self) -> Any:
        workflows = SimpleNamespace(WaitStream=lambda metadata: Call(self.network, self._serve))
        link: Any = nullcontext()
        link.workflows, link.metadata = workflows, ()
        return link

    def tries(self, timeout_s: float, *, stream: bool) -> Any:
        return nullcontext(Tries())

    def problem_of(self, error: grpc.aio.AioRpcError) -> Outage:
        return self.broken(str(error.details()))

    def broken(self, what: str) -> Outage:
        return Outage(what, "", DOWN_SERVER)

    async def try_again(self, tries: Tries, failed: Any, problem: KagziError | Outage) -> None:
        if not isinstance(problem, Outage):
            raise problem
        await asyncio.sleep(RECONNECT_S)

    # --- a caller -----------------------------------------------------------------------------------------------------

    async def result(self, run: str, timeout_s: float | None = None) -> RunEnd | None:
        """None: not within the time."""
        self._known.add(run)
        try:
            async with asyncio.timeout(timeout_s):
                return await self.waits.ended(NAMESPACE, run)
        except TimeoutError:
            return None

    async def run(self, run: str, timeout_s: float | None = None) -> RunEnd | None:
        """As `client.run`: the start says that its end is awaited."""
        try:
            async with asyncio.timeout(timeout_s):
                starting = asyncio.ensure_future(self._start(run))
                try:
                    waits = await asyncio.shield(starting)
                except asyncio.CancelledError:
                    starting.add_done_callback(lambda done: _forget(done.result(), run))
                    raise
                try:
                    return await self.waits.ended(NAMESPACE, run)
                finally:
                    _forget(waits, run)
        except TimeoutError:
            return None

    async def _start(self, run: str) -> Any:
        waits = self.waits.for_starts(NAMESPACE)
        await asyncio.sleep(self.network.delay_s())
        is_new = run not in self._known
        self._known.add(run)
        if waits is None:
            return None
        subscribed = self._streams.subscribe(NAMESPACE, waits.stream_id, [run])
        await asyncio.sleep(self.network.delay_s())
        try:
            if not subscribed:
                return None
            waits.subscribed(run, is_new=is_new)
            return waits
        finally:
            waits.close()

    async def close(self) -> None:
        await self.waits.close()
        self._hub_task.cancel()
        self.network.break_all()


def _forget(waits: Any, run: str) -> None:
    if waits is not None:
        waits.forget(run)


async def _admitted(namespace: str) -> None:
    return

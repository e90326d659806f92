"""Fakes: a clock that a test moves, a worker's end of a session, a store whose calls fail, wait or are counted."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from kagzi.core.errors import Unavailable
from kagzi.core.records import ClaimedRun, Payload, RunLease, Served, WorkerRecord
from kagzi.core.run.commands import Command, CompleteRun, StartRequest
from kagzi.core.run.outcomes import Outcome
from kagzi.core.times import Timestamp
from kagzi.engine import Engine, Notice
from kagzi.store.protocol import POLL_AGAIN, Store, Wake
from kagzi.system import SystemClock
from tests.support.timeouts import LOADED_MACHINE_S

TIMEOUT_S = LOADED_MACHINE_S


class MovableClock(SystemClock):
    """The real clock, which a test may push forward."""

    def __init__(self) -> None:
        super().__init__()
        self.ahead_us = 0

    def now(self) -> Timestamp:
        return super().now() + self.ahead_us

    def follow(self, store_now: Timestamp, sent_at: Timestamp, received_at: Timestamp) -> None:
        """Time is what the test says."""


class RecordingOutlet:
    """A worker's end of its session: remembers everything and lets a test wait for it."""

    def __init__(self) -> None:
        self.sent = 0
        self.claimed_runs: list[ClaimedRun] = []
        self.deliveries: list[int] = []
        self.answered: dict[int, Outcome] = {}
        self.answer_calls = 0
        self.notices_received: list[Notice] = []
        self.was_stopped = False
        self.was_drained = False
        self._changed = asyncio.Event()

    def tasks(self, claimed: Sequence[ClaimedRun]) -> None:
        self.claimed_runs.extend(claimed)
        self.deliveries.append(len(claimed))
        self._changed.set()

    def answers(self, answers: Sequence[tuple[int, Outcome]]) -> None:
        self.answered.update(answers)
        self.answer_calls += 1
        self._changed.set()

    def notices(self, notices: Sequence[Notice]) -> None:
        self.notices_received.extend(notices)
        self._changed.set()

    def stopping(self) -> None:
        self.was_stopped = True
        self._changed.set()

    def drain(self) -> None:
        self.was_drained = True
        self._changed.set()

    async def until(self, condition: Callable[[], Any]) -> None:
        async with asyncio.timeout(TIMEOUT_S):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    async def until_received(self, count: int) -> list[ClaimedRun]:
        await self.until(lambda: len(self.claimed_runs) >= count)
        return self.claimed_runs

    async def answer_to(self, operation_id: int) -> Outcome:
        await self.until(lambda: operation_id in self.answered)
        return self.answered[operation_id]


class TroubledStore:
    """A real store behind a door that can be shut, slowed or watched. Everything not named here goes straight
    through."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.calls: Counter[str] = Counter()
        self.batches: list[Sequence[Command]] = []
        self.away = False
        self.raises: Callable[[], Exception] | None = None  # by every call
        self.lost_answers = 0  # so many calls take effect and then fail
        self.before: dict[str, Callable[[], Awaitable[None]]] = {}
        self.after: dict[str, Callable[[], Awaitable[None]]] = {}

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._store, name)
        if not callable(attribute):
            return attribute

        async def call(*args: Any, **kwargs: Any) -> Any:
            self.calls[name] += 1
            if name == "write":
                self.batches.append(args[0])
            if name in self.before:
                await self.before[name]()
            if self.away:
                raise Unavailable("the store is away")
            if self.raises is not None:
                raise self.raises()
            result = await attribute(*args, **kwargs)
            if name in self.after:
                await self.after[name]()
            if self.lost_answers:
                self.lost_answers -= 1
                raise Unavailable("the answer was lost")
            return result

        return call


class Barrier:
    """Holds calls until it is opened, and says when one has arrived."""

    def __init__(self) -> None:
        self.arrived = asyncio.Event()
        self._open = asyncio.Event()

    async def __call__(self) -> None:
        self.arrived.set()
        async with asyncio.timeout(TIMEOUT_S):
            await self._open.wait()

    def open(self) -> None:
        self._open.set()


class Exchange:
    """Buses of several servers in one process."""

    def __init__(self) -> None:
        self.buses: list[LocalBus] = []
        self.published: list[Wake] = []

    def bus(self) -> "LocalBus":
        return LocalBus(self)


class LocalBus:
    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._on_wake: Callable[[Wake], None] | None = None

    async def open(self, on_wake: Callable[[Wake], None]) -> None:
        self._on_wake = on_wake
        self._exchange.buses.append(self)

    async def publish(self, wake: Wake) -> None:
        self._exchange.published.append(wake)
        for bus in self._exchange.buses:
            if bus is not self:
                bus.wake(wake)

    async def close(self) -> None:
        if self in self._exchange.buses:
            self._exchange.buses.remove(self)

    def wake(self, wake: Wake = POLL_AGAIN) -> None:
        if self._on_wake is not None:
            self._on_wake(wake)


def worker(*types: str, worker_id: str = "", slots: int = 10, namespace: str = "default") -> WorkerRecord:
    """Types as "name" (version 1) or "name@version"."""
    served = tuple(Served(name, version or "1") for name, _, version in (text.partition("@") for text in types))
    return WorkerRecord(worker_id=worker_id, namespace=namespace, served=served, max_concurrent=slots)


def start(workflow_type: str = "hello", **fields: Any) -> StartRequest:
    return StartRequest(workflow_type=workflow_type, **{"namespace": "default", **fields})


def leased(run: ClaimedRun) -> RunLease:
    return RunLease(run.run, run.lease)


def complete(run: ClaimedRun, output: bytes = b'"done"') -> CompleteRun:
    return CompleteRun(run=run.run, lease=run.lease, output=Payload(output))


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """For what gives no signal, such as rows of the store: ask again at short intervals, within the timeout."""
    async with asyncio.timeout(TIMEOUT_S):
        while not await condition():  # noqa: ASYNC110  a row has no event
            await asyncio.sleep(0.005)


async def status_of(engine: Engine, run_id: str, namespace: str = "default") -> str:
    return (await engine.runs.get(namespace, run_id=run_id)).status

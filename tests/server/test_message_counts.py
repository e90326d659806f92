"""Messages, statements and transactions of a run, a step and a start over the whole path: real SDK client and worker,
real server, both stores. `test_counts.py` has the transactions of single cases."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import msgspec
import pytest

from kagzi import Context, Kagzi, Worker, workflow
from kagzi.server.app import Server
from kagzi.server.grpc.interceptor import Interceptor
from kagzi.store.protocol import Store
from kagzi.v1 import worker_pb2 as pb
from tests.support.timeouts import LOADED_MACHINE

from .conftest import QUICK, StartServer

STEPS = 20
STARTS = 100
TRIES = 8
UNHURRIED = msgspec.structs.replace(QUICK, lease_ms=30_000, heartbeat_ms=10_000, poll_interval_ms=60_000)
SESSION = "/kagzi.v1.WorkerService/Session"
WAITS = "/kagzi.v1.WorkflowService/WaitStream"
STATEMENTS = {"sqlite": 2, "postgresql": 1}  # of a batch of plain steps: SQLite changes steps, then runs
START_STATEMENTS = {"sqlite": 4, "postgresql": 1}  # of a batch of starts


async def body() -> int:
    return 1


@workflow
async def steps_in_turn(ctx: Context) -> int:
    return sum([await ctx.step("one").run(body) for _ in range(STEPS)])


@workflow
async def steps_at_once(ctx: Context) -> int:
    return sum(await asyncio.gather(*(ctx.step("one").run(body) for _ in range(STEPS))))


class Counts(msgspec.Struct, frozen=True):
    """Of one operation. `calls`: requests with one response, whatever they ask."""

    calls: int
    session_in: int  # messages of the worker
    operations: int
    session_out: int
    waits_in: int
    waits_out: int
    transactions: int
    statements: int

    def least(self, other: "Counts") -> "Counts":
        return Counts(*map(min, msgspec.structs.astuple(self), msgspec.structs.astuple(other)))

    def require_at_most(self, bound: "Counts") -> None:
        limits, used = msgspec.structs.asdict(bound), msgspec.structs.asdict(self)
        excess = [f"{name}: {used[name]}, at most {limits[name]}" for name in used if used[name] > limits[name]]
        assert not excess, excess


class Meter:
    """Counts what passes the interceptor of a server, whichever transport brought it, and what its store does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.messages: Counter[tuple[str, str]] = Counter()
        unary, stream = Interceptor.unary, Interceptor.stream

        def counted_unary(interceptor: Interceptor, name: str, method: Callable[..., Any], *rest: Any) -> Any:
            async def counted(*request: Any) -> Any:
                self.messages["calls", ""] += 1
                return await method(*request)

            return unary(interceptor, name, counted, *rest)

        def counted_stream(interceptor: Interceptor, name: str, method: Callable[..., Any], *rest: Any) -> Any:
            async def counted(context: Any) -> None:
                await method(_CountedContext(context, name, self.messages))

            return stream(interceptor, name, counted, *rest)

        monkeypatch.setattr(Interceptor, "unary", counted_unary)
        monkeypatch.setattr(Interceptor, "stream", counted_stream)

    def read(self, store: Store) -> Counts:
        return Counts(
            calls=self.messages["calls", ""],
            session_in=self.messages[SESSION, "in"],
            operations=self.messages[SESSION, "operations"],
            session_out=self.messages[SESSION, "out"],
            waits_in=self.messages[WAITS, "in"],
            waits_out=self.messages[WAITS, "out"],
            transactions=store.transactions,
            statements=store.statements,
        )


class _CountedContext:
    def __init__(self, context: Any, name: str, messages: Counter[tuple[str, str]]) -> None:
        self._context = context
        self._name = name
        self._messages = messages

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    async def read(self) -> Any:
        data = await self._context.read()
        if data is not grpc.aio.EOF:
            self._messages[self._name, "in"] += 1
            if self._name == SESSION:
                runs = pb.SessionRequest.FromString(data).runs
                self._messages[self._name, "operations"] += sum(len(run.operations) for run in runs)
        return data

    def write(self, data: bytes) -> Any:
        self._messages[self._name, "out"] += 1
        return self._context.write(data)


@pytest.fixture
def meter(monkeypatch: pytest.MonkeyPatch) -> Meter:
    return Meter(monkeypatch)


@pytest.fixture
async def server(meter: Meter, start_server: StartServer, database_url: str) -> Server:
    return await start_server(database_url, settings=UNHURRIED)


def store_of(server: Server) -> Store:
    assert server._engine is not None
    return server._engine._journal._store


async def least(meter: Meter, store: Store, operation: Callable[[], Awaitable[object]]) -> Counts:
    """Of some tries: on a busy machine a message may leave before what would have gone with it."""
    await operation()  # what is done once: registration, caches
    best: Counts | None = None
    for _ in range(TRIES):
        before = meter.read(store)
        await operation()
        after = meter.read(store)
        used = Counts(
            *(b - a for a, b in zip(msgspec.structs.astuple(before), msgspec.structs.astuple(after), strict=True))
        )
        best = used if best is None else best.least(used)
    assert best is not None
    return best


async def test_a_step_is_one_operation_one_message_each_way_and_one_transaction(meter: Meter, server: Server) -> None:
    """A start with its wait is one call and one message when the run has ended."""
    address, store = server.grpc_address, store_of(server)
    async with Kagzi.connect(address) as client, Worker(address, workflows=[steps_in_turn]):
        used = await least(meter, store, lambda: client.run(steps_in_turn, timeout=LOADED_MACHINE))
    used.require_at_most(
        Counts(
            calls=1,
            session_in=STEPS,  # the end of the run goes with its last step
            operations=STEPS + 1,
            session_out=STEPS + 1,  # the run itself, and an answer to each step
            waits_in=0,
            waits_out=1,
            transactions=STEPS + 1,
            statements=(STEPS + 1) * STATEMENTS[store.name],
        )
    )


async def test_steps_at_the_same_time_share_messages_and_transactions(meter: Meter, server: Server) -> None:
    address, store = server.grpc_address, store_of(server)
    async with Kagzi.connect(address) as client, Worker(address, workflows=[steps_at_once]):
        used = await least(meter, store, lambda: client.run(steps_at_once, timeout=LOADED_MACHINE))
    used.require_at_most(
        Counts(
            calls=1,
            session_in=4,
            operations=STEPS + 1,
            session_out=4,
            waits_in=0,
            waits_out=1,
            transactions=4,
            statements=4 * STATEMENTS[store.name],
        )
    )


async def test_starts_at_the_same_time_share_calls_and_transactions(meter: Meter, server: Server) -> None:
    store = store_of(server)

    async def starts() -> None:
        await asyncio.gather(*(client.start(steps_in_turn) for _ in range(STARTS)))

    async with Kagzi.connect(server.grpc_address) as client:
        used = await least(meter, store, starts)
    used.require_at_most(
        Counts(
            calls=2,
            session_in=0,
            operations=0,
            session_out=0,
            waits_in=0,
            waits_out=0,
            transactions=2,
            statements=2 * START_STATEMENTS[store.name],
        )
    )

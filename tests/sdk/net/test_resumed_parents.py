"""A parent that wakes for the end of each child: each result leaves the server a few times, however many there are."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress

import pytest

from kagzi import Context, Kagzi, Run, RunStatus, Signal, Worker, workflow
from kagzi.core.limits import HISTORY_PAGE_BYTES, Settings
from kagzi.server.app import Server
from kagzi.server.config import ServerConfig
from kagzi.server.listen import parse_listen
from tests.support.postgres import Databases
from tests.support.timeouts import LOADED_MACHINE_S

CHILDREN = 12
RESULT_BYTES = HISTORY_PAGE_BYTES + 100_000
WAIT_S = LOADED_MACHINE_S
PROCEED = Signal("go", None)


class Family:
    """What the one run under way did, and which of its children may end."""

    def __init__(self) -> None:
        self.parents_begun = 0
        self.results: set[int] = set()
        self.may_end = [asyncio.Event() for _ in range(CHILDREN)]


family = Family()


async def wait_for_turn(number: int) -> None:
    await family.may_end[number].wait()


@workflow
async def large_child(ctx: Context, number: int) -> str:
    await ctx.step("turn").run(wait_for_turn, number)
    return "x" * RESULT_BYTES


async def one(ctx: Context, number: int) -> int:
    result = await ctx.child(large_child, number)
    family.results.add(number)
    return len(result)


@workflow
async def large_parent(ctx: Context) -> int:
    family.parents_begun += 1
    sizes = await asyncio.gather(*(one(ctx, number) for number in range(CHILDREN)))
    await ctx.wait_for(PROCEED)
    return sum(sizes)


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "sqlite":
        yield ":memory:"
        return
    postgres: Databases = request.getfixturevalue("postgres")
    with postgres.database() as url:
        yield url


class Line:
    """A way to the server on which the bytes that it sends are counted."""

    def __init__(self, target: str) -> None:
        self._host, _, self._port = target.rpartition(":")
        self.sent = 0  # by the server

    @asynccontextmanager
    async def open(self) -> AsyncIterator[str]:
        async with await asyncio.start_server(self._connect, "127.0.0.1", 0) as listener:
            yield f"127.0.0.1:{listener.sockets[0].getsockname()[1]}"

    async def _connect(self, near: asyncio.StreamReader, answers: asyncio.StreamWriter) -> None:
        far, asks = await asyncio.open_connection(self._host, int(self._port))
        await asyncio.gather(self._pass_on(near, asks, counted=False), self._pass_on(far, answers, counted=True))

    async def _pass_on(self, source: asyncio.StreamReader, target: asyncio.StreamWriter, *, counted: bool) -> None:
        with suppress(OSError):
            while data := await source.read(1 << 16):
                self.sent += len(data) if counted else 0
                target.write(data)
                await target.drain()
        target.close()


@asynccontextmanager
async def serving(database: str) -> AsyncIterator[tuple[Line, Kagzi]]:
    family.__init__()  # events belong to one event loop
    listen = parse_listen("127.0.0.1:0", field="listen")
    server = Server(ServerConfig(db=database, listen=listen, http=listen, settings=Settings()))
    await server.start()
    line = Line(server.grpc_address)
    try:
        async with (
            asyncio.timeout(WAIT_S),
            Kagzi.connect(server.grpc_address) as client,
        ):
            yield line, client
    finally:
        await server.stop()


@asynccontextmanager
async def working(line: Line) -> AsyncIterator[None]:
    async with line.open() as address, Worker(address, workflows=[large_parent, large_child]):
        yield


async def asleep(run: Run[int], results: int) -> None:
    """It has got so many results, and left its worker."""
    while len(family.results) < results or (await run.status()) is not RunStatus.SLEEPING:  # noqa: ASYNC110  no signals
        await asyncio.sleep(0.02)


async def test_a_kept_parent_gets_each_result_once_and_one_with_each_claim(database: str) -> None:
    async with serving(database) as (line, client), working(line):
        run = await client.start(large_parent)
        for number in range(CHILDREN):
            await asleep(run, number)
            family.may_end[number].set()
        await asleep(run, CHILDREN)
        await run.signal(PROCEED, None)
        assert await run.result() == CHILDREN * RESULT_BYTES
        assert family.parents_begun == 1
        assert line.sent < 2.5 * CHILDREN * RESULT_BYTES, f"{line.sent / RESULT_BYTES / CHILDREN:.1f} times all results"


async def test_another_worker_replays_a_history_of_several_pages(database: str) -> None:
    async with serving(database) as (line, client):
        async with working(line):
            run = await client.start(large_parent)
            for may_end in family.may_end:
                may_end.set()
            await asleep(run, CHILDREN)
        begun, sent = family.parents_begun, line.sent
        async with working(line):
            await run.signal(PROCEED, None)
            assert await run.result() == CHILDREN * RESULT_BYTES
        assert family.parents_begun > begun
        assert line.sent - sent < 1.5 * CHILDREN * RESULT_BYTES

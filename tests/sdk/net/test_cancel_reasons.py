"""Why a run was cancelled is recorded with it, whichever way its worker hears of the cancellation first."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from kagzi import Context, Kagzi, Run, RunStatus, Worker, workflow
from kagzi.core.limits import Settings
from kagzi.core.records import RunKey
from kagzi.sdk.worker.leased_runs import LeasedRuns
from kagzi.server.app import Server
from kagzi.server.config import ServerConfig
from kagzi.server.listen import parse_listen
from kagzi.v1 import worker_pb2 as pb
from tests.support.polling import until
from tests.support.postgres import Databases
from tests.support.timeouts import LOADED_MACHINE_S

REASON = "the customer changed her mind"
WAIT_S = LOADED_MACHINE_S


class Latch:
    """Where the first step of a run waits."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.proceed = asyncio.Event()


latch = Latch()


async def body(number: int) -> int:
    if number == 1:
        latch.begun.set()
        await latch.proceed.wait()
    return number


@workflow
async def steps(ctx: Context) -> None:
    for number in range(1, 10):
        await ctx.step("step").run(body, number)


@workflow
async def naps(ctx: Context) -> None:
    await ctx.step("step").run(body, 1)
    await ctx.sleep("nap", "1ms")
    await asyncio.Event().wait()


@workflow
async def waits(ctx: Context) -> None:
    await ctx.sleep("nap", "1 day")


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "sqlite":
        yield ":memory:"
        return
    postgres: Databases = request.getfixturevalue("postgres")
    with postgres.database() as url:
        yield url


@asynccontextmanager
async def serving(database: str) -> AsyncIterator[tuple[Server, Kagzi]]:
    latch.__init__()  # events belong to one event loop
    listen = parse_listen("127.0.0.1:0", field="listen")
    settings = Settings(heartbeat_ms=200, lease_ms=10_000)
    server = Server(ServerConfig(db=database, listen=listen, http=listen, settings=settings))
    await server.start()
    try:
        async with (
            asyncio.timeout(WAIT_S),
            Worker(server.grpc_address, workflows=[steps, naps, waits]),
            Kagzi.connect(server.grpc_address) as client,
        ):
            yield server, client
    finally:
        await server.stop()


def suppress_notices(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Workers hear of no cancellation by a notice. Returns the runs whose notice was suppressed."""
    suppressed: list[str] = []
    notice = LeasedRuns.notice

    def deaf(self: LeasedRuns, notified: pb.RunNotice) -> None:
        if notified.kind == pb.RUN_NOTICE_KIND_CANCEL_REQUESTED:
            suppressed.append(notified.run_id)
        else:
            notice(self, notified)

    monkeypatch.setattr(LeasedRuns, "notice", deaf)
    return suppressed


async def begun(run: Run[None]) -> None:
    """Its first step runs, and is recorded: no refusal of its beginning is on its way."""
    await latch.begun.wait()
    while not await run.steps():  # noqa: ASYNC110  states have no signals
        await asyncio.sleep(0.02)


async def check(run: Run[None]) -> None:
    while (await run.status()) is not RunStatus.CANCELLED:  # noqa: ASYNC110  states have no signals
        await asyncio.sleep(0.02)
    error = (await run.info()).error
    assert error is not None
    assert error.message == REASON


async def test_by_a_notice(database: str) -> None:
    async with serving(database) as (_, client):
        run = await client.start(steps)
        await begun(run)
        await run.cancel(REASON)
        await check(run)


async def test_by_the_refusal_of_a_step_that_was_announced(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    suppressed = suppress_notices(monkeypatch)
    async with serving(database) as (_, client):
        run = await client.start(steps)
        await begun(run)
        await run.cancel(REASON)
        await until(lambda: suppressed)  # else the notice could come after the refusal
        latch.proceed.set()
        await check(run)
        assert suppressed == [run.id]


async def test_by_the_refusal_of_a_sleep_that_was_asked_for(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    suppressed = suppress_notices(monkeypatch)
    async with serving(database) as (_, client):
        run = await client.start(naps)
        await begun(run)
        await run.cancel(REASON)
        await until(lambda: suppressed)  # else the notice could come after the refusal
        latch.proceed.set()
        await check(run)
        assert suppressed == [run.id]


async def test_by_the_next_claim(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    suppressed = suppress_notices(monkeypatch)
    async with serving(database) as (_, client):
        run = await client.start(waits)
        while (await run.status()) is not RunStatus.SLEEPING:  # noqa: ASYNC110  states have no signals
            await asyncio.sleep(0.02)
        await run.cancel(REASON)
        await check(run)
        assert suppressed == []


async def test_by_the_answer_to_a_heartbeat(database: str) -> None:
    """Another server cancelled it, and its word did not get here: the store tells, with the next renewal."""
    async with serving(database) as (server, client):
        run = await client.start(steps)
        await begun(run)
        assert server._engine is not None
        store, now = server._engine.control._store, server._clock.now()
        await store.cancel_run(RunKey("default", run.id), REASON, now, now + 60_000_000)
        await check(run)

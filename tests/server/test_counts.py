"""Costs that do not drift: round trips and transactions, counted through a real server with real SDK workers, on both
stores."""

import asyncio

import msgspec
import pytest

from kagzi import Context, Kagzi, Worker, workflow
from kagzi.core.limits import Settings
from kagzi.server.app import Server
from kagzi.store.protocol import Store
from tests.support.timeouts import LOADED_MACHINE, LOADED_MACHINE_S

from .conftest import QUICK, StartServer

STEPS = 40
UNHURRIED = msgspec.structs.replace(QUICK, lease_ms=30_000, heartbeat_ms=10_000, poll_interval_ms=60_000)

bodies: list[str] = []


class Flags:
    """Made anew for every test: an event belongs to one loop."""

    released: asyncio.Event
    holding: asyncio.Event


async def body(name: str) -> str:
    bodies.append(name)
    return name


async def hold() -> None:
    bodies.append("hold")
    Flags.holding.set()
    await Flags.released.wait()


@workflow
async def many(ctx: Context) -> int:
    return len([await ctx.step("one").run(body, f"{number}") for number in range(STEPS)])


@workflow
async def many_then_hold(ctx: Context) -> int:
    done = [await ctx.step("one").run(body, f"{number}") for number in range(STEPS)]
    await ctx.step("hold").run(hold)
    return len(done)


@workflow
async def fan_out(ctx: Context) -> int:
    return len(await asyncio.gather(*(ctx.step("one").run(body, f"{number}") for number in range(100))))


def store_of(server: Server) -> Store:
    assert server._engine is not None
    return server._engine._journal._store


@pytest.fixture(autouse=True)
def fresh() -> None:
    Flags.released, Flags.holding = asyncio.Event(), asyncio.Event()
    bodies.clear()


async def until_holding() -> None:
    async with asyncio.timeout(LOADED_MACHINE_S):
        await Flags.holding.wait()


async def test_a_step_costs_one_round_trip(start_server: StartServer, database_url: str) -> None:
    server = await start_server(database_url, settings=UNHURRIED)
    store = store_of(server)
    used: list[int] = []
    async with Kagzi.connect(server.grpc_address) as client, Worker(server.grpc_address, workflows=[many]):
        # An announced begin that is held for more than 5 ms by a busy machine leaves by itself: the best of some tries
        # counts.
        for _ in range(5):
            before = store.transactions
            assert await client.run(many, timeout="20s") == STEPS
            used.append(store.transactions - before)
    assert min(used) <= STEPS + 1, (
        f"{min(used)} transactions for a start and {STEPS} steps, the last of which ends the run"
    )


async def test_replay_costs_nothing(start_server: StartServer, database_url: str) -> None:
    server = await start_server(database_url, settings=UNHURRIED)
    store = store_of(server)
    async with Kagzi.connect(server.grpc_address) as client:
        async with Worker(server.grpc_address, workflows=[many_then_hold], shutdown_grace="100ms"):
            run = await client.start(many_then_hold)
            await until_holding()

        bodies.clear()
        Flags.holding.clear()
        before = store.transactions
        async with Worker(server.grpc_address, workflows=[many_then_hold]):
            await until_holding()
            replayed = store.transactions - before
            assert bodies == ["hold"], "replay executed what was recorded"
            # Registration, claim, perhaps the announced begin of `hold`. Nothing for the steps that are replayed.
            assert replayed <= 5, f"{replayed} transactions to replay {STEPS} steps"
            Flags.released.set()
            assert await run.result(timeout=LOADED_MACHINE) == STEPS


async def test_a_hundred_concurrent_completions_share_transactions(
    start_server: StartServer, database_url: str
) -> None:
    server = await start_server(database_url, settings=UNHURRIED)
    store = store_of(server)
    async with Kagzi.connect(server.grpc_address) as client, Worker(server.grpc_address, workflows=[fan_out]):
        await client.run(fan_out, timeout="20s")
        before = store.transactions
        assert await client.run(fan_out, timeout="20s") == 100
        used = store.transactions - before
    # The start and the end are one each; a begin and a completion make 200 operations, at most 100 to a batch.
    assert used <= 2 + 3, f"{used} transactions for 100 concurrent steps"


async def test_an_idle_server_issues_at_most_one_statement_in_5_seconds(
    start_server: StartServer, database_url: str
) -> None:
    server = await start_server(database_url, settings=Settings())
    store = store_of(server)
    async with Kagzi.connect(server.grpc_address) as client, Worker(server.grpc_address, workflows=[fan_out]):
        await client.run(fan_out, timeout="20s")
        await asyncio.sleep(6)  # until the look that notes what the worker did; real time is the subject
        before = store.statements
        await asyncio.sleep(15)
        idle = store.statements - before
    assert idle <= 3, f"{idle} statements in 15 idle seconds"

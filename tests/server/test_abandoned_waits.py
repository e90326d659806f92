"""Signals that came for waits that the code gave up: each reaches the code, once and in order, live and on replay.

A lost signal is one that `signal()` accepted, and that the code never saw: the wait it was bound to was nobody's."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from kagzi import Context, Kagzi, Retry, Run, Signal, StepError, Worker, Workflow, workflow
from kagzi.sdk.lint.kagzi_warning import KagziWarning
from kagzi.server.app import Server
from tests.support.polling import until
from tests.support.replaying import check_replays, history_of
from tests.support.timeouts import LOADED_MACHINE

pytestmark = pytest.mark.filterwarnings(f"ignore::{KagziWarning.__module__}.KagziWarning")

ITEM = Signal("item", int)
OTHER = Signal("other", int)
MANY = 60


async def note() -> None: ...


async def work() -> None:
    await asyncio.sleep(0.002)


async def boom() -> None:
    raise ConnectionError("no")


@workflow
async def cancels_a_task(ctx: Context) -> int:
    task = asyncio.create_task(ctx.wait_for(ITEM))
    await ctx.sleep("a-while", "20ms")
    task.cancel()
    await asyncio.wait({task})
    await ctx.step("gave-up").run(note)
    return await ctx.wait_for(ITEM)


@workflow
async def times_out(ctx: Context) -> int:
    try:
        async with asyncio.timeout(0.02):
            await ctx.wait_for(ITEM)
    except TimeoutError:
        await ctx.step("gave-up").run(note)
    return await ctx.wait_for(ITEM)


@workflow
async def waits_outside(ctx: Context) -> int:
    try:
        await asyncio.wait_for(ctx.wait_for(ITEM), 0.02)
    except TimeoutError:
        await ctx.step("gave-up").run(note)
    return await ctx.wait_for(ITEM)


@workflow
async def has_a_failing_group(ctx: Context) -> int:
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(ctx.wait_for(ITEM))
            group.create_task(ctx.step("boom", retry=Retry.none()).run(boom))
    except* StepError:
        pass
    await ctx.step("gave-up").run(note)
    return await ctx.wait_for(ITEM)


@workflow
async def has_a_failing_branch(ctx: Context) -> int:
    try:
        await ctx.parallel(ctx.wait_for(ITEM), ctx.step("boom", retry=Retry.none()).run(boom))
    except StepError:
        await ctx.step("gave-up").run(note)
    return await ctx.wait_for(ITEM)


@workflow
async def loser_of_a_race(ctx: Context) -> int:
    await ctx.race(item=ctx.wait_for(ITEM), tick=ctx.sleep("tick", "20ms"))
    await ctx.step("gave-up").run(note)
    return await ctx.wait_for(ITEM)


GIVE_UP = [cancels_a_task, times_out, waits_outside, has_a_failing_group, has_a_failing_branch, loser_of_a_race]


@workflow
async def drops_early(ctx: Context, waits: int) -> list[int]:
    """Gives up waits whose signals are there already, before their values are delivered."""
    tasks = [asyncio.create_task(ctx.wait_for(ITEM)) for _ in range(waits)]
    await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    return [await ctx.wait_for(ITEM) for _ in range(3)]


@workflow
async def drops_the_first(ctx: Context) -> list[int]:
    """Two waits of a name, both with a value: the second gets that of the first."""
    first, second = asyncio.create_task(ctx.wait_for(ITEM)), asyncio.create_task(ctx.wait_for(ITEM))
    await asyncio.sleep(0)
    first.cancel()
    return [await second, await ctx.wait_for(ITEM), await ctx.wait_for(ITEM)]


@workflow
async def greets(ctx: Context) -> list[int]:
    values: list[int] = []
    while len(values) < 2:
        won = await ctx.race(item=ctx.wait_for(ITEM), other=ctx.wait_for(OTHER))
        values.append(won.value)
    return values


@workflow
async def ticks(ctx: Context, count: int) -> list[int]:
    values: list[int] = []
    while len(values) < count:
        won = await ctx.race(tick=ctx.sleep("tick", "1ms"), item=ctx.wait_for(ITEM))
        if won.name == "item":
            values.append(int(won.value))
    return values


@workflow
async def works(ctx: Context, count: int) -> list[int]:
    values: list[int] = []
    while len(values) < count:
        won = await ctx.race(step=ctx.step("work").run(work), item=ctx.wait_for(ITEM))
        if won.name == "item":
            values.append(int(won.value))
    return values


@workflow
async def continues(ctx: Context, seen: list[int]) -> list[int]:
    """A background task takes signals; the function continues as a new run every few of them."""
    values = list(seen)
    came = asyncio.Event()

    async def take() -> None:
        while True:
            values.append(await ctx.wait_for(ITEM))
            came.set()

    taking = asyncio.create_task(take())
    while len(values) < min(len(seen) + 5, MANY):
        came.clear()
        await came.wait()
        await ctx.step("work").run(note)
    if len(values) < MANY:
        ctx.continue_as_new(values)
    taking.cancel()
    return values[:MANY]


FLOWS = [*GIVE_UP, drops_early, drops_the_first, greets, ticks, works, continues]


@pytest.fixture
async def client(server: Server) -> AsyncIterator[Kagzi]:
    async with Kagzi.connect(server.grpc_address) as connected:
        yield connected


@pytest.fixture
async def worker(server: Server) -> AsyncIterator[None]:
    async with Worker(server.grpc_address, workflows=FLOWS):
        yield


async def gave_up(run: Run[object]) -> bool:
    return any(step.id == "gave-up" and step.status == "completed" for step in await run.steps())


async def check(run: Run[object], flow: Workflow[object, object], expected: object) -> None:
    assert await run.result(timeout=LOADED_MACHINE) == expected
    await check_replays(await history_of(run), flow, times=3)


@pytest.mark.parametrize("flow", GIVE_UP, ids=lambda flow: flow.name)
async def test_a_wait_that_was_given_up_takes_no_signal(client: Kagzi, worker: None, flow: Workflow[None, int]) -> None:
    run = await client.start(flow)
    await until(lambda: gave_up(run))
    await client.signal(run.id, ITEM, 7)
    await check(run, flow, 7)


@pytest.mark.parametrize("waits", [1, 2, 3])
async def test_waits_that_are_given_up_at_once_give_back_what_they_got(
    server: Server, client: Kagzi, waits: int
) -> None:
    run = await client.start(drops_early, waits)
    for value in (1, 2, 3):
        await client.signal(run.id, ITEM, value)
    async with Worker(server.grpc_address, workflows=FLOWS):
        await check(run, drops_early, [1, 2, 3])


async def test_the_next_of_two_waits_gets_the_value_of_the_first(server: Server, client: Kagzi) -> None:
    run = await client.start(drops_the_first)
    for value in (1, 2, 3):
        await client.signal(run.id, ITEM, value)
    async with Worker(server.grpc_address, workflows=FLOWS):
        await check(run, drops_the_first, [1, 2, 3])


async def test_the_loser_of_a_race_between_two_signals_is_kept(server: Server, client: Kagzi) -> None:
    run = await client.start(greets)
    await client.signal(run.id, ITEM, 1)
    await client.signal(run.id, OTHER, 2)
    async with Worker(server.grpc_address, workflows=FLOWS):
        await check(run, greets, [1, 2])


@pytest.mark.parametrize("flow", [ticks, works], ids=lambda flow: flow.name)
async def test_a_loop_of_races_loses_no_signal(client: Kagzi, worker: None, flow: Workflow[int, list[int]]) -> None:
    run = await client.start(flow, MANY)
    for value in range(MANY):
        await client.signal(run.id, ITEM, value)
    await check(run, flow, list(range(MANY)))


async def test_a_run_that_continues_as_new_loses_no_signal(client: Kagzi, worker: None) -> None:
    run = await client.start(continues, [], id="entity")
    for value in range(MANY):
        await client.signal("entity", ITEM, value)
    assert await run.result(timeout=LOADED_MACHINE) == list(range(MANY))

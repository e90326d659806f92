"""Workflows with large results, and a neighbour that goes on in small steps beside them."""

import asyncio

from kagzi import Context, Signal, workflow

from .flows import note

LARGE = 1_900_000

blob = Signal("blob", str)


@workflow
async def large(ctx: Context, size: int) -> str:
    return "x" * size


@workflow
async def gathers_children(ctx: Context, count: int) -> int:
    results = await asyncio.gather(*(ctx.child(large, LARGE) for _ in range(count)))
    return sum(map(len, results))


@workflow
async def gathers_signals(ctx: Context, count: int) -> int:
    values = await asyncio.gather(*(ctx.wait_for(blob) for _ in range(count)))
    return sum(map(len, values))


async def beat(pause_s: float) -> None:
    note("begin")
    await asyncio.sleep(pause_s)


@workflow
async def neighbour(ctx: Context, pause_s: float) -> None:
    while True:
        await ctx.step("beat").run(beat, pause_s)

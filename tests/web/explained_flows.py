"""Workflows that get to where a run is seldom. `kagzi worker tests/web/explained_flows.py` serves them."""

import asyncio
from datetime import date
from typing import Any

from kagzi import Context, NonRetryable, Signal, Worker, workflow

proceed = Signal("go", Any)
chosen_day = Signal("day", date)
_begun: set[str] = set()


@workflow
async def patient(ctx: Context) -> Any:
    return await ctx.wait_for(proceed)


@workflow
async def parent(ctx: Context) -> Any:
    """Waits for a child that waits."""
    return await ctx.child(patient)


@workflow
async def continuing(ctx: Context, more: int) -> int:
    """Is followed by so many runs."""
    if more:
        ctx.continue_as_new(more - 1)
    return more


@workflow
async def hopeless(ctx: Context) -> None:
    raise ConnectionError("there is no way")


@workflow
async def fickle(ctx: Context) -> None:
    """Fails; when it is retried, its code is another."""
    name = "second" if ctx.run_id in _begun else "first"
    _begun.add(ctx.run_id)
    await ctx.step(name).run(lambda: name)
    raise NonRetryable("not this time")


@workflow
async def dated(ctx: Context) -> date:
    """Waits for what JSON cannot say: only the worker sees that a text is not a day."""
    return await ctx.wait_for(chosen_day)


async def _tidy() -> None:
    await asyncio.sleep(3_600)


@workflow
async def tidying(ctx: Context) -> None:
    """Takes an hour to clean up."""
    try:
        await ctx.wait_for(proceed)
    except asyncio.CancelledError:
        async with ctx.cleanup():
            await ctx.step("tidy", timeout="2h").run(_tidy)
        raise


worker = Worker(workflows=[patient, parent, continuing, hopeless, fickle, dated, tidying], shutdown_grace="1h")

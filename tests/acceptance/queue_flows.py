"""Workflows for types with limits. What their bodies do is in the ledger, outside of Kagzi, under their key."""

import asyncio
from datetime import timedelta

from kagzi import Context, workflow

from .flows import LEDGER


async def note_work(key: str, seconds: float, run_id: str) -> None:
    LEDGER.write("begin", run_id, "work", note=key)
    await asyncio.sleep(seconds)
    LEDGER.write("end", run_id, "work", note=key)


@workflow
async def keyed(ctx: Context, order: tuple[str, float]) -> str:
    """The key, and how long it takes."""
    key, seconds = order
    await ctx.step("work").run(note_work, key, seconds, ctx.run_id)
    return key


@workflow
async def patient(ctx: Context, seconds: float) -> str:
    """Sleeps durably between two steps: it holds no permit meanwhile."""
    await ctx.step("before").run(note_work, "", 0.0, ctx.run_id)
    await ctx.sleep("rest", timedelta(seconds=seconds))
    await ctx.step("after").run(note_work, "", 0.0, ctx.run_id)
    return "rested"


@workflow
async def family(ctx: Context, children: int) -> int:
    """Children of one key: they run one after the other where that is the limit."""
    orders = [ctx.child(keyed, ("shared", 0.01), concurrency_key="shared") for _ in range(children)]
    return len(await ctx.parallel(*orders))

"""Workflows of the campaigns. What their bodies do is in the ledger, outside of Kagzi."""

import asyncio
import os

from kagzi import Context, Signal, current_step, workflow
from tests.support.ledger import Ledger

LEDGER = Ledger(os.environ.get("KAGZI_TEST_LEDGER", "ledger.jsonl"))
STEPS = 5


async def work(number: int, seconds: float) -> int:
    step = current_step()
    LEDGER.write("begin", step.run_id, step.step_id, attempt=step.attempt)
    await asyncio.sleep(seconds)
    LEDGER.write("end", step.run_id, step.step_id, attempt=step.attempt)
    return number


@workflow("campaign-load")
async def load(ctx: Context, seconds: float) -> int:
    """Steps one after another: when one begins, all before it have been acknowledged."""
    total = 0
    for each in range(STEPS):
        total += await ctx.step(f"s{each}").run(work, each, seconds)
    return total


@workflow("campaign-pickup")
async def pickup(ctx: Context, _nothing: None) -> int:
    """One step that says when it began."""
    return await ctx.step("s0").run(work, 1, 0.0)


proceed = Signal("go", int)


@workflow("campaign-signalled")
async def signalled(ctx: Context, _nothing: None) -> int:
    """Steps one after another, a signal among them: when one begins, all before it have been acknowledged."""
    await ctx.step("s0").run(work, 0, 0.2)
    await ctx.step("s1").run(work, 1, 0.0)
    number = await ctx.wait_for(proceed)
    await ctx.step("s2").run(work, number, 0.0)
    await ctx.step("s3").run(work, number, 0.0)
    return number

"""The workflows that are measured. Steps only return `{"i": i}`: what remains is the engine."""

import asyncio

from ...sdk.workflow.context import Context
from ...sdk.workflow.decorator import workflow


async def no_op(i: int) -> dict[str, int]:
    return {"i": i}


@workflow("bench-sequence")
async def sequence(ctx: Context, steps: int) -> int:
    """`steps` steps, one after another."""
    done = 0
    for i in range(steps):
        result = await ctx.step("step").run(no_op, i)
        done += result["i"] == i
    return done


@workflow("bench-fan-out")
async def fan_out(ctx: Context, steps: int) -> int:
    """`steps` steps, all at once."""
    results = await asyncio.gather(*(ctx.step("step").run(no_op, i) for i in range(steps)))
    return len(results)


UNSERVED = "bench-unserved"
"""A type no worker has: its runs stay pending."""

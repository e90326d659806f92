"""A run in which something happens all the time. `kagzi worker tests/campaigns/live_flows.py` serves it."""

import asyncio

from kagzi import Context, workflow

STEPS_PER_SECOND = 25
"""Each begins and ends: 50 events a second."""


async def _until(due: float) -> None:
    await asyncio.sleep(max(0.0, due - asyncio.get_running_loop().time()))


@workflow
async def busy(ctx: Context, seconds: float) -> int:
    """Steps at a steady rate."""
    began = asyncio.get_running_loop().time()
    count = int(seconds * STEPS_PER_SECOND)
    for number in range(count):
        await ctx.step("beat").run(_until, began + number / STEPS_PER_SECOND)
    return count


@workflow
async def brief(ctx: Context) -> None:
    """Is there, and ends."""

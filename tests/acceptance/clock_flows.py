"""What a wrong clock would harm: sleeps, deadlines, leases."""

from datetime import timedelta

from kagzi import Context, workflow

from .flows import note, ten_steps, work

__all__ = ["hold_on", "nap", "ten_steps"]


@workflow
async def nap(ctx: Context, seconds: float) -> str:
    await ctx.sleep("nap", timedelta(seconds=seconds))
    return await ctx.step("awake").run(say_awake)


async def say_awake() -> str:
    note("begin")
    return "awake"


@workflow
async def hold_on(ctx: Context, seconds: float) -> int:
    return await ctx.step("hold").run(work, 1, seconds)

"""A shop whose code is changed while runs of it are open: some of them fit the change, some do not."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from kagzi import Context, Kagzi, Signal, Worker, workflow

DEADLINE_S = 120.0
PLACES = ("waiting", "charged", "shipped", "invoiced", "reported", "old")
"""Where the runs are: `place` is the input of `order`, or another workflow or version."""

proceed = Signal("proceed", str)


@workflow(version="1")
async def order(ctx: Context, place: str) -> str:
    if place == "waiting":
        await ctx.wait_for(proceed)
    await ctx.step("charge").run(lambda: f"charged {place}")
    if place == "charged":
        await ctx.wait_for(proceed)
    await ctx.step("ship").run(lambda: "shipped")
    await ctx.sleep("return period", "30d")
    return "done"


@workflow("order", version="0")
async def order_before(ctx: Context, place: str) -> str:
    await ctx.wait_for(proceed)
    return place


@workflow
async def invoice(ctx: Context, place: str) -> str:
    await ctx.step("print").run(lambda: "printed")
    return await ctx.wait_for(proceed)


@workflow
async def report(ctx: Context, place: str) -> str:
    return await ctx.wait_for(proceed)


_CODE = """
from kagzi import Context, Signal, workflow

proceed = Signal("proceed", str)


@workflow(version="1")
async def order(ctx: Context, place: str) -> str:
    if place == "waiting":
        await ctx.wait_for(proceed)
    await ctx.step("charge").run(lambda: f"charged {place}")
    if place == "charged":
        await ctx.wait_for(proceed)
@CHANGE@
    await ctx.step("ship").run(lambda: "shipped")
    await ctx.sleep("return period", "30d")
    return "done"


@workflow
async def invoice(ctx: Context, place: str) -> str:
    await ctx.step("print").run(lambda: "printed")
    return await ctx.wait_for(proceed)
"""

CHANGED = _CODE.replace("@CHANGE@", '    await ctx.step("audit").run(lambda: "audited")')
"""Diverges for runs that have shipped, and for those only; has neither `report` nor version 0 of `order`."""
REPAIRED = _CODE.replace(
    "@CHANGE@", '    if ctx.changed("add-audit"):\n        await ctx.step("audit").run(lambda: "audited")'
)
AUDIT_LINE = CHANGED.splitlines().index('    await ctx.step("audit").run(lambda: "audited")') + 1


def write_code(folder: Path, text: str, name: str = "shop.py") -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


async def open_runs(address: str, counts: Mapping[str, int]) -> dict[str, set[str]]:
    """So many runs at each place, of the code as it was. Returns their ids by place; nobody serves them any more."""
    workflows = {"invoiced": invoice, "reported": report, "old": order_before}
    run_ids: dict[str, set[str]] = {}
    served = Worker(address, workflows=[order, order_before, invoice, report], max_concurrent=1000)
    async with Kagzi.connect(address) as client, served:
        for place, count in counts.items():
            flow = workflows.get(place, order)
            version = "0" if place == "old" else None
            started = await asyncio.gather(*(client.start(flow, place, version=version) for _ in range(count)))
            run_ids[place] = {run.id for run in started}
        async with asyncio.timeout(DEADLINE_S):
            while await client.count(status="sleeping") < sum(counts.values()):  # noqa: ASYNC110  there is no signal
                await asyncio.sleep(0.1)
    return run_ids

"""Workflows that the page of a run shows. `kagzi worker tests/web/run_flows.py` serves them."""

import asyncio
import logging
from typing import Any

from kagzi import Context, Retry, Signal, current_step, workflow

log = logging.getLogger(__name__)
more = Signal("more", Any)
enough = Signal("enough", Any)


async def _charge(basket: list[str]) -> str:
    basket.append(f"attempt {current_step().attempt}")
    for number in range(5):
        log.warning("line %s of the log", number)
    match current_step().attempt:
        case 1:
            raise ConnectionError("no route to the bank")
        case 2:
            raise ConnectionError("no money there")
        case _:
            return "charged"


@workflow
async def charging(ctx: Context) -> str:
    """Fails in two ways, and then succeeds."""
    return await ctx.step("charge-card", retry=Retry.attempts(3)).run(_charge, ["book"])


@workflow
async def priced(ctx: Context, price: int) -> int:
    """Three steps, the last of which does not depend on the one before."""
    paid = await ctx.step("price").run(lambda: price)
    await ctx.step("discount").run(lambda: {"percent": 10, "why": "summer"})
    return await ctx.step("total").run(lambda: paid)


@workflow
async def grandchild(ctx: Context, number: int) -> int:
    return await ctx.step("deepest").run(lambda: number)


@workflow
async def child(ctx: Context, number: int) -> int:
    await ctx.step("above").run(lambda: number)
    return await ctx.child(grandchild, number)


@workflow
async def generations(ctx: Context, count: int) -> int:
    """Three levels, and many children at once."""
    await ctx.child(child, 1)
    return len(await ctx.parallel(ctx.child(grandchild, number) for number in range(count)))


async def _first() -> int:
    await asyncio.sleep(0.05)
    return 1


@workflow
async def showing(ctx: Context) -> None:
    """Shows what it knows, and waits."""
    ctx.set_state({"basket": ["tea"]})
    await ctx.wait_for(more)
    ctx.set_state({"basket": ["tea", "cake"]})
    await ctx.wait_for(enough)


@workflow
async def everything(ctx: Context) -> None:
    """Kinds of steps that the others do not have."""
    ctx.changed("shipping")
    await ctx.race(ctx.step("quick").run(_first), ctx.sleep("patience", "1h"))

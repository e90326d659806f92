"""Workflows that the pages show: one for each state and kind of step. `kagzi worker tests/web/flows.py` serves them."""

import asyncio
import logging
from collections import Counter
from datetime import date, timedelta
from typing import Any, Literal

import msgspec

from kagzi import Context, NonRetryable, Retry, Signal, StepError, current_step, workflow

log = logging.getLogger(__name__)


class Approval(msgspec.Struct):
    """A decision of a person."""

    approved: bool


class Review(msgspec.Struct):
    """A decision with a reason."""

    approved: bool
    note: str = ""


class Address(msgspec.Struct):
    street: str
    country: Literal["DE", "FR", "IT"] = "DE"


class Order(msgspec.Struct):
    """An order of the shop."""

    order_id: int
    total: float
    to: Address
    express: bool = False
    items: list[str] = []
    note: str | None = None


class Card(msgspec.Struct, tag="card", tag_field="kind"):
    number: str


class Invoice(msgspec.Struct, tag="invoice", tag_field="kind"):
    days: int = 30


class Trip(msgspec.Struct):
    """A trip. Has a field of each kind that a form knows."""

    guest_id: int
    arrival: date
    bed: Literal["single", "double"]
    address: Address
    pay: Card | Invoice
    nights: list[float]
    note: str | None = None
    extras: dict[str, bool] = {}


approve = Signal("approve", Approval)
review = Signal("review", Review)
proceed = Signal("go", Any)
TWICE_AT_ONCE = Retry(
    max_attempts=5,
    initial_interval=timedelta(milliseconds=10),
    max_interval=timedelta(hours=1),
    backoff_coefficient=360_000,
    jitter=0,
)


@workflow
async def hello(ctx: Context, name: str) -> str:
    """Says hello."""
    return await ctx.step("greet").run(lambda: f"Hello, {name}!")


@workflow
async def echo(ctx: Context, value: Any) -> Any:
    return await ctx.step("echo").run(lambda: value)


@workflow
async def order(ctx: Context, order: Order) -> float:
    """Takes an order."""
    await ctx.step("reserve").run(lambda: order.items)
    return await ctx.step("charge").run(lambda: order.total)


@workflow
async def trip(ctx: Context, trip: Trip) -> Trip:
    """Plans a trip."""
    return trip


async def _refuse(why: str) -> None:
    raise NonRetryable(why)


@workflow
async def broken(ctx: Context, why: str) -> None:
    """Completes a step and fails."""
    await ctx.step("prepare").run(lambda: {"ready": True})
    await ctx.step("charge").run(_refuse, why)


_settled: Counter[str] = Counter()


async def _settle(failures: int) -> str:
    key = current_step().idempotency_key
    _settled[key] += 1
    if _settled[key] <= failures:
        raise NonRetryable(f"refusal {_settled[key]}")
    return "settled"


@workflow
async def unlucky(ctx: Context, failures: int) -> str:
    """Fails, and so do its retries, so many times in all."""
    await ctx.step("reserve").run(lambda: 1)
    try:
        return await ctx.step("settle").run(_settle, failures)
    except StepError:
        await ctx.step("refund").run(lambda: {"refunded": failures})
        raise


async def _unreachable() -> None:
    log.warning("the bank does not respond")
    raise ConnectionError("the bank does not respond")


@workflow
async def retrying(ctx: Context) -> None:
    """Fails twice at once, and then waits for an hour."""
    await ctx.step("prepare").run(lambda: 1)
    await ctx.step("charge-card", retry=TWICE_AT_ONCE).run(_unreachable)


@workflow
async def sleeping(ctx: Context, how_long: str) -> str:
    """A step, a sleep, a step."""
    await ctx.step("before").run(lambda: 1)
    await ctx.sleep("nap", how_long)
    return await ctx.step("after").run(lambda: "awake")


@workflow
async def approval(ctx: Context, amount: int) -> bool:
    """Waits for a person."""
    await ctx.step("reserve").run(lambda: amount)
    ctx.set_status(f"waits for a person: {amount} EUR", progress=0.5)
    decision = await ctx.wait_for(approve)
    return decision.approved


@workflow
async def reviewed(ctx: Context) -> Review:
    """Waits for a person who may say why."""
    return await ctx.wait_for(review)


@workflow
async def waiting(ctx: Context) -> Any:
    return await ctx.wait_for(proceed)


async def _take(seconds: float) -> float:
    await asyncio.sleep(seconds)
    return seconds


@workflow
async def slow(ctx: Context, seconds: float) -> float:
    """One step that takes its time."""
    return await ctx.step("work", timeout="1h").run(_take, seconds)


@workflow
async def steps(ctx: Context, count: int) -> int:
    """That many steps, one after the other."""
    for number in range(count):
        await ctx.step(f"step-{number}").run(lambda number=number: number)
    return count


@workflow
async def gated(ctx: Context, count: int) -> int:
    """That many steps, each after a signal `go`."""
    for number in range(count):
        await ctx.wait_for(proceed)
        await ctx.step(f"part-{number}").run(lambda number=number: number)
    return count


@workflow
async def family(ctx: Context, names: list[str]) -> list[str]:
    """Children in parallel."""
    return await ctx.parallel(ctx.child(hello, name) for name in names)


@workflow
async def fan_out(ctx: Context, count: int) -> list[int]:
    """Equal steps in parallel."""
    return await ctx.parallel(ctx.step("enrich").run(lambda number=number: number) for number in range(count))


@workflow
async def race(ctx: Context) -> Any:
    """A sleep against a signal."""
    return await ctx.race(answer=ctx.wait_for(proceed), too_late=ctx.sleep("patience", "1h"))

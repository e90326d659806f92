"""Workflows whose recorded runs become tests: every kind of call, alone and at the same time."""

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from kagzi import ChildError, Context, NonRetryable, Retry, Signal, StepError, step, workflow
from tests.testing.to_pytest.models import Item, Order

sent = Signal("sent", Item)
never = Signal("never", int)


async def price(item: Item, *, discount: float = 0.0) -> Item:
    await asyncio.sleep(0.001 * item.quantity)
    return Item(item.sku, item.quantity + 1)


async def decline(customer: str) -> None:
    raise NonRetryable(f"the card of '{customer}' was \"declined\"")


attempts: dict[str, int] = {}


async def flaky(key: str) -> str:
    attempts[key] = attempts.get(key, 0) + 1
    raise ConnectionError(f"attempt {attempts[key]}")


@step
async def note(words: str) -> str:
    await asyncio.sleep(0)
    return words.upper()


async def long_text() -> dict[str, Any]:
    return {"pages": [{"number": number, "text": "x" * 40} for number in range(60)]}


@workflow
async def small(ctx: Context, sku: str) -> Item:
    if sku == "bad":
        raise NonRetryable("no such thing")
    return await ctx.step("price").run(price, Item(sku))


@workflow
async def everything(ctx: Context, order: Order) -> dict[str, Any]:
    """All that a workflow can call."""
    first = await ctx.step("price", key="one").run(price, order.items[0], discount=0.5)
    many = await ctx.map("items", order.items, price, key=lambda item: item.sku)
    ended: list[str] = []
    times = {"a": 30, "b": 15, "c": 1}
    await ctx.parallel(*(_branch(ctx, name, milliseconds, ended) for name, milliseconds in times.items()))
    got = await ctx.wait_for(sent)
    late = await ctx.wait_for(never, timeout="1ms", default=-1)
    child = await ctx.child(small, "tin")
    handle = await ctx.start_child(small, "bad")
    won = await ctx.race(quick=ctx.sleep("quick", "1ms"), slow=ctx.sleep("slow", "1h"))
    failed = tries = ""
    try:
        await handle.result()
    except ChildError as error:
        failed = error.error.text
    try:
        await ctx.step("flaky", retry=Retry.fixed(2, "1ms")).run(flaky, ctx.workflow_id)
    except StepError as error:
        tries = f"{error.attempts} {error.error.exhausted}"
    noted = await note("done")
    new = ctx.changed("new")
    await ctx.step("long").run(long_text)
    return {
        "ended": ended,
        "first": first.quantity, "many": [each.quantity for each in many], "got": got.sku, "late": late,
        "child": child.sku,
        "won": str(won), "failed": failed, "tries": tries, "noted": noted, "new": new,
        "id": str(ctx.uuid()), "at": str(ctx.now()),
    }  # fmt: skip


async def _branch(ctx: Context, name: str, milliseconds: int, ended: list[str]) -> None:
    await ctx.step(f"{name}1").run(note.fn, name)
    await ctx.sleep(f"{name}2", timedelta(milliseconds=milliseconds))
    ended.append(f"{name} {ctx.now()}")
    await ctx.step(f"{name}3").run(note.fn, name)
    ended.append(name)


@workflow
async def fails(ctx: Context, customer: str) -> None:
    await ctx.step("price").run(price, Item("cup"))
    await ctx.step("charge").run(decline, customer)


@workflow
async def waits(ctx: Context) -> Item:
    await note("first")
    return await ctx.wait_for(sent)


@workflow
async def counts(ctx: Context, number: int) -> int:
    await note("again")
    if number:
        ctx.continue_as_new(number - 1)
    return number


@dataclass
class Hidden:
    value: int


def make_local() -> Any:
    @dataclass
    class Local:
        value: int

    @workflow("local-output")
    async def local_output(ctx: Context) -> Local:
        return Local((await ctx.step("one").run(_one)).value)

    return local_output


async def _one() -> Hidden:
    return Hidden(1)


local_output = make_local()
WORKFLOWS = [everything, small, fails, waits, counts, local_output]

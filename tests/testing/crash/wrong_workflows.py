"""Workflows that are wrong on purpose, each in one way. The line that is to be named is marked."""

import asyncio
import os
import random
import threading
import time
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from kagzi import Context, workflow

# --- functions of steps -----------------------------------------------------------------------------------------------


async def reserve(item: str) -> str:
    return f"reserved {item}"


async def ship(item: str, label: str = "") -> str:
    return f"shipped {item} {label}".strip()


async def quickly(text: str) -> str:
    return text


async def slowly(text: str) -> str:
    await asyncio.sleep(0.2)
    return text


# --- clock, chance ----------------------------------------------------------------------------------------------------


@workflow
async def reads_the_clock(ctx: Context, item: str) -> str:
    await ctx.step("reserve").run(reserve, item)
    label = datetime.now().isoformat()  # not replay-safe
    return await ctx.step("ship").run(ship, item, label)


@workflow
async def draws_lots(ctx: Context, item: str) -> str:
    await ctx.step("reserve").run(reserve, item)
    label = random.choice(["red", "green", "blue"])  # not replay-safe
    return await ctx.step("ship").run(ship, item, label)


# --- what outlives the run --------------------------------------------------------------------------------------------

_shipped: dict[str, int] = {}


@workflow
async def counts_in_a_global(ctx: Context, item: str) -> str:
    await ctx.step("reserve").run(reserve, item)
    _shipped[item] = _shipped.get(item, 0) + 1  # not replay-safe
    return await ctx.step("ship").run(ship, item, f"no. {_shipped[item]}")


@workflow
async def counts_after_a_slow_step(ctx: Context, item: str) -> str:
    await ctx.step("slowly").run(slowly, item)
    _shipped[item] = _shipped.get(item, 0) + 1  # not replay-safe
    return item


# --- order ------------------------------------------------------------------------------------------------------------


@workflow
async def follows_a_set(ctx: Context, item: str) -> list[str]:
    prices = {shop: len(shop) for shop in {item, "apple", "pear", "fig"}}  # not replay-safe
    return [await ctx.step("reserve").run(reserve, shop) for shop in prices]


# --- effects ----------------------------------------------------------------------------------------------------------


@workflow
async def writes_a_file(ctx: Context, item: str) -> str:
    await ctx.step("reserve").run(reserve, item)
    Path(os.devnull).write_text(item)  # noqa: ASYNC240  # not replay-safe
    return await ctx.step("ship").run(ship, item)


@dataclass
class Mailer:
    sent: list[str] = field(default_factory=list[str])

    def send(self, text: str) -> None:
        self.sent.append(text)


_mailer = Mailer()


@workflow
async def sends_a_mail(ctx: Context, item: str) -> str:
    await ctx.step("reserve").run(reserve, item)
    _mailer.send(f"we have {item}")  # not replay-safe
    return await ctx.step("ship").run(ship, item)


# --- tasks ------------------------------------------------------------------------------------------------------------


async def pack_and_ship(ctx: Context, item: str) -> str:
    return await ctx.step("ship").run(ship, item)  # not replay-safe


@workflow
async def moves_a_task_layer(ctx: Context, item: str) -> str:
    await ctx.step("reserve").run(reserve, item)
    if ctx.is_replaying:
        return await asyncio.create_task(pack_and_ship(ctx, item))
    shipped = await pack_and_ship(ctx, item)
    await ctx.sleep("wait", "1h")
    return shipped


# --- time -------------------------------------------------------------------------------------------------------------


@workflow
async def branches_on_time(ctx: Context, item: str) -> str:
    deadline = ctx.now().timestamp() + 60
    await ctx.sleep("wait", "1h")
    if time.time() > deadline:  # not replay-safe
        await ctx.step("reserve").run(reserve, item)
    return await ctx.step("ship").run(ship, item)


# --- cancellation -----------------------------------------------------------------------------------------------------


@workflow
async def lets_a_cancellation_out(ctx: Context, item: str) -> str:
    backup = asyncio.create_task(ctx.step("slowly").run(slowly, item))
    await ctx.step("quickly").run(quickly, item)
    backup.cancel()
    return await backup  # not replay-safe


# --- not awaited ------------------------------------------------------------------------------------------------------


@workflow
async def does_not_await(ctx: Context, item: str) -> str:
    ctx.step("reserve").run(reserve, item)  # type: ignore[unused-coroutine]  # not replay-safe
    return await ctx.step("ship").run(ship, item)


@workflow
async def does_not_wait_for_its_task(ctx: Context, item: str) -> str:
    reserving = asyncio.create_task(ctx.step("slowly").run(slowly, item))  # not replay-safe
    shipped = await ctx.step("ship").run(ship, item)
    return f"{shipped} {reserving.done()}"


# --- threads ----------------------------------------------------------------------------------------------------------


def _note(seen: list[str], item: str) -> None:
    seen.append(item)


@workflow
async def starts_a_thread(ctx: Context, item: str) -> str:
    await ctx.step("reserve").run(reserve, item)
    seen: list[str] = []
    beside = threading.Thread(target=_note, args=(seen, item))
    beside.start()  # not replay-safe
    beside.join()
    return await ctx.step("ship").run(ship, seen[0])


@workflow
async def calls_to_thread(ctx: Context, item: str) -> str:
    await ctx.step("reserve").run(reserve, item)
    label = await asyncio.to_thread(str.upper, item)  # not replay-safe
    return await ctx.step("ship").run(ship, item, label)


# --- ways in which it only shows in another execution -----------------------------------------------------------------

_seen: list[str] = []


async def remember(item: str) -> str:
    _seen.append(item)
    return item


@workflow
async def reads_a_changed_global(ctx: Context, item: str) -> str:
    count = len(_seen)
    await ctx.step("remember").run(remember, item)
    return await ctx.step("ship").run(ship, item, f"after {count}")  # not replay-safe


@workflow
async def follows_a_set_of_steps(ctx: Context, item: str) -> list[str]:
    shops = frozenset([item, "apple", "pear", "fig"])
    for shop in sorted(shops):
        await ctx.step("greet").run(reserve, shop)
    return await ctx.parallel(
        ctx.step(f"reserve-{shop}").run(reserve, shop)
        for shop in shops  # not replay-safe
    )

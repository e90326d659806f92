"""Workflows of several kinds for a worker that drains. A process is slow while it is marked so, and quick otherwise:
what it does not finish, the next one does at once."""

import asyncio
import os
import time
from pathlib import Path

from kagzi import Context, Retry, Worker, current_step, workflow
from tests.support.ledger import Ledger

LEDGER = Ledger(os.environ.get("KAGZI_TEST_LEDGER", "ledger.jsonl"))
GRACE_S = 2.0
SHORT_STEPS = 10
NAPS = 3


def mark_of(ledger: Path, pid: int) -> Path:
    return ledger.parent / f"slow-{pid}"


def is_slow() -> bool:
    return mark_of(LEDGER.path, os.getpid()).exists()


def note(event: str) -> None:
    step = current_step()
    LEDGER.write(event, step.run_id, step.step_id, attempt=step.attempt)


async def for_a_moment(number: int) -> int:
    note("begin")
    await asyncio.sleep(0.05)
    return number


async def for_ever() -> str:
    note("begin")
    await asyncio.sleep(60.0 if is_slow() else 0.0)
    return "done"


def block_for_ever() -> str:
    note("begin")
    time.sleep(60.0 if is_slow() else 0.0)
    return "done"


async def fail_while_slow() -> str:
    note("begin")
    if is_slow():
        raise ConnectionError("not here")
    return "done"


@workflow
async def short_steps(ctx: Context) -> str:
    for number in range(SHORT_STEPS):
        await ctx.step("moment").run(for_a_moment, number)
    return "done"


@workflow
async def long_step(ctx: Context) -> str:
    return await ctx.step("long").run(for_ever)


@workflow
async def blocking_step(ctx: Context) -> str:
    return await ctx.step("blocking").run(block_for_ever)


@workflow
async def sleeping(ctx: Context) -> str:
    await ctx.step("before").run(for_a_moment, 0)
    for number in range(NAPS):
        await ctx.sleep("nap", "600ms" if number % 2 else "1.5s")
    return "done"


@workflow
async def retrying(ctx: Context) -> str:
    """Waits in its slot for the first retries, and parked for the later ones."""
    backoff = Retry.exponential(50, initial="400ms", max="1.5s", jitter=0)
    return await ctx.step("try", retry=backoff).run(fail_while_slow)


KINDS = (short_steps, long_step, blocking_step, sleeping, retrying)
worker = Worker(workflows=KINDS, shutdown_grace=f"{GRACE_S:g}s")

"""What nobody should do in a step, and two things that look like it and are fine."""

import asyncio
import hashlib
import os
import time

from kagzi import Context, Worker, current_step, workflow
from tests.support.ledger import Ledger

LEDGER = Ledger(os.environ.get("KAGZI_TEST_LEDGER", "ledger.jsonl"))
THREADS = 2
_SOME = 3_000_000


def note() -> None:
    step = current_step()
    LEDGER.write("begin", step.run_id, step.step_id, attempt=step.attempt)


async def block(seconds: float) -> None:
    note()
    time.sleep(seconds)  # noqa: ASYNC251  a blocked event loop is the subject


def wait_in_a_thread(seconds: float) -> None:
    note()
    time.sleep(seconds)


def compute(seconds: float) -> int:
    note()
    end, count = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        count += 1
    return count


def compute_in_c(times: int) -> int:
    """Adds up, for most of a second each time, or longer if others want the processor, without letting go of the interpreter."""
    note()
    began = time.thread_time()
    sum(range(_SOME))
    numbers = int(_SOME * 0.7 / (time.thread_time() - began))
    return sum(sum(range(numbers)) for _ in range(times))


def hash_a_lot(seconds: float) -> str:
    """Computes in C, too, and lets go of the interpreter meanwhile."""
    note()
    end, block, digest = time.monotonic() + seconds, b"x" * 50_000_000, hashlib.sha256()
    while time.monotonic() < end:
        digest.update(block)
    return digest.hexdigest()


@workflow
async def blocking_the_loop(ctx: Context, seconds: float) -> str:
    await ctx.step("block").run(block, seconds)
    return "done"


@workflow
async def waiting_in_threads(ctx: Context, seconds: float) -> str:
    await ctx.step("wait").run(wait_in_a_thread, seconds)
    return "done"


@workflow
async def computing(ctx: Context, seconds: float) -> str:
    await ctx.step("compute").run(compute, seconds)
    return "done"


@workflow
async def computing_in_c(ctx: Context, times: int) -> str:
    await ctx.step("add").run(compute_in_c, times)
    return "done"


@workflow
async def hashing(ctx: Context, seconds: float) -> str:
    await ctx.step("hash").run(hash_a_lot, seconds)
    return "done"


@workflow
async def beside(ctx: Context) -> str:
    """Somebody else in the same worker."""
    for _ in range(20):
        await ctx.step("small").run(asyncio.sleep, 0.02)
    return "done"


WORKFLOWS = (blocking_the_loop, waiting_in_threads, computing, computing_in_c, hashing, beside)
worker = Worker(workflows=WORKFLOWS, threads=THREADS, shutdown_grace="1s")

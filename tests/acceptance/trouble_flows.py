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
RELEASED = LEDGER.path.with_name("released")
"""Made by a test that has seen what it wanted: until then these steps go on, however long the report of them takes."""
_MOST_S = 120.0
_COMPUTED_S = 20.0  # by a run that was not reported: the next one may be


def note() -> None:
    step = current_step()
    LEDGER.write("begin", step.run_id, step.step_id, attempt=step.attempt)


def is_over(begin: float, seconds: float) -> bool:
    """After so many seconds, when the test has released it; in any case in the end."""
    took = time.monotonic() - begin
    return took > _MOST_S or (took > seconds and RELEASED.exists())


async def block(seconds: float) -> None:
    wait_in_a_thread(seconds)  # a blocked event loop is the subject


def wait_in_a_thread(seconds: float) -> None:
    note()
    begin = time.monotonic()
    while not is_over(begin, seconds):
        time.sleep(0.05)


def compute(seconds: float) -> int:
    note()
    begin, count = time.monotonic(), 0
    while not is_over(begin, seconds) and time.monotonic() - begin < _COMPUTED_S:
        for _ in range(_SOME):
            count += 1
    return count


def compute_in_c(times: int) -> int:
    """Adds up, for most of a second each time, or longer if others want the processor, without letting go of the
    interpreter."""
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

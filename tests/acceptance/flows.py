"""Workflows that real worker processes serve in these tests. What their bodies do is in the ledger, outside of
Kagzi."""

import asyncio
import os
import time
from datetime import timedelta

from kagzi import Context, NonRetryable, Retry, StepError, current_step, workflow
from tests.support.ledger import Ledger

LEDGER = Ledger(os.environ.get("KAGZI_TEST_LEDGER", "ledger.jsonl"))
STEPS = 10


def note(event: str, text: str = "") -> None:
    step = current_step()
    LEDGER.write(event, step.run_id, step.step_id, attempt=step.attempt, note=text)


async def work(number: int, seconds: float) -> int:
    note("begin")
    await asyncio.sleep(seconds)
    note("end")
    return number


@workflow
async def ten_steps(ctx: Context, seconds: float) -> int:
    """Sequential: when the body of one begins, every one before it has been acknowledged."""
    total = 0
    for number in range(STEPS):
        total += await ctx.step(f"s{number}").run(work, number, seconds)
    return total


async def branch(ctx: Context, label: str, delays: list[float]) -> list[str]:
    """Equal step names in every branch: only the scope tells them apart."""
    seen: list[str] = []
    for number, delay in enumerate(delays):
        seen.append(await ctx.step("work").run(say, f"{label}{number}", delay))
    return seen


async def say(text: str, seconds: float) -> str:
    note("begin", text)
    await asyncio.sleep(seconds * float(os.environ.get("KAGZI_TEST_PACE", "1")))
    return text


@workflow
async def two_branches(ctx: Context, delays: list[list[float]]) -> list[list[str]]:
    return list(await asyncio.gather(*(branch(ctx, "abcdef"[n], each) for n, each in enumerate(delays))))


@workflow
async def first_of_two(ctx: Context) -> list[str]:
    """The order in which results arrived is part of the result."""
    tasks = [asyncio.create_task(branch(ctx, label, [delay])) for label, delay in (("x", 0.05), ("y", 0.01))]
    order = [(await finished)[0] for finished in asyncio.as_completed(tasks)]
    await ctx.step("hold").run(work, 0, 1.0)
    return order


async def always_fails(text: str) -> None:
    note("begin")
    raise ConnectionError(text)


@workflow
async def failure_is_a_result(ctx: Context) -> str:
    try:
        await ctx.step("charge", retry=Retry.fixed(2, "10ms")).run(always_fails, "no funds")
    except StepError as error:
        caught = f"{error.error.type}: {error.error.message} after {error.attempts}"
    else:
        caught = "nothing"
    nothing = await ctx.step("none").run(return_none)
    await ctx.step("hold").run(work, 0, 1.0)
    return f"{caught}, {nothing}"


async def return_none() -> None:
    note("begin")


@workflow
async def fails_at_once(ctx: Context) -> None:
    await ctx.step("charge").run(refuse_for_good)


async def refuse_for_good() -> None:
    note("begin")
    raise NonRetryable("card stolen")


@workflow
async def nap(ctx: Context, milliseconds: int) -> float:
    """Returns how late it woke, in seconds, by the clock of this machine, which is also the server's in these tests."""
    began = time.time()
    start = await ctx.step("look").run(lambda: began)
    await ctx.sleep("nap", timedelta(milliseconds=milliseconds))
    woke = await ctx.step("woke").run(time.time)
    return woke - start - milliseconds / 1_000


@workflow
async def long_nap(ctx: Context, seconds: float) -> str:
    await ctx.step("before").run(work, 1, 0.0)
    await ctx.sleep("nap", timedelta(seconds=seconds))
    await ctx.step("after").run(work, 2, 0.0)
    return "rested"


@workflow
async def echo(ctx: Context, text: str) -> str:
    return await ctx.step("echo").run(lambda: text)


@workflow
async def too_much(ctx: Context) -> str:
    return await ctx.step("big").run(lambda: "x" * 3_000_000)


@workflow
async def typed(ctx: Context, number: int) -> int:
    return number + 1


@workflow
async def blocks_the_loop(ctx: Context, seconds: float) -> str:
    """What nobody should do: the whole worker stands still."""
    await ctx.step("block").run(stand_still, seconds)
    return "done"


async def stand_still(seconds: float) -> None:
    note("begin")
    time.sleep(seconds)  # noqa: ASYNC251  a blocked event loop is the subject


async def unlucky() -> None:
    note("begin")
    raise ConnectionError


@workflow
async def tries_for_ever(ctx: Context) -> None:
    """Nearly always in the pause before its next try, which is waited for in place."""
    await ctx.step("try").retry(Retry.linear(10_000, "400ms")).run(unlucky)

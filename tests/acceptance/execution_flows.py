"""Workflows with everything an author can do, for real worker processes. What their bodies did is in the ledger.

`hold` is where a test strikes: everything before it is recorded when its body begins.
"""

import asyncio
import os
import signal
from datetime import timedelta
from typing import Any

from kagzi import ChildError, Context, NonRetryable, Retry, Signal, StepError, Won, current_step, workflow

from .flows import LEDGER, note

approved = Signal("approved", str)
rejected = Signal("rejected", str)
item = Signal("item", int)
SHORTLY = Retry.fixed(3, "20ms")


async def say(text: str, seconds: float = 0.0) -> str:
    note("begin", text)
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        note("cancelled", text)
        raise
    note("end", text)
    return text


async def pick(text: str, failing: bool) -> str:
    note("begin", text)
    if failing:
        raise ConnectionError(text)
    return text


async def hold(seconds: float = 1.0) -> str:
    """With KAGZI_TEST_HOLD nobody leaves it alive."""
    return await say("hold", float(os.environ.get("KAGZI_TEST_HOLD", seconds)))


# --- 1, 2, 3: retries, errors, timeouts -------------------------------------------------------------------------------


async def fails_until(attempt: int) -> int:
    note("begin")
    if current_step().attempt <= attempt:
        raise ConnectionError("not yet")
    return current_step().attempt


@workflow
async def patient(ctx: Context, _: None) -> list[Any]:
    """A step that is tried again in an hour, a sleep of a day, and the time after each."""
    attempts = await ctx.step("hourly", retry=Retry.fixed(3, "1h")).run(fails_until, 1)
    await ctx.sleep("night", "1 day")
    slept = ctx.now()
    await hold_in_a_step(ctx)
    return [attempts, slept.timestamp(), ctx.now().timestamp()]


async def hold_in_a_step(ctx: Context) -> str:
    """While another branch of it waits, the run stays on its worker."""
    return (await ctx.parallel(ctx.step("hold").run(hold), ctx.sleep("beside", "1 day")))[0]


@workflow
async def stubborn(ctx: Context, failures: int) -> int:
    retry = Retry.forever().initial("20ms").max("20ms")
    return await ctx.step("stubborn", retry=retry).run(fails_until, failures)


async def fails_slowly(seconds: float) -> None:
    note("begin")
    await asyncio.sleep(seconds)
    note("fail")
    raise ConnectionError("never works")


@workflow
async def three_tries(ctx: Context, seconds: float) -> str:
    try:
        await ctx.step("thrice", retry=Retry.fixed(3, "20ms")).run(fails_slowly, seconds)
    except StepError as error:
        known = error.matches(ConnectionError), error.matches(OSError), error.matches(ValueError)
        used_up = "exhausted" if error.exhausted else "final"
        return f"{error.attempts} {known} {error.kind} {used_up} {error.error.message}"
    return "worked"


@workflow
async def only_once(ctx: Context, steps: int) -> list[str]:
    seen: list[str] = []
    for number in range(steps):
        try:
            seen.append(await ctx.step(f"once{number}", once=True).run(say, f"{number}", 0.3))
        except StepError as error:
            seen.append(str(error.kind))
    return seen


@workflow
async def tries_itself_again(ctx: Context) -> str:
    before = await ctx.step("before").run(say, "kept")
    if ctx.attempt < 3:
        raise RuntimeError(f"try {ctx.attempt}")
    return f"{before} {ctx.attempt}"


@workflow
async def times_out(ctx: Context) -> str:
    try:
        await ctx.step("slow", timeout="150ms", retry=Retry.fixed(2, "20ms")).run(say, "slow", 30.0)
    except StepError as error:
        caught = f"{error.attempts} {error.matches(TimeoutError)}"
    else:
        caught = "nothing"
    await ctx.step("hold").run(hold)
    return caught


async def breaks(text: str) -> None:
    note("begin", text)
    try:
        raise KeyError(text)
    except KeyError as cause:
        raise NonRetryable(f"{text} is not known", details={"key": text}) from cause


@workflow
async def errors_are_kept(ctx: Context, succeeds: bool) -> str:
    try:
        await ctx.step("breaks").run(breaks, "it")
    except StepError as error:
        detail = error.error
        cause = detail.cause.type if detail.cause is not None else "nothing"
        caught = f"{error.step} {error.kind} {error.attempts} {detail.message} {cause} {dict(detail.metadata)}"
        caught += f" {error.matches(NonRetryable)} {error.matches(ValueError)} {'in breaks' in detail.traceback}"
    else:
        caught = "nothing"
    await ctx.step("hold").run(hold)
    if not succeeds:
        raise LookupError(caught)
    return caught


@workflow(timeout="3s")
async def too_long(ctx: Context) -> str:
    await ctx.step("before").run(say, "before")
    await ctx.sleep("long", "1 hour")
    return "never"


@workflow
async def poison(ctx: Context) -> str:
    return await ctx.step("bite").run(bite)


async def bite() -> str:
    note("begin")
    if os.environ.get("KAGZI_TEST_ANTIDOTE"):
        return "cured"
    os.kill(os.getpid(), signal.SIGKILL)
    return "dead"


# --- 4: several things at once ----------------------------------------------------------------------------------------


@workflow
async def three_at_once(ctx: Context) -> str:
    await ctx.parallel(*(ctx.step(f"s{n}").run(say, f"{n}", 0.1) for n in range(3)))
    return await ctx.step("after").run(say, "after")


async def two_steps(ctx: Context, text: str) -> str:
    first = await ctx.step("open").run(say, f"{text}-open", 0.02)
    second = await ctx.step("close").run(say, f"{text}-close", 0.01)
    return f"{first}+{second}"


@workflow
async def much_at_once(ctx: Context) -> list[Any]:
    """Nested to some depth, with equal names everywhere, and a hold in a branch while others wait or are done."""
    a, b, inner = await ctx.parallel(
        ctx.step("a").run(say, "a", 0.03),
        two_steps(ctx, "b"),
        ctx.parallel(two_steps(ctx, "c"), ctx.parallel([two_steps(ctx, "d"), two_steps(ctx, "e")])),
    )
    mapped = await ctx.map("square", [3, 1, 2], square, key=str, limit=2)
    both = await ctx.parallel(
        ctx.step("good").run(pick, "good", False),
        ctx.step("bad", retry=SHORTLY).run(pick, "bad", True),
        on_error="collect",
    )
    _, kept = await ctx.parallel(ctx.sleep("nap", "300ms"), ctx.step("hold").run(hold))
    shown = [f"{type(each).__name__}: {each.error.message}" if isinstance(each, StepError) else each for each in both]
    return [a, b, inner, mapped, shown, kept]


def square(number: int) -> int:
    note("begin", f"{number}")
    return number * number


@workflow
async def one_fails(ctx: Context) -> str:
    try:
        await ctx.parallel(
            ctx.step("slow").run(say, "slow", 30.0),
            ctx.step("bad", retry=Retry.none()).run(pick, "bad", True),
            ctx.sleep("nap", "1 hour"),
        )
    except StepError as error:
        caught = error.error.message
    else:
        caught = "nothing"
    await ctx.step("hold").run(hold)
    return caught


@workflow
async def mapped(ctx: Context, count: int) -> list[str]:
    return await ctx.map("work", [f"{n}" for n in range(count)], slow_echo, limit=4)


async def slow_echo(text: str) -> str:
    return await say(text, 0.05)


@workflow
async def race_lost_by_a_step(ctx: Context) -> str:
    won = await ctx.race(slow=ctx.step("slow").run(say, "slow", 60.0), nap=ctx.sleep("nap", "200ms"))
    assert isinstance(won, Won)
    await ctx.step("hold").run(hold, 0.5)
    return won.name


@workflow
async def races(ctx: Context) -> list[Any]:
    first = await ctx.race(
        ctx.step("quick").run(say, "quick", 0.01), ctx.sleep("long", "1 hour"), ctx.wait_for(rejected)
    )
    second = await ctx.race(child=ctx.child(sleeper, 3_600.0, id=f"{ctx.workflow_id}/loser"), work=two_steps(ctx, "w"))
    await ctx.step("hold").run(hold)
    return [first, second.name, second.value]


@workflow
async def sleeper(ctx: Context, seconds: float) -> str:
    try:
        await ctx.sleep("nap", timedelta(seconds=seconds))
    finally:
        async with ctx.cleanup():
            await ctx.step("tidy").run(say, "tidy")
    return "rested"


# --- 5: signals -------------------------------------------------------------------------------------------------------


@workflow
async def approval(ctx: Context) -> str:
    await ctx.step("ask").run(say, "ask")
    answer = await ctx.wait_for(approved)
    await ctx.step("hold").run(hold)
    return answer


unregistered = [item]  # workers do not find a signal in here: servers cannot check its values


@workflow
async def in_order(ctx: Context, count: int) -> list[int]:
    seen = [await ctx.wait_for(unregistered[0]) for _ in range(count)]
    await ctx.step("hold").run(hold, 0.3)
    return seen


@workflow
async def collects(ctx: Context, wait: str) -> list[int]:
    """An entity that ends when nothing has come for a while."""
    seen: list[int] = []
    while (number := await ctx.wait_for(item, timeout=wait, default=None)) is not None:
        seen.append(number)
    return seen


@workflow
async def collects_ten(ctx: Context, wait: str) -> list[int]:
    """A batch of at most ten."""
    seen: list[int] = []
    while len(seen) < 10 and (number := await ctx.wait_for(item, timeout=wait, default=None)) is not None:
        seen.append(number)
    return seen


@workflow
async def impatient(ctx: Context) -> list[str]:
    try:
        first = await ctx.wait_for(approved, timeout="200ms")
    except TimeoutError:
        first = "too late"
    second = await ctx.wait_for(rejected, timeout="1500ms", default="nobody")
    await ctx.step("hold").run(hold)
    return [first, second]


@workflow
async def works_while_waiting(ctx: Context) -> list[str]:
    answer, work = await ctx.parallel(ctx.wait_for(approved), ctx.step("work").run(say, "work", 1.0))
    return [answer, work]


# --- 6: children ------------------------------------------------------------------------------------------------------


@workflow
async def leaf(ctx: Context, number: int) -> int:
    return await ctx.step("double").run(double, number)


async def double(number: int) -> int:
    note("begin", f"{number}")
    return 2 * number


@workflow
async def wide(ctx: Context, count: int) -> int:
    return sum(await ctx.parallel(ctx.child(leaf, number) for number in range(count)))


@workflow
async def fails(ctx: Context, text: str) -> None:
    await ctx.step("bad", retry=Retry.none()).run(pick, text, True)


@workflow
async def parent(ctx: Context) -> list[Any]:
    handle = await ctx.start_child(slow_leaf, 1.0, id=f"{ctx.workflow_id}/slow")
    good = await ctx.child(leaf, 21)
    try:
        await ctx.child(fails, "broken")
    except ChildError as error:
        bad = f"{error.matches(ConnectionError)} {error.status} {error}"
    else:
        bad = "nothing"
    await ctx.step("hold").run(hold)
    return [good, bad, await handle.result()]


@workflow
async def slow_leaf(ctx: Context, seconds: float) -> str:
    return await ctx.step("slow").run(say, "slow", seconds)


@workflow
async def leaves_children(ctx: Context) -> str:
    await ctx.start_child(sleeper, 3_600.0, id=f"{ctx.workflow_id}/cancelled")
    await ctx.start_child(sleeper, 2.0, id=f"{ctx.workflow_id}/abandoned", on_close="abandon")
    return "gone"


@workflow
async def waits_for_child(ctx: Context) -> str:
    return await ctx.child(sleeper, 3_600.0, id=f"{ctx.workflow_id}/child")


# --- 7: cancellation --------------------------------------------------------------------------------------------------


@workflow
async def busy(ctx: Context, seconds: float) -> int:
    """Step after step, until somebody stops it."""
    for number in range(10_000):
        await ctx.step("beat").run(say, f"{number}", seconds)
    return 0


@workflow
async def tidies_up(ctx: Context, seconds: float) -> str:
    try:
        await ctx.step("long").run(say, "long", seconds)
    finally:
        async with ctx.cleanup():
            await ctx.step("undo").run(say, "undo", 0.3)
            await ctx.step("undone").run(say, "undone")
    return "done"


# --- 8: side effects --------------------------------------------------------------------------------------------------


@workflow
async def side_effects(ctx: Context) -> list[str]:
    ctx.set_status("half way", progress=0.5)
    seen = [str(ctx.uuid()), f"{ctx.random():.12f}", ctx.now().isoformat(), str(ctx.changed("new-rules"))]
    LEDGER.write("facts", ctx.run_id, "", note="|".join(seen))
    await ctx.step("hold").run(hold, 3.0)
    return seen


@workflow
async def counts_down(ctx: Context, number: int) -> str:
    await ctx.step("count").run(say, f"{number}")
    if number:
        ctx.continue_as_new(number - 1)
    got = await ctx.wait_for(approved)
    return f"{got} {ctx.workflow_id}"


async def long_step(heartbeats: int) -> int:
    step = current_step()
    begun = step.heartbeat_details or 0
    note("begin", f"{begun}")
    for number in range(begun, heartbeats):
        step.heartbeat(number + 1)
        await asyncio.sleep(0.1)
    return begun


@workflow
async def heartbeats(ctx: Context, count: int) -> int:
    return await ctx.step("long").run(long_step, count)


# --- 9, 10: again, otherwise ------------------------------------------------------------------------------------------


async def breaks_unless_mended() -> str:
    note("begin")
    if not os.environ.get("KAGZI_TEST_MENDED"):
        raise RuntimeError("broken")
    return "mended"


@workflow
async def mendable(ctx: Context) -> list[str]:
    first = await ctx.step("first").run(say, "first")
    second = await ctx.step("second", retry=Retry.none()).run(breaks_unless_mended)
    third = await ctx.step("third").run(say, f"after {second}")
    return [first, second, third]


CODE = os.environ.get("KAGZI_TEST_CODE", "1")


@workflow
async def rewritten(ctx: Context) -> str:
    if CODE == "wrong":
        await ctx.step("another").run(say, "another")
    first = await ctx.step("first").run(say, "first")
    await ctx.step("hold").run(hold)
    return first


@workflow
async def patched(ctx: Context) -> list[str]:
    seen: list[str] = []
    if CODE == "patched" and ctx.changed("extra"):
        seen.append(await ctx.step("extra").run(say, "extra"))
    seen.append(await ctx.step("first").run(say, "first"))
    await ctx.step("hold").run(hold)
    if CODE == "patched" and ctx.changed("late"):
        seen.append(await ctx.step("late").run(say, "late"))
    return seen

"""Random workflows: steps, failures, retries, sleeps, signals, children, parallel, race, nested. A program is plain
JSON.

Bodies may kill their process, before or after they did what they do: KAGZI_TEST_CRASHES is how likely that is, in
percent.
"""

import asyncio
import os
import random
import signal
from typing import Any

from hypothesis import strategies as st

from kagzi import ChildError, Context, Retry, Signal, StepError, current_step, workflow

from .flows import note

proceed = Signal("go", str)
CRASHES = int(os.environ.get("KAGZI_TEST_CRASHES", "0"))
TWICE = Retry.fixed(2, "10ms")
Program = list[Any]

_NAMES = st.sampled_from(["a", "b"])
_LEAVES = st.one_of(
    st.tuples(st.just("step"), _NAMES),
    st.tuples(st.just("flaky"), _NAMES),
    st.tuples(st.just("fail"), _NAMES),
    st.tuples(st.just("sleep"), st.sampled_from([0, 20, 1_100])),
    st.tuples(st.just("late"), st.just("")),
)
_SIGNALS = st.tuples(st.just("signal"), st.just(""))


def _branches(inner: st.SearchStrategy[Program]) -> st.SearchStrategy[Program]:
    branching = st.tuples(st.sampled_from(["parallel", "collect", "gather"]), st.lists(inner, min_size=1, max_size=3))
    single = st.tuples(st.sampled_from(["race", "child"]), inner)
    return st.lists(st.one_of(_LEAVES, branching, single), min_size=1, max_size=3)


_TREES = st.recursive(st.lists(_LEAVES, min_size=1, max_size=3), _branches, max_leaves=8)
PROGRAMS = st.tuples(_TREES, st.lists(_SIGNALS, max_size=2), _TREES).map(
    lambda parts: [*parts[0], *parts[1], *parts[2]]
)


def signals_in(program: Program) -> int:
    return sum(action[0] == "signal" for action in program)


def maybe_die() -> None:
    if random.randrange(100) < CRASHES:
        os.kill(os.getpid(), signal.SIGKILL)


async def body(kind: str) -> str:
    note("begin", kind)
    maybe_die()
    await asyncio.sleep(0.01)
    if kind == "fail" or (kind == "flaky" and current_step().attempt == 1):
        raise ConnectionError(kind)
    note("end", kind)
    maybe_die()
    return f"{current_step().step_id}={kind}"


async def act(ctx: Context, action: list[Any]) -> Any:
    kind, what = action
    match kind:
        case "step" | "flaky":
            return await ctx.step(what, retry=TWICE).run(body, kind)
        case "fail":
            try:
                return await ctx.step(what, retry=TWICE).run(body, kind)
            except StepError as error:
                return f"{error.step} failed {error.attempts} times"
        case "sleep":
            return await ctx.sleep("nap", f"{what}ms")
        case "signal":
            return await ctx.wait_for(proceed)
        case "late":
            return await ctx.wait_for(Signal("never", str), timeout="20ms", default="nobody came")
        case "child":
            return await child(ctx, what)
        case "race":
            won = await ctx.race(work=play(ctx, what), never=ctx.sleep("never", "1 hour"))
            return [won.name, won.value]
        case "gather":
            return await asyncio.gather(*(play(ctx, each) for each in what))
        case _:
            branches = [play(ctx, each) for each in what]
            return list(await ctx.parallel(branches, on_error="collect" if kind == "collect" else "fail-fast"))


async def child(ctx: Context, program: Program) -> Any:
    try:
        return await ctx.child(interpret, program)
    except ChildError as error:
        return error.error.message


async def play(ctx: Context, program: Program) -> list[Any]:
    return [await act(ctx, action) for action in program]


@workflow
async def interpret(ctx: Context, program: list[Any]) -> list[Any]:
    return await play(ctx, program)

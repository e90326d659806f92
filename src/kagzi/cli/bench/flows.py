"""The workflows that are measured. Steps only return `{"i": i}`, so that the engine's cost dominates."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from time import perf_counter
from typing import Any

from ...sdk.workflow.context import Context
from ...sdk.workflow.decorator import workflow
from ...sdk.workflow.workflow import Workflow
from .load import mark, now_ms


async def no_op(i: int) -> dict[str, int]:
    return {"i": i}


async def body(i: int, body_ms: int) -> dict[str, int]:
    await asyncio.sleep(body_ms / 1_000)
    return {"i": i}


async def payload(i: int, size_bytes: int) -> dict[str, Any]:
    return {"i": i, "data": "x" * size_bytes}


@workflow("bench-sequence")
async def sequence(ctx: Context, steps: int) -> int:
    """`steps` steps, one after another."""
    done = 0
    for i in range(steps):
        result = await ctx.step("step").run(no_op, i)
        done += result["i"] == i
    return done


@workflow("bench-timed")
async def timed(ctx: Context, steps: int) -> dict[str, float]:
    """As `sequence`; returns how long its steps took."""
    began = perf_counter()  # kagzi: ignore[clock] it is what is measured
    done = 0
    for i in range(steps):
        result = await ctx.step("step").run(no_op, i)
        done += result["i"] == i
    took_s = perf_counter() - began  # kagzi: ignore[clock] it is what is measured
    return {"done": done, "ms": took_s * 1_000}


@workflow("bench-fan-out")
async def fan_out(ctx: Context, steps: int) -> int:
    """`steps` steps, all at once."""
    results = await asyncio.gather(*(ctx.step("step").run(no_op, i) for i in range(steps)))
    return sum(result["i"] == i for i, result in enumerate(results))


@workflow("bench-bodies")
async def bodies(ctx: Context, options: dict[str, int]) -> int:
    """`steps` steps, one after another, that take `body_ms` each."""
    done = 0
    for i in range(options["steps"]):
        result = await ctx.step("step").run(body, i, options["body_ms"])
        done += result["i"] == i
    return done


@workflow("bench-payloads")
async def payloads(ctx: Context, options: dict[str, int]) -> int:
    """`steps` steps, one after another, that return `bytes` each."""
    done = 0
    for i in range(options["steps"]):
        result = await ctx.step("step").run(payload, i, options["bytes"])
        done += len(result["data"]) == options["bytes"]
    return done


@workflow("bench-sleeper")
async def sleeper(ctx: Context, due_ms: int) -> int:
    """Sleeps until a moment; returns when it went on."""
    await ctx.sleep_until("sleep", datetime.fromtimestamp(due_ms / 1_000, UTC))
    return now_ms()  # kagzi: ignore[clock] it is what is measured


@workflow("bench-replayed")
async def replayed(ctx: Context, options: dict[str, Any]) -> int:
    """`steps` steps; then it stays where it is until its worker is killed, and ends on the next one."""
    # kagzi: ignore[clock, blocking] tells the process that measures how often the code begins
    mark(options["directory"], "entered")
    done = 0
    for i in range(options["steps"]):
        result = await ctx.step("step").run(no_op, i)
        done += result["i"] == i
    # kagzi: ignore[clock, blocking] as above
    if not mark(options["directory"], "stepped"):
        await asyncio.Event().wait()
    return done


FLOWS: Mapping[str, Workflow[Any, Any]] = {
    "sequence": sequence,
    "timed": timed,
    "fan_out": fan_out,
    "bodies": bodies,
    "payloads": payloads,
    "sleeper": sleeper,
    "replayed": replayed,
}

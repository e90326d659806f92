"""Restate's worker: python restate_service.py PORT"""

import asyncio
import sys
from datetime import timedelta
from time import perf_counter
from typing import Any

import hypercorn
import hypercorn.asyncio
import restate
from protocol import load, run

bench = restate.Service("bench")


async def no_op(i: int) -> dict[str, int]:
    return {"i": i}


async def body(i: int, body_ms: int) -> dict[str, int]:
    await asyncio.sleep(body_ms / 1_000)
    return {"i": i}


async def payload(i: int, size_bytes: int) -> dict[str, Any]:
    return {"i": i, "data": "x" * size_bytes}


@bench.handler()
async def sequence(ctx: restate.Context, steps: int) -> int:
    done = 0
    for i in range(steps):
        result = await ctx.run_typed("step", no_op, i=i)
        done += result["i"] == i
    return done


@bench.handler()
async def timed(ctx: restate.Context, steps: int) -> dict[str, float]:
    began = perf_counter()
    done = await sequence(ctx, steps)
    return {"done": done, "ms": (perf_counter() - began) * 1_000}


@bench.handler()
async def fan_out(ctx: restate.Context, steps: int) -> int:
    results = await restate.gather(*(ctx.run_typed("step", no_op, i=i) for i in range(steps)))
    done = 0
    for i, result in enumerate(results):
        done += (await result)["i"] == i
    return done


@bench.handler()
async def bodies(ctx: restate.Context, options: dict[str, Any]) -> int:
    done = 0
    for i in range(options["steps"]):
        result = await ctx.run_typed("step", body, i=i, body_ms=options["body_ms"])
        done += result["i"] == i
    return done


@bench.handler()
async def payloads(ctx: restate.Context, options: dict[str, Any]) -> int:
    done = 0
    for i in range(options["steps"]):
        result = await ctx.run_typed("step", payload, i=i, size_bytes=options["bytes"])
        done += len(result["data"]) == options["bytes"]
    return done


@bench.handler()
async def sleeper(ctx: restate.Context, due_ms: int) -> int:
    await ctx.sleep(timedelta(milliseconds=max(due_ms - load.now_ms(), 0)))
    return load.now_ms()


@bench.handler()
async def replayed(ctx: restate.Context, options: dict[str, Any]) -> int:
    load.mark(options["directory"], "entered")
    done = 0
    for i in range(options["steps"]):
        result = await ctx.run_typed("step", no_op, i=i)
        done += result["i"] == i
    if not load.mark(options["directory"], "stepped"):
        await asyncio.Event().wait()
    return done


async def main(port: str) -> None:
    config = hypercorn.Config()
    config.bind = [f"127.0.0.1:{port}"]
    config.h2_max_concurrent_streams = 2_147_483_647
    config.keep_alive_max_requests = 2_147_483_647
    config.keep_alive_timeout = 86_400
    print("ready: service", flush=True)
    await hypercorn.asyncio.serve(restate.app(services=[bench]), config)


if __name__ == "__main__":
    run(main(sys.argv[1]))

"""Absurd: workers and load generator in one process: python absurd_driver.py URL

Its client polls for results with growing pauses. Here the function, which runs in this process, signals its end; then
the result is polled every 2 ms. That favours Absurd: no result waits longer than necessary. Each worker has one
connection, claims a batch and waits for all of it: several small workers are faster than a large one.
"""

import asyncio
import itertools
import sys
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Any

import psycopg
from absurd_sdk import AsyncAbsurd, AsyncTaskContext
from absurdctl import BUNDLED_SCHEMA_SQL
from protocol import load, run, serve

WORKERS = 10
SLOTS = 10  # per worker
CLIENTS = 10
POLL_S = 0.1  # with ten workers, one polls every 10 ms
CLAIM_S = 30
RESULT_POLL_S = 0.002

Body = Callable[[Any, AsyncTaskContext], Awaitable[Any]]


async def no_op(i: int) -> dict[str, int]:
    return {"i": i}


async def sequence(steps: int, ctx: AsyncTaskContext) -> int:
    done = 0
    for i in range(steps):
        result = await ctx.step("step", lambda i=i: no_op(i))
        done += result["i"] == i
    return done


async def timed(steps: int, ctx: AsyncTaskContext) -> dict[str, float]:
    began = perf_counter()
    done = await sequence(steps, ctx)
    return {"done": done, "ms": (perf_counter() - began) * 1_000}


async def fan_out(steps: int, ctx: AsyncTaskContext) -> int:
    results = await asyncio.gather(*(ctx.step("step", lambda i=i: no_op(i)) for i in range(steps)))
    return sum(result["i"] == i for i, result in enumerate(results))


async def bodies(options: dict[str, Any], ctx: AsyncTaskContext) -> int:
    async def body(i: int) -> dict[str, int]:
        await asyncio.sleep(options["body_ms"] / 1_000)
        return {"i": i}

    done = 0
    for i in range(options["steps"]):
        result = await ctx.step("step", lambda i=i: body(i))
        done += result["i"] == i
    return done


async def payloads(options: dict[str, Any], ctx: AsyncTaskContext) -> int:
    async def payload(i: int) -> dict[str, Any]:
        return {"i": i, "data": "x" * options["bytes"]}

    done = 0
    for i in range(options["steps"]):
        result = await ctx.step("step", lambda i=i: payload(i))
        done += len(result["data"]) == options["bytes"]
    return done


async def sleeper(due_ms: int, ctx: AsyncTaskContext) -> int:
    await ctx.sleep_until("sleep", due_ms / 1_000)
    return load.now_ms()


async def replayed(options: dict[str, Any], ctx: AsyncTaskContext) -> int:
    load.mark(options["directory"], "entered")
    done = 0
    for i in range(options["steps"]):
        result = await ctx.step("step", lambda i=i: no_op(i))
        done += result["i"] == i
    if not load.mark(options["directory"], "stepped"):
        await asyncio.Event().wait()
    return done


FLOWS: dict[str, Body] = {
    "sequence": sequence,
    "timed": timed,
    "fan_out": fan_out,
    "bodies": bodies,
    "payloads": payloads,
    "sleeper": sleeper,
    "replayed": replayed,
}


class Absurd:
    def __init__(self, url: str) -> None:
        self._clients = [AsyncAbsurd(url, queue_name="bench") for _ in range(CLIENTS)]
        self._next = itertools.cycle(self._clients)
        self._serial = itertools.count()
        self._ended: dict[int, asyncio.Future[None]] = {}
        self._waiting: dict[str, asyncio.Future[None]] = {}

    async def open(self) -> None:
        await self._clients[0].create_queue("bench")
        await self._clients[0].create_queue("nobody")

    def worker(self, url: str) -> AsyncAbsurd:
        app = AsyncAbsurd(url, queue_name="bench")
        for name, flow in FLOWS.items():
            app.register_task(name)(self._watched(flow))
        return app

    async def run(self, flow: str, value: Any) -> Any:
        return await self.result(flow, await self.start(flow, value))

    async def start(self, flow: str, value: Any) -> str:
        """A run that no worker serves waits in a queue without a worker."""
        if flow == load.UNSERVED:
            return str((await next(self._next).spawn(flow, value, queue="nobody", max_attempts=5))["task_id"])
        serial = next(self._serial)
        self._ended[serial] = ended = asyncio.get_running_loop().create_future()
        spawned = await next(self._next).spawn(flow, {"value": value, "serial": serial}, queue="bench")
        self._waiting[str(spawned["task_id"])] = ended
        return str(spawned["task_id"])

    async def result(self, _flow: str, run_id: str) -> Any:
        ended = self._waiting.pop(run_id, None)
        if ended is not None:
            await ended
        while True:
            snapshot = await next(self._next).fetch_task_result(run_id)
            if snapshot is not None and snapshot.state == "completed":
                return snapshot.result
            if snapshot is not None and snapshot.state in ("failed", "cancelled"):
                raise RuntimeError(f"{snapshot.state}: {snapshot.failure}")
            await asyncio.sleep(RESULT_POLL_S if ended is not None else 0.05)

    def _watched(self, flow: Body) -> Body:
        async def watched(params: Any, ctx: AsyncTaskContext) -> Any:
            result = await flow(params["value"], ctx)
            ended = self._ended.pop(params["serial"], None)
            if ended is not None and not ended.done():
                ended.set_result(None)
            return result

        return watched


async def work(worker: AsyncAbsurd, number: int) -> None:
    await asyncio.sleep(number * POLL_S / WORKERS)  # so that they do not all poll at once
    await worker.start_worker(
        worker_id=f"worker-{number}", claim_timeout=CLAIM_S, concurrency=SLOTS, poll_interval=POLL_S
    )


async def main(url: str) -> None:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        exists = await connection.execute("select 1 from pg_namespace where nspname = 'absurd'")
        if await exists.fetchone() is None:
            await connection.execute(BUNDLED_SCHEMA_SQL)
    absurd = Absurd(url)
    await absurd.open()
    workers = [absurd.worker(url) for _ in range(WORKERS)]
    tasks = [asyncio.create_task(work(worker, number)) for number, worker in enumerate(workers)]
    await serve(absurd)
    for task in tasks:
        task.cancel()


if __name__ == "__main__":
    run(main(sys.argv[1]))

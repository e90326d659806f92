"""Temporal's workflows. Steps are local activities, which are faster here than activities on a task queue."""

import asyncio
from datetime import timedelta
from time import perf_counter
from typing import Any

from protocol import load
from temporalio import activity, workflow

LIMIT = timedelta(seconds=60)


@activity.defn
async def no_op(i: int) -> dict[str, int]:
    return {"i": i}


@activity.defn
async def body(i: int, body_ms: int) -> dict[str, int]:
    await asyncio.sleep(body_ms / 1_000)
    return {"i": i}


@activity.defn
async def payload(i: int, size_bytes: int) -> dict[str, Any]:
    return {"i": i, "data": "x" * size_bytes}


async def step(function: Any, *arguments: Any) -> Any:
    return await workflow.execute_local_activity(function, args=arguments, start_to_close_timeout=LIMIT)


@workflow.defn(name="sequence")
class Sequence:
    @workflow.run
    async def run(self, steps: int) -> int:
        done = 0
        for i in range(steps):
            done += (await step(no_op, i))["i"] == i
        return done


@workflow.defn(name="timed")
class Timed:
    @workflow.run
    async def run(self, steps: int) -> dict[str, float]:
        began = perf_counter()
        done = 0
        for i in range(steps):
            done += (await step(no_op, i))["i"] == i
        return {"done": done, "ms": (perf_counter() - began) * 1_000}


@workflow.defn(name="fan_out")
class FanOut:
    @workflow.run
    async def run(self, steps: int) -> int:
        results = await asyncio.gather(*(step(no_op, i) for i in range(steps)))
        return sum(result["i"] == i for i, result in enumerate(results))


@workflow.defn(name="bodies")
class Bodies:
    @workflow.run
    async def run(self, options: dict[str, Any]) -> int:
        done = 0
        for i in range(options["steps"]):
            done += (await step(body, i, options["body_ms"]))["i"] == i
        return done


@workflow.defn(name="payloads")
class Payloads:
    @workflow.run
    async def run(self, options: dict[str, Any]) -> int:
        done = 0
        for i in range(options["steps"]):
            done += len((await step(payload, i, options["bytes"]))["data"]) == options["bytes"]
        return done


@workflow.defn(name="sleeper")
class Sleeper:
    @workflow.run
    async def run(self, due_ms: int) -> int:
        await asyncio.sleep(max(due_ms - load.now_ms(), 1) / 1_000)
        return load.now_ms()


@workflow.defn(name="replayed")
class Replayed:
    """Waits until a signal arrives: without one, a new worker has no reason to resume it."""

    @workflow.run
    async def run(self, options: dict[str, Any]) -> int:
        load.mark(options["directory"], "entered")
        done = 0
        for i in range(options["steps"]):
            done += (await step(no_op, i))["i"] == i
        while not load.mark(options["directory"], "stepped"):
            await workflow.wait_condition(lambda: False)
        return done

    @workflow.signal
    def wake(self) -> None:
        """The event itself resumes the workflow."""


WORKFLOWS = [Sequence, Timed, FanOut, Bodies, Payloads, Sleeper, Replayed]
ACTIVITIES = [no_op, body, payload]

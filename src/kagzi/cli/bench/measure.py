"""Measures the workloads, from the side of the client. Time is the client's monotonic clock."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from time import perf_counter

from ...core.providers import Rng
from ...sdk.client.client import Kagzi
from ...sdk.workflow.workflow import Workflow
from .cpu import CpuMeter, per_thousand
from .flows import UNSERVED, fan_out, sequence
from .plan import Measurement, Plan, percentile

RUN_TIMEOUT = "120s"
_MS = 1_000
_MS_PER_STEP = "ms/step"


class Bench:
    """Measures through one client. A worker serves `flows`; nobody serves UNSERVED."""

    def __init__(self, client: Kagzi, plan: Plan, meter: CpuMeter, rng: Rng) -> None:
        self._client = client
        self._plan = plan
        self._meter = meter
        self._rng = rng

    async def measure(self, workload: str) -> AsyncIterator[Measurement]:
        """One or more lines for a workload (W1 has one for each number in flight)."""
        plan = self._plan
        match workload:
            case "W1":
                for in_flight in plan.in_flight:
                    what = f"runs of {plan.steps} steps, {in_flight} at a time"
                    yield await self._throughput(workload, what, "steps/s", in_flight, self._run_fixed)
            case "W1r":
                low, high = plan.mixed_steps
                for in_flight in plan.in_flight:
                    what = f"runs of {low}-{high} steps, {in_flight} at a time"
                    yield await self._throughput(workload, what, "steps/s", in_flight, self._run_mixed)
            case "W2":
                what = f"{plan.latency_steps} steps, one run at a time"
                yield await self._latency(
                    workload, what, _MS_PER_STEP, runs=plan.latency_runs, flow=sequence, steps=plan.latency_steps
                )
            case "W3":
                yield await self._latency(
                    workload, "idle: start, 1 step, result", "ms", runs=plan.pickups, flow=sequence, steps=1
                )
            case "W4":
                what = f"starts, {plan.starts_in_flight} in flight, no worker"
                yield await self._throughput(workload, what, "starts/s", plan.starts_in_flight, self._start_one)
            case _:
                what = f"{plan.fan_out_steps} concurrent steps"
                yield await self._latency(
                    workload, what, "ms", runs=plan.fan_out_runs, flow=fan_out, steps=plan.fan_out_steps
                )

    async def warm_up(self) -> None:
        """Caches, plans, imports and connections: everything that happens once, before anything is timed."""
        await self._closed_loop(min(self._plan.in_flight), self._plan.warm_up_seconds, self._run_fixed)
        await self._client.run(fan_out, self._plan.fan_out_steps, timeout=RUN_TIMEOUT)

    async def _throughput(
        self, workload: str, what: str, unit: str, in_flight: int, one: Callable[[], Awaitable[int]]
    ) -> Measurement:
        """Operations per second. `one` returns how many operations it did."""
        used = self._meter.read()
        done, seconds = await self._closed_loop(in_flight, self._plan.seconds, one)
        operations = sum(count for _, count in done)
        return Measurement(
            workload=workload,
            what=what,
            unit=unit,
            value=operations / seconds,
            higher_is_better=True,
            runs=len(done),
            operations=operations,
            seconds=seconds,
            samples=_per_second(done, seconds),
            in_flight=in_flight,
            cpu_seconds_per_1000=per_thousand(self._meter.since(used), operations),
        )

    async def _latency(
        self, workload: str, what: str, unit: str, *, runs: int, flow: Workflow[int, int], steps: int
    ) -> Measurement:
        """Times of `runs` runs, one at a time with a pause between, so that each meets an idle system."""
        divide_by = steps if unit == _MS_PER_STEP else 1
        used = self._meter.read()
        samples: list[float] = []
        began = perf_counter()
        for _ in range(runs):
            await asyncio.sleep(self._plan.pickup_pause_seconds)
            start = perf_counter()
            await self._client.run(flow, steps, timeout=RUN_TIMEOUT)
            samples.append((perf_counter() - start) * _MS / divide_by)
        p50 = percentile(samples, 50)
        return Measurement(
            workload=workload,
            what=what,
            unit=unit,
            value=p50,
            higher_is_better=False,
            runs=runs,
            operations=runs * steps,
            seconds=perf_counter() - began,
            samples=tuple(samples),
            p50=p50,
            p99=percentile(samples, 99),
            cpu_seconds_per_1000=per_thousand(self._meter.since(used), runs * steps),
        )

    async def _start_one(self) -> int:
        await self._client.start(UNSERVED, {"i": 1})
        return 1

    async def _run_fixed(self) -> int:
        await self._client.run(sequence, self._plan.steps, timeout=RUN_TIMEOUT)
        return self._plan.steps

    async def _run_mixed(self) -> int:
        low, high = self._plan.mixed_steps
        steps = low + int(self._rng.fraction() * (high - low + 1))
        await self._client.run(sequence, steps, timeout=RUN_TIMEOUT)
        return steps

    async def _closed_loop(
        self, in_flight: int, seconds: float, one: Callable[[], Awaitable[int]]
    ) -> tuple[list[tuple[float, int]], float]:
        """`in_flight` callers, each beginning again when its last is done, for `seconds`; then until the last is done.

        Returns when each ended (since the first start) with its count, and the time from first start to last end.
        """
        began = perf_counter()
        done: list[tuple[float, int]] = []

        async def caller() -> None:
            while perf_counter() - began < seconds:
                count = await one()
                done.append((perf_counter() - began, count))

        async with asyncio.TaskGroup() as callers:
            for _ in range(in_flight):
                callers.create_task(caller())
        return done, perf_counter() - began


def _per_second(done: list[tuple[float, int]], seconds: float) -> tuple[float, ...]:
    """Operations that ended in each second of the measurement; the last one may be a part of a second."""
    buckets = [0.0] * (int(seconds) + 1)
    for at, count in done:
        buckets[min(int(at), len(buckets) - 1)] += count
    return tuple(buckets)

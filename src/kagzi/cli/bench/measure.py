"""Measures the workloads from the client's side, with the client's monotonic clock."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from statistics import median
from typing import Any

from . import load
from .cpu import ProcessMeter, per_thousand
from .engine import KagziEngine
from .load import percentile
from .plan import Measurement, Plan

_MS_PER_STEP = "ms/step"
_REPLACED_AFTER_S = 0.1

ReplaceWorker = Callable[[], Awaitable[None]]
"""Kills the worker and starts another one."""


class Bench:
    """Measures through one client. `replace_worker`: only needed for W7."""

    def __init__(
        self,
        engine: KagziEngine,
        plan: Plan,
        meter: ProcessMeter,
        *,
        replace_worker: ReplaceWorker | None = None,
        progress: load.Progress = load.no_progress,
    ) -> None:
        self._engine = engine
        self._plan = plan
        self._meter = meter
        self._replace_worker = replace_worker
        self._progress = progress

    async def measure(self, workload: str) -> AsyncIterator[Measurement]:
        """One or more results for a workload (W1 has one for each number in flight)."""
        match workload:
            case "W1" | "W1r" | "W1b":
                for in_flight in (self._plan.bodies_in_flight,) if workload == "W1b" else self._plan.in_flight:
                    yield await self._throughput(workload, in_flight)
            case "W2" | "W3" | "W5":
                yield await self._latency(workload)
            case "W4":
                yield await self._starts()
            case "W6":
                yield await self._timers()
            case "W7":
                yield await self._replay()
            case _:
                yield await self._at_rest()

    async def warm_up(self) -> None:
        """Fills caches and makes plans, imports and connections before anything is timed."""
        plan = self._plan
        await load.throughput(
            self._engine, in_flight=min(plan.in_flight), seconds=plan.warm_up_seconds, progress=self._progress
        )
        await self._engine.run("fan_out", plan.fan_out_steps)

    async def _throughput(self, workload: str, in_flight: int) -> Measurement:
        plan = self._plan
        low, high = plan.mixed_steps if workload == "W1r" else (plan.steps, plan.steps)
        body_ms = plan.body_ms if workload == "W1b" else 0
        what = f"runs of {low if low == high else f'{low}-{high}'} steps, {in_flight} at a time"
        used = self._meter.cpu()
        result = await load.throughput(
            self._engine,
            in_flight=in_flight,
            seconds=plan.seconds,
            steps=(low, high),
            body_ms=body_ms,
            progress=self._progress,
        )
        return self._rate(
            workload,
            f"{what}, bodies of {body_ms} ms" if body_ms else what,
            "steps/s",
            result,
            used,
            in_flight=in_flight,
        )

    async def _starts(self) -> Measurement:
        in_flight = self._plan.starts_in_flight
        used = self._meter.cpu()
        result = await load.starts(
            self._engine, in_flight=in_flight, seconds=self._plan.seconds, progress=self._progress
        )
        return self._rate(
            "W4", f"starts, {in_flight} in flight, no worker", "starts/s", result, used, in_flight=in_flight
        )

    async def _latency(self, workload: str) -> Measurement:
        plan = self._plan
        what, unit, flow, runs, steps = {
            "W2": ("steps, one run at a time", _MS_PER_STEP, "sequence", plan.latency_runs, plan.latency_steps),
            "W3": ("idle: start, 1 step, result", "ms", "sequence", plan.pickups, 1),
            "W5": ("concurrent steps", "ms", "fan_out", plan.fan_out_runs, plan.fan_out_steps),
        }[workload]
        used = self._meter.cpu()
        result = await load.latency(
            self._engine,
            flow=flow,
            runs=runs,
            steps=steps,
            pause_seconds=plan.pickup_pause_seconds,
            progress=self._progress,
        )
        if unit == _MS_PER_STEP:
            result["samples"] = [sample / steps for sample in result["samples"]]
        p50 = percentile(result["samples"], 50)
        return self._measurement(
            workload, what if steps == 1 else f"{steps} {what}", unit, result, used, value=p50, p50=p50
        )

    async def _timers(self) -> Measurement:
        """How late the last of many timers fires, and a single one."""
        plan = self._plan
        lone = await load.lone_timers(self._engine, runs=plan.lone_timers)
        used = self._meter.cpu()
        result = await load.timers(
            self._engine, count=plan.timers, margin_seconds=plan.timer_margin_seconds, progress=self._progress
        )
        details = {
            "lone_timer_p50_ms": percentile(lone["samples"], 50),
            "lone_timer_p99_ms": percentile(lone["samples"], 99),
        }
        what = f"{plan.timers:,} runs asleep, due at once: the last goes on"
        p50 = percentile(result["samples"], 50)
        return self._measurement(
            "W6", what, "ms late", result, used, value=max(result["samples"]), p50=p50, details=details
        )

    async def _replay(self) -> Measurement:
        if self._replace_worker is None:
            raise RuntimeError("W7 needs a worker that can be killed")
        steps = self._plan.replayed_steps
        with tempfile.TemporaryDirectory(prefix="kagzi-bench-") as directory:
            begun = await load.begin_replay(self._engine, steps=steps, directory=directory, progress=self._progress)
            load.release(directory)
            await self._replace_worker()
            used = self._meter.cpu()
            result = await load.end_replay(
                self._engine, run=begun["run"], steps=steps, directory=directory, progress=self._progress
            )
        details = {"first_execution_s": begun["seconds"], "until_result_s": result["until_result_seconds"]}
        what = f"a run of {steps:,} steps, killed and replayed"
        return self._measurement("W7", what, "s", result, used, value=result["seconds"], details=details)

    async def _at_rest(self) -> Measurement:
        """CPU of all processes while idle with many sleeping runs, and how much those delay a pickup."""
        plan = self._plan
        before = await self._idle()
        empty = await load.latency(self._engine, runs=plan.latency_runs, steps=1)
        result = await load.sleepers(self._engine, count=plan.sleepers, progress=self._progress)
        full = await load.latency(self._engine, runs=plan.latency_runs, steps=1)
        await asyncio.sleep(_REPLACED_AFTER_S)
        used = self._meter.cpu()
        idle = await self._idle()
        details = {f"{name}_percent_of_a_core": percent for name, percent in idle.items()}
        details["all_percent_of_a_core_before"] = sum(before.values())
        details["pickup_ratio"] = median(full["samples"]) / median(empty["samples"])
        what = f"CPU at rest, {plan.sleepers:,} runs asleep"
        return self._measurement(
            "W8", what, "% of a core", result, used, value=sum(idle.values()), details=details, per_operation=False
        )

    async def _idle(self) -> dict[str, float]:
        """Percent of a core, by process."""
        seconds = self._plan.idle_seconds
        used = self._meter.cpu()
        await asyncio.sleep(seconds)
        return {name: cpu / seconds * 100 for name, cpu in self._meter.cpu_since(used).items()}

    def _rate(
        self, workload: str, what: str, unit: str, result: dict[str, Any], used: dict[str, float], *, in_flight: int
    ) -> Measurement:
        value = result["operations"] / result["seconds"]
        return self._measurement(
            workload, what, unit, result, used, value=value, in_flight=in_flight, higher_is_better=True
        )

    def _measurement(
        self,
        workload: str,
        what: str,
        unit: str,
        result: dict[str, Any],
        used: dict[str, float],
        *,
        value: float,
        p50: float | None = None,
        in_flight: int = 1,
        higher_is_better: bool = False,
        details: dict[str, float] | None = None,
        per_operation: bool = True,
    ) -> Measurement:
        return Measurement(
            workload=workload,
            what=what,
            unit=unit,
            value=value,
            higher_is_better=higher_is_better,
            runs=result["runs"],
            operations=result["operations"],
            seconds=result["seconds"],
            samples=tuple(result["samples"]),
            p50=p50,
            p99=None if p50 is None else percentile(result["samples"], 99),
            in_flight=in_flight,
            cpu_seconds_per_1000=per_thousand(self._meter.cpu_since(used), result["operations"])
            if per_operation
            else {},
            memory_mb=self._meter.peak_memory_mb(),
            details={name: round(figure, 4) for name, figure in (details or {}).items()},
        )

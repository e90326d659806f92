"""The load generator: the same load for every measured engine, Kagzi and its peers.

Imports only the standard library: the comparison with peers (bench/) loads this file in other environments. Every
result is checked; a wrong or missing one ends the measurement with an error.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol

UNSERVED = "bench-unserved"
"""A flow that no worker serves: its runs stay pending."""

TIMED = "timed"
"""The flow that measures its own steps: `{"done": steps, "ms": milliseconds}`."""

_MS = 1_000
_POLL_S = 0.005
_SCRAMBLE = 7  # coprime with most ranges: sizes come in a mixed order that is the same on every run
_RATE_SAMPLE = 200
_READ_AT_ONCE = 500  # results
_DAY_MS = 86_400_000

Progress = Callable[[float], None]


class Engine(Protocol):
    """The interface of an engine under load. Flows are those of `flows.py`."""

    async def run(self, flow: str, input: Any, /) -> Any:
        """Start a run and wait for its result."""
        ...

    async def start(self, flow: str, input: Any, /) -> str:
        """Returns the id of the run once its start is durable."""
        ...

    async def result(self, flow: str, run: str, /) -> Any:
        """Wait for the result of a started run, perhaps one that another process started."""
        ...


class WrongResultError(Exception):
    """A run returned a wrong result: the figures mean nothing."""


def no_progress(_done: float, /) -> None:
    """For callers that show no progress."""


async def throughput(
    engine: Engine,
    *,
    in_flight: int,
    seconds: float,
    steps: tuple[int, int] = (10, 10),
    body_ms: int = 0,
    payload_bytes: int = 0,
    progress: Progress = no_progress,
) -> dict[str, Any]:
    """Runs of sequential steps, `in_flight` at a time. `steps`: the minimum and maximum of a run."""
    sizes = _sizes(*steps)

    async def one() -> int:
        count = next(sizes)
        if body_ms:
            result = await engine.run("bodies", {"steps": count, "body_ms": body_ms})
        elif payload_bytes:
            result = await engine.run("payloads", {"steps": count, "bytes": payload_bytes})
        else:
            result = await engine.run("sequence", count)
        require(result, count)
        return count

    return await closed_loop(one, in_flight=in_flight, seconds=seconds, progress=progress)


async def starts(engine: Engine, *, in_flight: int, seconds: float, progress: Progress = no_progress) -> dict[str, Any]:
    """Durable starts of runs that no worker serves."""
    ids: set[str] = set()

    async def one() -> int:
        ids.add(await engine.start(UNSERVED, {"i": 1}))
        return 1

    result = await closed_loop(one, in_flight=in_flight, seconds=seconds, progress=progress)
    require(len(ids), result["operations"])
    return result


async def steady(
    engine: Engine, *, steps_per_second: float, seconds: float, steps: int = 10, progress: Progress = no_progress
) -> dict[str, Any]:
    """Runs of `steps` steps, started at a fixed rate whether or not earlier ones have ended. `samples` are the
    milliseconds of each run."""
    interval = steps / steps_per_second
    began = perf_counter()
    samples: list[float] = []
    running: set[asyncio.Task[None]] = set()

    async def one() -> None:
        start = perf_counter()
        require(await engine.run("sequence", steps), steps)
        samples.append((perf_counter() - start) * _MS)

    async with asyncio.TaskGroup() as group:
        number = 0
        while (now := perf_counter() - began) < seconds:
            while number * interval <= now:
                task = group.create_task(one())
                running.add(task)
                task.add_done_callback(running.discard)
                number += 1
            progress(now / seconds)
            await asyncio.sleep(min(interval, 0.01))
        most = len(running)
    took = perf_counter() - began
    return {
        "runs": number,
        "operations": number * steps,
        "seconds": took,
        "samples": samples,
        "p50": percentile(samples, 50),
        "p99": percentile(samples, 99),
        "in_flight_at_the_end": most,
    }


async def latency(
    engine: Engine,
    *,
    runs: int,
    steps: int,
    flow: str = "sequence",
    pause_seconds: float = 0.02,
    progress: Progress = no_progress,
) -> dict[str, Any]:
    """Milliseconds of `runs` runs, one at a time with a pause between, so that each finds an idle system.

    For the flow TIMED: of the steps alone, by the workflow's clock. For all others: from the start to the result.
    """
    samples: list[float] = []
    began = perf_counter()
    for number in range(runs):
        await asyncio.sleep(pause_seconds)
        start = perf_counter()
        result = await engine.run(flow, steps)
        took_ms = (perf_counter() - start) * _MS
        samples.append(result["ms"] if flow == TIMED else took_ms)
        require(result["done"] if flow == TIMED else result, steps)
        progress((number + 1) / runs)
    return {"runs": runs, "operations": runs * steps, "seconds": perf_counter() - began, "samples": samples}


async def timers(
    engine: Engine,
    *,
    count: int,
    in_flight: int = 50,
    margin_seconds: float = 3.0,
    progress: Progress = no_progress,
) -> dict[str, Any]:
    """`count` runs that sleep until the same moment. `samples`: how late each of them resumed, in milliseconds.

    `margin_seconds`: time between the last start and that moment, if the rate of starts stays the same.
    """
    far = now_ms() + _DAY_MS
    rate = await _start_many(engine, min(count, _RATE_SAMPLE), far, in_flight=in_flight)
    due_ms = now_ms() + int((count / rate * 1.5 + margin_seconds) * _MS)
    runs: list[str] = []
    started = await _start_many(engine, count, due_ms, in_flight=in_flight, runs=runs)
    if now_ms() >= due_ms:
        raise WrongResultError(f"the starts took too long ({started:.0f}/s): the first timers were due before the last")
    progress(0.5)
    return {**await _lateness(engine, runs, due_ms), "starts_per_second": started}


async def lone_timers(
    engine: Engine, *, runs: int, delay_ms: int = 200, progress: Progress = no_progress
) -> dict[str, Any]:
    """Runs that sleep one at a time: how late each of them resumed, in milliseconds."""
    samples: list[float] = []
    began = perf_counter()
    for number in range(runs):
        due_ms = now_ms() + delay_ms
        samples.append(_late(await engine.run("sleeper", due_ms), due_ms))
        progress((number + 1) / runs)
    return {"runs": runs, "operations": runs, "seconds": perf_counter() - began, "samples": samples}


async def sleepers(
    engine: Engine, *, count: int, in_flight: int = 50, progress: Progress = no_progress
) -> dict[str, Any]:
    """Start `count` runs that sleep for a day."""
    began = perf_counter()
    await _start_many(engine, count, now_ms() + _DAY_MS, in_flight=in_flight, progress=progress)
    return {"runs": count, "operations": count, "seconds": perf_counter() - began, "samples": []}


async def begin_replay(
    engine: Engine, *, steps: int, directory: str, progress: Progress = no_progress
) -> dict[str, Any]:
    """Start a run that executes `steps` steps, marks that in `directory`, and waits. Returns its id when it waits: now
    its worker can be killed."""
    began = perf_counter()
    run = await engine.start("replayed", {"steps": steps, "directory": directory})
    while len(_times_marked(directory, "stepped")) < 1:  # noqa: ASYNC110  another process writes the file
        await asyncio.sleep(_POLL_S)
    progress(0.5)
    return {"run": run, "seconds": perf_counter() - began}


async def end_replay(
    engine: Engine, *, run: str, steps: int, directory: str, progress: Progress = no_progress
) -> dict[str, Any]:
    """Wait for the run after its worker was replaced. `seconds`: from the entry of its function to its last recorded
    step, measured by the new worker."""
    began = perf_counter()
    require(await engine.result("replayed", run), steps)
    entered, stepped = _times_marked(directory, "entered"), _times_marked(directory, "stepped")
    progress(1.0)
    return {
        "runs": 1,
        "operations": steps,
        "seconds": stepped[-1] - entered[-1],
        "until_result_seconds": perf_counter() - began,
        "samples": [],
    }


async def closed_loop(
    one: Callable[[], Awaitable[int]], *, in_flight: int, seconds: float, progress: Progress = no_progress
) -> dict[str, Any]:
    """`in_flight` callers, each repeating `one` for `seconds`; then waits for the last of them.

    `one` returns how many operations it did. `seconds` of the result is the time from the first start to the last end,
    `samples` are the operations that ended in each second.
    """
    began = perf_counter()
    done: list[tuple[float, int]] = []

    async def caller() -> None:
        while perf_counter() - began < seconds:
            count = await one()
            at = perf_counter() - began
            done.append((at, count))
            progress(min(at / seconds, 1.0))

    await _together(caller, in_flight)
    took = perf_counter() - began
    buckets = [0.0] * (int(took) + 1)
    for at, count in done:
        buckets[min(int(at), len(buckets) - 1)] += count
    return {"runs": len(done), "operations": sum(count for _, count in done), "seconds": took, "samples": buckets}


def mark(directory: str, name: str) -> bool:
    """Called by the flow `replayed` on entry and after its steps. Returns True if it may end."""
    with Path(directory, name).open("a") as file:
        file.write(f"{time.monotonic()}\n")  # all processes of a machine share this clock
    return Path(directory, "release").exists()


def release(directory: str) -> None:
    """Makes `mark` let the run end."""
    Path(directory, "release").touch()


def now_ms() -> int:
    """The wall clock, which all processes of a machine share."""
    return time.time_ns() // 1_000_000  # noqa: TID251  real time is what is measured


def require(result: Any, wanted: Any) -> None:
    if result != wanted:
        raise WrongResultError(f"a run returned {result!r} instead of {wanted!r}")


def percentile(samples: list[float], percent: float) -> float:
    """Nearest rank. `samples` need not be sorted and must not be empty."""
    ordered = sorted(samples)
    rank = max(1, -(-len(ordered) * percent // 100))
    return ordered[int(rank) - 1]


async def _start_many(
    engine: Engine,
    count: int,
    due_ms: int,
    *,
    in_flight: int,
    runs: list[str] | None = None,
    progress: Progress = no_progress,
) -> float:
    """Returns the starts per second."""
    left = iter(range(count))
    began = perf_counter()

    async def caller() -> None:
        for number in left:
            run = await engine.start("sleeper", due_ms)
            if runs is not None:
                runs.append(run)
            progress((number + 1) / count)

    await _together(caller, min(in_flight, count))
    return count / (perf_counter() - began)


async def _together(caller: Callable[[], Coroutine[Any, Any, None]], count: int) -> None:
    """Runs `count` callers concurrently. The first error ends them all and is raised."""
    try:
        async with asyncio.TaskGroup() as callers:
            for _ in range(count):
                callers.create_task(caller())
    except ExceptionGroup as group:
        raise group.exceptions[0] from None


async def _lateness(engine: Engine, runs: list[str], due_ms: int) -> dict[str, Any]:
    left, samples = iter(runs), list[float]()

    async def caller() -> None:  # a late read does not matter: the result contains the time
        for run in left:
            samples.append(_late(await engine.result("sleeper", run), due_ms))

    await _together(caller, min(_READ_AT_ONCE, len(runs)))
    return {"runs": len(runs), "operations": len(runs), "seconds": max(samples) / _MS, "samples": samples}


def _late(resumed_ms: Any, due_ms: int) -> float:
    if not isinstance(resumed_ms, int | float) or resumed_ms < due_ms:
        raise WrongResultError(f"a run that slept until {due_ms} went on at {resumed_ms!r}")
    return float(resumed_ms - due_ms)


def _times_marked(directory: str, name: str) -> list[float]:
    path = Path(directory, name)
    return [float(line) for line in path.read_text().splitlines()] if path.exists() else []


def _sizes(low: int, high: int) -> Iterator[int]:
    number = 0
    while True:
        yield low + number * _SCRAMBLE % (high - low + 1)
        number += 1

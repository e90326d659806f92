"""Measures engines in turn, round after round, each on an empty store with its own processes.

What was measured while others slowed the machine down is measured again, if the caller wants that. Of the attempts the
one with the smallest slowdown counts, whatever its result; the others are in the document, too.
"""

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from bench.engines.base import Engine
from bench.launch import EngineError, Launcher
from bench.machine_speed import CALM, MachineSpeed
from bench.metering import TreeMeter
from bench.workloads import COMPARED, Plan, Workload
from kagzi.cli.bench.load import release
from tests.support.postgres import URL_VARIABLE, Databases, PostgresServer

_KEPT_SAMPLES = 200
REST_TIMEOUT_S = 300.0
CALM_TIMEOUT_S = 10.0
REST_PERCENT = 3.0  # of a core
BUSY_PERCENT = 50.0

Say = Callable[[str], None]
Record = dict[str, Any]


def compare(
    engines: Sequence[type[Engine]],
    workloads: Sequence[Workload],
    plan: Plan,
    *,
    rounds: int,
    scale_rounds: int,
    always: bool,
    repeats: int = 0,
    say: Say,
) -> Iterator[Record]:
    """One record for each engine, workload, round and attempt. Every other round reverses the order of the engines.

    Workloads that are not part of a plain comparison run only in the first `scale_rounds`, unless `always`. `repeats`:
    how often a measurement that was disturbed is repeated at most.
    """
    with MachineSpeed() as speed:
        speed.calibrate()
        for number in range(rounds):
            due = [each for each in workloads if always or number < scale_rounds or each.name in COMPARED]
            for engine in engines if number % 2 == 0 else list(reversed(engines)):
                say(f"round {number + 1} of {rounds}: {engine.title}")
                for record in measure(engine, due, plan, speed, repeats=repeats):
                    say(f"  {summary_of(record)}")
                    yield {"round": number, **record}


def measure(
    engine_type: type[Engine], workloads: Sequence[Workload], plan: Plan, speed: MachineSpeed, *, repeats: int = 0
) -> Iterator[Record]:
    """One round of one engine."""
    can = [workload for workload in workloads if _can(engine_type, workload)]
    if not can:
        return
    directory = Path(tempfile.mkdtemp(prefix="kagzi-bench-"))
    try:
        with database_of(engine_type) as (url, database_pid), Launcher(directory) as launcher:
            engine = engine_type(launcher, url)
            try:
                engine.start()
                engine.driver.call("throughput", in_flight=20, seconds=plan.warm_up_seconds)
                engine.driver.call("latency", flow="fan_out", steps=100, runs=1)
            except (EngineError, OSError) as error:  # a failure does not stop the others
                yield from ({**_record(engine_type, workload), "error": str(error)} for workload in can)
                return
            for workload in can:
                again = repeats if workload.name in COMPARED else 0
                yield from _calmest(lambda w=workload: _measure(engine, w, plan, database_pid, speed), again, speed)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _calmest(measure_once: Callable[[], Record], repeats: int, speed: MachineSpeed) -> Iterator[Record]:
    """All attempts. Those that do not count are `left_out`. If it may repeat, it begins when the machine is calm."""
    attempts: list[Record] = []
    while not attempts or (len(attempts) <= repeats and not attempts[-1]["error"] and attempts[-1]["slowdown"] > CALM):
        if repeats:
            speed.wait_for_calm(CALM_TIMEOUT_S)
        attempts.append(measure_once())
    counts = attempts[-1] if attempts[-1]["error"] else min(attempts, key=lambda each: each["slowdown"])
    for attempt in attempts:
        yield attempt if attempt is counts else {**attempt, "left_out": True}


def summary_of(record: Record) -> str:
    """The record as one line."""
    if record["error"]:
        return f"{record['workload']:<12} FAILED: {record['error'].splitlines()[0]}"
    cpu = record["cpu_seconds_per_1000"]
    return (
        f"{record['workload']:<12} {record['value']:>12,.2f} {record['unit']:<12}"
        + (f" p99 {record['p99']:,.2f}" if "p99" in record else "")
        + (f"  CPU {sum(cpu.values()):.3f} s per 1,000" if cpu else "")
        + f"  {record['peak_memory_mb'].get('all', 0):,.0f} MB"
        + (f"  slowed down {record['slowdown']:.2f}" if record["slowdown"] > CALM else "")
        + ("  left out" if record.get("left_out") else "")
    )


def _can(engine: type[Engine], workload: Workload) -> bool:
    return workload.name not in engine.cannot and workload.group not in engine.cannot


def _measure(engine: Engine, workload: Workload, plan: Plan, database_pid: int | None, speed: MachineSpeed) -> Record:
    roots = {**engine.launcher.roots, **({"database": database_pid} if database_pid else {})}
    meter = TreeMeter(roots)
    record = {**_record(type(engine), workload), "load_average": os.getloadavg()[0]}
    time.sleep(plan.settle_seconds)
    used, mark = meter.cpu(), speed.mark()
    try:
        with meter.peak_memory() as peaks:
            do, arguments = workload.request(plan)
            answer = _perform(engine, do, arguments, meter)
            spent = meter.cpu_since(used)
            slowdown = speed.slowdown_since(mark)
    except (EngineError, OSError) as error:  # a failure does not stop the others
        return {**record, "error": str(error)}
    operations = answer.get("operations", 0)
    return {
        **record,
        **{name: round(figure, 5) for name, figure in workload.figures(answer).items()},
        "operations": operations,
        "slowdown": slowdown,
        "seconds": round(answer["seconds"], 4),
        "samples": [round(sample, 4) for sample in answer.get("samples", ())][:_KEPT_SAMPLES],
        "cpu_seconds_per_1000": {
            name: round(seconds / operations * 1_000, 5) for name, seconds in spent.items() if operations
        },
        "peak_memory_mb": peaks,
        **{name: answer[name] for name in ("percent_by_process",) if name in answer},
    }


def _record(engine: type[Engine], workload: Workload) -> Record:
    return {"engine": engine.name, "workload": workload.name, "unit": workload.unit, "error": None}


def _perform(engine: Engine, do: str, arguments: dict[str, Any], meter: TreeMeter) -> dict[str, Any]:
    match do:
        case "replay":
            return _replay(engine, meter, **arguments)
        case "idle":
            return _idle(engine, meter, **arguments)
        case "beside_a_flood":
            return _beside_a_flood(engine, **arguments)
        case "starts":
            engine.stop_worker()
            return engine.driver.call(do, **arguments)
        case _:
            return engine.driver.call(do, **arguments)


def _replay(engine: Engine, meter: TreeMeter, *, steps: int) -> dict[str, Any]:
    directory = str(engine.directory)
    begun = engine.driver.call("begin_replay", steps=steps, directory=directory)
    release(directory)
    began = time.monotonic()
    engine.replace_worker()
    database = {name: pid for name, pid in meter.roots.items() if name == "database"}
    meter.roots = {**engine.launcher.roots, **database}
    answer = engine.driver.call("end_replay", run=begun["run"], steps=steps, directory=directory)
    return {**answer, "until_result_seconds": time.monotonic() - began}


def _idle(engine: Engine, meter: TreeMeter, *, seconds: float, pickups: int, sleepers: int = 0) -> dict[str, Any]:
    """CPU of all processes while idle, in total and for each; and how much sleeping runs slow down a pickup."""
    before = engine.driver.call("latency", steps=1, runs=pickups)
    if sleepers:
        engine.driver.call("sleepers", count=sleepers)
    after = engine.driver.call("latency", steps=1, runs=pickups)
    _await_rest(meter, min(seconds / 2, 2.0))
    used = meter.cpu()
    time.sleep(seconds)
    spent = meter.cpu_since(used)
    return {
        "percent": sum(spent.values()) / seconds * 100,
        "percent_by_process": {name: round(cpu / seconds * 100, 3) for name, cpu in spent.items()},
        "pickup_ratio": median(after["samples"]) / median(before["samples"]),
        "seconds": seconds,
    }


def _await_rest(meter: TreeMeter, window_s: float) -> None:
    """Wait until what was started sleeps and CPU use no longer falls; at most REST_TIMEOUT_S."""
    deadline = time.monotonic() + REST_TIMEOUT_S
    last = float("inf")
    while time.monotonic() < deadline:
        used = meter.cpu()
        time.sleep(window_s)
        percent = sum(meter.cpu_since(used).values()) / window_s * 100
        if percent < REST_PERCENT or (percent < BUSY_PERCENT and percent > last * 0.8):
            return
        last = percent


def _beside_a_flood(engine: Engine, *, seconds: float) -> dict[str, Any]:
    request: dict[str, Any] = {"in_flight": 100, "seconds": seconds}
    alone = engine.driver.call("throughput", **request)
    with engine.flood():
        engine.driver.call("throughput", in_flight=100, seconds=min(seconds, 2.0))  # until the flood has begun
        beside = engine.driver.call("throughput", **request)
    share = (beside["operations"] / beside["seconds"]) / (alone["operations"] / alone["seconds"])
    return {**beside, "share": share}


@contextmanager
def database_of(engine: type[Engine]) -> Iterator[tuple[str, int | None]]:
    """The URL of an empty PostgreSQL database with durable defaults, and the postmaster's pid if it is private."""
    if engine.store != "postgresql":
        yield "", None
        return
    if named := os.environ.get(URL_VARIABLE):
        with Databases(named).database() as url:
            yield url, None
        return
    server = PostgresServer()
    try:
        server.start()
        with Databases(server.url).database() as url:
            yield url, server.pid
    finally:
        server.close()

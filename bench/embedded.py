"""Measures an embedded address, with client, worker and server in one process, over each transport in turn.

    python -m bench.embedded                 5 rounds of W1, W2 and W3 on a SQLite file, each transport in each round
    python -m bench.embedded --rounds 3 --only W2 --address :memory: --json result.json

Rounds alternate between the transports, each in its own process, so that drift of the machine affects both. The result
is the median of each, and their ratio. The workloads are those of `kagzi bench`.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import click
import msgspec

from kagzi import Kagzi, Worker
from kagzi.cli.bench.cpu import ProcessMeter
from kagzi.cli.bench.engine import KagziEngine
from kagzi.cli.bench.flows import fan_out, sequence
from kagzi.cli.bench.measure import Bench
from kagzi.cli.bench.plan import Measurement, Plan
from kagzi.cli.processes import fast_runner
from kagzi.embedded import EmbeddedServer

TRANSPORTS = ("grpc", "in_process")
WORKLOADS = ("W1", "W2", "W3")


@click.command()
@click.option("--rounds", default=5, show_default=True)
@click.option("--only", "workloads", multiple=True, type=click.Choice((*WORKLOADS, "W1r", "W4", "W5")))
@click.option("--transport", "transports", multiple=True, type=click.Choice(TRANSPORTS), help="Default: both.")
@click.option("--duration", "seconds", default=5.0, show_default=True, help="Seconds of a throughput measurement.")
@click.option("--address", default="", help="Default: a new SQLite file for each process.")
@click.option("--uvloop", is_flag=True, help="Instead of asyncio's own loop, which is what programs have.")
@click.option("--json", "output", type=click.Path(path_type=Path), help="Write everything, with the raw samples.")
@click.option("--one", "one", hidden=True, default="", help="Measure this transport here, and print its results.")
def main(
    *,
    rounds: int,
    workloads: Sequence[str],
    transports: Sequence[str],
    seconds: float,
    address: str,
    uvloop: bool,
    output: Path | None,
    one: str,
) -> None:
    plan = Plan(workloads=tuple(workloads) or WORKLOADS, seconds=seconds, in_flight=(100,))
    if one:
        with fast_runner() if uvloop else asyncio.Runner() as loop:
            click.echo(msgspec.json.encode(loop.run(measure(one, plan, address))))
        return
    document: list[dict[str, Any]] = []
    for number in range(rounds):
        for transport in transports or TRANSPORTS:
            load = os.getloadavg()[0]
            results = _apart(transport, plan, address, uvloop=uvloop)
            document.append({"round": number, "transport": transport, "load": load, "results": results})
            click.echo(f"{number}  {transport:<10}  load {load:4.1f}  " + "  ".join(map(_line, results)))
    _summary(document)
    if output is not None:
        output.write_text(json.dumps(document, indent=1) + "\n")


def _apart(transport: str, plan: Plan, address: str, *, uvloop: bool) -> list[dict[str, Any]]:
    """Measure in a separate process, so that no transport profits from a warm one."""
    command = [sys.executable, "-m", "bench.embedded", "--one", transport, "--duration", str(plan.seconds)]
    command += ["--uvloop"] if uvloop else []
    command += [part for workload in plan.workloads for part in ("--only", workload)]
    with tempfile.TemporaryDirectory(prefix="kagzi-bench-") as directory:
        command += ["--address", address or f"sqlite:///{directory}/bench.db"]
        printed = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    return msgspec.json.decode(printed, type=list[dict[str, Any]])


async def measure(transport: str, plan: Plan, address: str) -> list[Measurement]:
    """Measure in this process, which keeps the transport from then on."""
    if transport == "grpc":
        setattr(EmbeddedServer, "open_call", None)  # noqa: B010  as if the server ran in another process
    meter = ProcessMeter({"process": [os.getpid()]})
    async with (
        Worker(address, workflows=[sequence, fan_out], max_concurrent=max(plan.in_flight)),
        Kagzi.connect(address) as client,
    ):
        bench = Bench(KagziEngine(client), plan, meter)
        await bench.warm_up()
        results: list[Measurement] = []
        for workload in plan.workloads:
            results.extend([measurement async for measurement in bench.measure(workload)])
        return results


def _line(result: dict[str, Any]) -> str:
    cpu_us = result["cpu_seconds_per_1000"].get("process", 0.0) * 1_000
    return f"{result['workload']} {result['value']:.3f} {result['unit']} ({cpu_us:.0f} us CPU)"


def _summary(document: Sequence[dict[str, Any]]) -> None:
    figures: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for entry in document:
        for result in entry["results"]:
            figures[result["workload"], result["unit"]][entry["transport"]].append(result["value"])
    click.echo("medians")
    for (workload, unit), by_transport in figures.items():
        words = "  ".join(f"{transport} {median(values):.3f}" for transport, values in by_transport.items())
        click.echo(f"  {workload} {unit:<8}  {words}")


if __name__ == "__main__":
    main()

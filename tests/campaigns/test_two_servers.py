"""A second server on another port: with the load balanced over both, throughput does not fall, and a run that is
started at one is picked up at the other in milliseconds."""

import asyncio
import re
import statistics
import sys
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from kagzi import Kagzi
from kagzi.cli.bench import flows as bench_flows
from tests.acceptance.cluster import Cluster
from tests.support.processes import Process, Processes

from . import flows
from .figures import Figures, number, spread

SECONDS = number("SECONDS", 10)
ROUNDS = int(number("ROUNDS", 3))
IN_FLIGHT = 100
STEPS = 10
PICKUPS = int(number("PICKUPS", 300))
PICKUP_P99_MS = 20.0
# Two servers are two more processes on the same cores: what is asked for is that they cost nothing that can be told
# from noise.
LEAST_RATIO = 0.9


async def bench_worker(processes: Processes, address: str, slots: int) -> Process:
    """As `kagzi bench` has it: the command, not the helper of the tests."""
    options = ("--address", address, "--max-concurrent", str(slots))
    worker = await processes.run(
        sys.executable, "-m", "kagzi", "worker", bench_flows.__name__, *options, name="bench-worker"
    )
    await worker.wait_for(re.compile(r"worker \S+ serves"))
    return worker


async def steps_per_second(addresses: Sequence[str], seconds: float) -> float:
    """W1, its callers divided over the servers."""
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(Kagzi.connect(address)) for address in addresses]
        began = time.perf_counter()
        runs = 0

        async def caller(client: Kagzi) -> None:
            nonlocal runs
            while time.perf_counter() - began < seconds:
                assert await client.run(bench_flows.sequence, STEPS, timeout="120s") == STEPS
                runs += 1

        async with asyncio.TaskGroup() as callers:
            for number_ in range(IN_FLIGHT):
                callers.create_task(caller(clients[number_ % len(clients)]))
        return runs * STEPS / (time.perf_counter() - began)


async def throughput(database: str, directory: Path, servers: int, workers: int) -> float:
    async with Processes(directory) as processes:
        cluster = Cluster(processes, database, directory, "--lease", "15s", "--heartbeat", "5s")
        for _ in range(servers):
            await cluster.add_server()
        addresses = [server.grpc for server in cluster.servers]
        for each in range(workers):
            await bench_worker(processes, addresses[each % servers], IN_FLIGHT)
        await steps_per_second(addresses, min(2.0, SECONDS))  # caches, plans, connections
        return await steps_per_second(addresses, SECONDS)


@pytest.mark.timeout(ROUNDS * 4 * (SECONDS + 30) + 60)
async def test_throughput_does_not_fall(postgres_url: str, tmp_path: Path) -> None:
    figures = Figures("two-servers")
    kept = figures.known("throughput")
    if kept is None:
        set_ups = {"1 server, 1 worker": (1, 1), "1 server, 2 workers": (1, 2), "2 servers, 2 workers": (2, 2)}
        measured: dict[str, list[float]] = {name: [] for name in set_ups}
        for _ in range(ROUNDS):  # in turn, so that all meet the same moods of the machine
            for name, (servers, workers) in set_ups.items():
                measured[name].append(await throughput(postgres_url, tmp_path, servers, workers))
        middle = {name: statistics.median(values) for name, values in measured.items()}
        kept = {
            **{
                f"{name}, steps/s": {"median": round(middle[name]), "all": [round(v) for v in measured[name]]}
                for name in set_ups
            },
            "ratio": round(middle["2 servers, 2 workers"] / middle["1 server, 1 worker"], 3),
            "ratio with as many workers": round(middle["2 servers, 2 workers"] / middle["1 server, 2 workers"], 3),
        }
        figures.put("throughput", kept)
    assert kept["ratio"] >= LEAST_RATIO


@pytest.mark.timeout(300)
async def test_pickup_across_servers(postgres_url: str, tmp_path: Path) -> None:
    figures = Figures("two-servers")
    kept = figures.known("pickup")
    if kept is None:
        kept = await pickups(postgres_url, tmp_path)
        figures.put("pickup", kept)
    assert kept["start at A, begun at B"]["p99_ms"] < PICKUP_P99_MS
    assert kept["start at A, result at A"]["p99_ms"] < PICKUP_P99_MS * 2


async def pickups(database: str, directory: Path) -> dict[str, Any]:
    """Start at A; the only worker is connected to B. One run after the other, without a pause, on an idle system."""
    async with Processes(directory) as processes:
        cluster = Cluster(processes, database, directory, "--lease", "15s", "--heartbeat", "5s")
        for _ in range(2):
            await cluster.add_server()
        await cluster.worker(address=cluster.servers[1].grpc, module=flows.__name__)
        started: dict[str, float] = {}
        waited: list[float] = []
        async with cluster.client(0) as client:
            for _ in range(PICKUPS + 20):
                at = time.monotonic()
                run = await client.start(flows.pickup, None)
                assert await run.result(timeout="30s") == 1
                waited.append((time.monotonic() - at) * 1_000)
                started[run.id] = at
        begun = {entry.run_id: entry.at for entry in cluster.ledger.entries(event="begin")}
    times = [(begun[run_id] - at) * 1_000 for run_id, at in started.items()]
    return {
        "start at A, begun at B": spread(times[20:]),
        "start at A, result at A": spread(waited[20:]),
    }

"""One bench on one store: start the processes, warm up, measure, and return the results with their circumstances."""

import asyncio
import os
import tempfile
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

from ...core.times import to_datetime
from ...sdk.client.client import Kagzi
from ...system import SystemClock, SystemIds, SystemRng
from . import flows
from .cpu import CpuMeter
from .machine import describe_database, describe_machine, describe_versions
from .measure import Bench
from .plan import Measurement, Plan
from .processes import running

FORMAT = 1

Progress = Callable[[str], None]


async def bench_store(url: str | None, plan: Plan, progress: Progress) -> dict[str, Any]:
    """Measure on the database `url` in a namespace of its own, or on a new SQLite file that is removed afterwards."""
    if url is not None:
        return await _bench(url, plan, progress)
    with tempfile.TemporaryDirectory(prefix="kagzi-bench-") as directory:
        return await _bench(f"sqlite:///{directory}/bench.db", plan, progress)


async def _bench(url: str, plan: Plan, progress: Progress) -> dict[str, Any]:
    document: dict[str, Any] = {
        "format": FORMAT,
        "started_at": to_datetime(SystemClock().now()).isoformat(),
        "versions": describe_versions(),
        "machine": describe_machine(),
        "event_loop": f"{type(asyncio.get_running_loop()).__module__}",
        "plan": {name: getattr(plan, name) for name in plan.__struct_fields__},
    }
    namespace = f"bench-{SystemIds().token()[:8]}"
    results: list[Measurement] = []
    async with _server_and_worker(url, namespace, max(plan.in_flight)) as (address, server_pid, worker_pid):
        document["database"], database_pids = await describe_database(url)
        meter = CpuMeter(
            {"server": [server_pid], "worker": [worker_pid], "client": [os.getpid()], "database": database_pids}
        )
        async with Kagzi.connect(address, namespace=namespace) as client:
            bench = Bench(client, plan, meter, SystemRng())
            progress("warming up")
            await bench.warm_up()
            for workload in plan.workloads:
                progress(f"measuring {workload}")
                results.extend([measurement async for measurement in bench.measure(workload)])
    document["results"] = results
    return document


@asynccontextmanager
async def _server_and_worker(url: str, namespace: str, slots: int) -> AsyncGenerator[tuple[str, int, int]]:
    """Address of the server, and both process ids."""
    ports = ("--listen", "127.0.0.1:0", "--http", "127.0.0.1:0")
    async with running("server", *ports, environment={"KAGZI_DB": url}) as server:
        address = await server.printed(r"^kagzi server ready .*?grpc=(\S+)")
        options = ("--address", address, "--namespace", namespace, "--max-concurrent", str(slots))
        async with running("worker", flows.__name__, *options) as worker:
            await worker.printed(r"(worker \S+ serves)")
            yield address, server.pid, worker.pid

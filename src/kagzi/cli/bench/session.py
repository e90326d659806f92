"""One bench on one store: starts the processes, warms up, measures, and returns the results with their environment."""

import asyncio
import os
import tempfile
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Protocol

from ...core.times import to_datetime
from ...sdk.client.client import Kagzi
from ...system import SystemClock, SystemIds
from . import flows
from .cpu import ProcessMeter
from .engine import KagziEngine
from .machine import describe_database, describe_machine, describe_versions
from .measure import Bench
from .plan import Measurement, Plan
from .processes import KagziProcess, running

FORMAT = 1


class Progress(Protocol):
    """Shows the progress of a bench."""

    def part(self, name: str, /) -> Callable[[float], None]:
        """Begins the next part. Call the returned function with the fraction that is done, from 0 to 1."""
        ...


async def bench_store(url: str | None, plan: Plan, progress: Progress) -> dict[str, Any]:
    """Measures on the database `url` in a namespace of its own, or on a new SQLite file that is removed afterwards."""
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
    progress.part("start")
    async with _processes(url, namespace, plan.slots) as processes:
        document["database"], database_pids = await describe_database(url)
        meter = ProcessMeter(
            {
                "server": [processes.server.pid],
                "worker": [processes.worker.pid],
                "client": [os.getpid()],
                "database": database_pids,
            }
        )

        async def replace_worker() -> None:
            meter.replace("worker", [await processes.replace_worker()])

        async with Kagzi.connect(processes.address, namespace=namespace) as client:
            engine = KagziEngine(client)
            await Bench(engine, plan, meter, progress=progress.part("warm-up")).warm_up()
            for workload in plan.workloads:
                bench = Bench(engine, plan, meter, replace_worker=replace_worker, progress=progress.part(workload))
                results.extend([measurement async for measurement in bench.measure(workload)])
    document["results"] = results
    return document


class _Processes:
    """The server and the worker that are measured."""

    def __init__(self, stack: AsyncExitStack, namespace: str, slots: int) -> None:
        self._stack = stack
        self._options = ("--namespace", namespace, "--max-concurrent", str(slots))
        self.address = ""
        self.server: KagziProcess
        self.worker: KagziProcess

    async def start(self, url: str) -> None:
        ports = ("--listen", "127.0.0.1:0", "--http", "127.0.0.1:0")
        self.server = await self._stack.enter_async_context(running("server", *ports, environment={"KAGZI_DB": url}))
        self.address = await self.server.printed(r"^kagzi server ready .*?grpc=(\S+)")
        await self._start_worker()

    async def replace_worker(self) -> int:
        """Kills the worker (`kill -9`) and starts another. Returns its process id."""
        await self.worker.kill()
        await self._start_worker()
        return self.worker.pid

    async def _start_worker(self) -> None:
        arguments = ("worker", flows.__name__, "--address", self.address, *self._options)
        self.worker = await self._stack.enter_async_context(running(*arguments))
        await self.worker.printed(r"(worker \S+ serves)")


@asynccontextmanager
async def _processes(url: str, namespace: str, slots: int) -> AsyncGenerator[_Processes]:
    async with AsyncExitStack() as stack:
        processes = _Processes(stack, namespace, slots)
        await processes.start(url)
        yield processes

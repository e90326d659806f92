"""A rolling restart of everything under load: SIGTERM, wait until it is gone, start it again, go on to the next."""

import asyncio
import os
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any, NamedTuple

from kagzi import Kagzi, RunStatus
from tests.acceptance.cluster import Cluster, check_done_is_done
from tests.support.ledger import Entry
from tests.support.processes import Process

from . import flows
from .figures import spread
from .load import Done, Load

STEP_S = 0.1
# As a deployment has them; the worker's grace is shorter than a run, so that some are handed over and not only waited
# for.
SERVER_OPTIONS = ("--lease", "15s", "--heartbeat", "5s", "--reconnect-grace", "3s")
WORKER_OPTIONS = ("--shutdown-grace", "200ms", "--max-concurrent", "50")


class Restart(NamedTuple):
    """What was restarted, when it was told to stop, and how long it was away; times are `time.monotonic()`.

    `pid`: of a worker; 0 of a server, which holds nothing.
    """

    what: str
    pid: int
    at: float
    away_s: float


class Rolling:
    """`cluster` has its servers; `prepare` starts the workers, `run` puts everything under load and restarts it in
    turn."""

    def __init__(self, cluster: Cluster, *, workers: int) -> None:
        self._cluster = cluster
        self._count = workers
        self._workers: list[Process] = []
        self.restarts: list[Restart] = []
        self.done: list[Done] = []
        self.errors: list[str] = []

    async def prepare(self) -> None:
        self._workers = [await self._worker() for _ in range(self._count)]

    async def run(self, *, per_second: float, seconds: float) -> dict[str, Any]:
        """Raises AssertionError if anything was lost, failed or done twice. Returns the figures."""
        async with self._cluster.client() as client:
            load = Load(client, flows.load, STEP_S, expected=sum(range(flows.STEPS)))
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(load.run(per_second, seconds))
                tasks.create_task(self._restart_all(seconds))
            self.done, self.errors = load.done, load.errors
            await self._check(client, expected=int(per_second * seconds))
        return self._figures(per_second, seconds)

    async def _restart_all(self, seconds: float) -> None:
        """Evenly over the time, with the load already running and some of it left at the end."""
        turns: list[tuple[str, Callable[[], Awaitable[int]]]] = [
            (f"server {number}", lambda number=number: self._restart_server(number))
            for number in range(len(self._cluster.servers))
        ]
        turns += [
            (f"worker {number}", lambda number=number: self._restart_worker(number)) for number in range(self._count)
        ]
        began = time.monotonic()
        for turn, (what, restart) in enumerate(turns, start=1):
            await asyncio.sleep(max(0.0, began + seconds * turn / (len(turns) + 1) - time.monotonic()))
            at = time.monotonic()
            pid = await restart()
            self.restarts.append(Restart(what, pid, at, time.monotonic() - at))

    async def _restart_server(self, number: int) -> int:
        before = self._cluster.servers[number]
        assert await before.terminate() == 0, before.report()
        await self._cluster.restart(number)
        return 0

    async def _restart_worker(self, number: int) -> int:
        before = self._workers[number]
        assert await before.terminate() == 0, before.report()
        self._workers[number] = await self._worker()
        return before.pid

    async def _worker(self) -> Process:
        return await self._cluster.worker(*WORKER_OPTIONS, module=flows.__name__)

    async def _check(self, client: Kagzi, expected: int) -> None:
        assert not self.errors, f"{len(self.errors)} errors, the first: {self.errors[:3]}"
        assert len(self.done) == expected
        assert await client.count(status=RunStatus.COMPLETED) == expected
        check_done_is_done(self._cluster.ledger.entries())

    def _figures(self, per_second: float, seconds: float) -> dict[str, Any]:
        entries = self._cluster.ledger.entries()
        figures: dict[str, Any] = {
            "runs": len(self.done),
            "load": f"{per_second:g} runs/s for {seconds:g} s, {flows.STEPS} steps of {STEP_S * 1_000:g} ms each",
            "cores": os.cpu_count(),
            "client_errors": len(self.errors),
            "steps_begun_again": check_done_is_done(entries),
            "start_call": spread([(done.started_at - done.requested_at) * 1_000 for done in self.done]),
            "start_to_result": spread([(done.ended_at - done.requested_at) * 1_000 for done in self.done]),
        }
        for restart in self.restarts:
            gaps = takeover_times(entries, restart)
            figures[f"takeover after {restart.what}"] = {
                "away_s": round(restart.away_s, 2),
                **(spread(gaps) if gaps else {"samples": 0}),
            }
        return figures


def takeover_times(entries: list[Entry], restart: Restart) -> list[float]:
    """Milliseconds for which each run that was under way at that moment (at that worker) showed nothing, beyond what a
    step takes."""
    runs: dict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        runs[entry.run_id].append(entry)
    gaps: list[float] = []
    for entries_of_run in runs.values():
        before = [entry for entry in entries_of_run if entry.at <= restart.at]
        later = [entry.at for entry in entries_of_run if entry.at > restart.at]
        if before and later and restart.pid in (0, before[-1].pid):
            longest = max(second - first for first, second in pairwise([before[-1].at, *later]))
            gaps.append(max(0.0, longest - STEP_S) * 1_000)
    return gaps

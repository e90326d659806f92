"""A cluster of real processes: one server on SQLite, one on PostgreSQL, or two servers on one PostgreSQL,
directly or through PgBouncer."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import asyncpg

from kagzi import Kagzi, Run, RunStatus, WorkerInfo
from kagzi.core.limits import Settings
from kagzi.sdk.client.connecting import Connecting
from tests.support.ledger import Entry, Ledger
from tests.support.polling import until
from tests.support.processes import Process, Processes, ServerProcess
from tests.support.timeouts import LOADED_MACHINE_S

# One server on PostgreSQL does nothing that two on one PostgreSQL do not do; `make campaign` runs it all the same.
# `make pgbouncer`: two servers through one pooler in transaction mode, deaf to each other; the same with a way around
# it for wake-ups.
POOLED = ("pgbouncer", "pgbouncer-and-direct")
if os.environ.get("KAGZI_TEST_PGBOUNCER"):
    SETUPS: tuple[str, ...] = POOLED
elif os.environ.get("KAGZI_TEST_CAMPAIGN"):
    SETUPS = ("sqlite", "postgres", "two-servers")
else:
    SETUPS = ("sqlite", "two-servers")
# A loaded machine may keep a worker from its processor for seconds; what it holds must not be lost by that.
TIMINGS = ("--lease", "3s", "--heartbeat", "500ms", "--reconnect-grace", "1s")
UNNOTIFIED_S = Settings().poll_interval_ms / 1_000  # how long what a server should have heard of may stay unseen
FLOWS = "tests.acceptance.flows"
EXECUTION_FLOWS = "tests.acceptance.execution_flows"
TIMEOUT_S = LOADED_MACHINE_S


class Cluster:
    """`servers` that run on one database, and a ledger that the bodies of steps write. `pooler`: the URL through it."""

    def __init__(
        self, processes: Processes, database: str, directory: Path, *options: str, pooler: str | None = None
    ) -> None:
        self.processes = processes
        self._database = database
        self._served = pooler or database
        self._options = (*TIMINGS, *options)
        self.ledger = Ledger(directory / "ledger.jsonl")
        self.servers: list[ServerProcess] = []

    async def add_server(self, *options: str) -> ServerProcess:
        server = await self.processes.server(self._served, *self._options, *options)
        self.servers.append(server)
        return server

    async def restart(self, index: int) -> ServerProcess:
        """The same server again, on the same port, after it was killed."""
        before = self.servers[index]
        await before.wait()
        server = await self.processes.server(self._served, *self._options, "--listen", before.grpc)
        self.servers[index] = server
        return server

    @property
    def address(self) -> str:
        """All servers: whoever connects goes on with another one when his dies."""
        return ",".join(server.grpc for server in self.servers)

    async def worker(
        self, *options: str, address: str | None = None, module: str = FLOWS, **environment: str
    ) -> Process:
        return await self.processes.worker(
            address or self.address, module, *options, KAGZI_TEST_LEDGER=str(self.ledger.path), **environment
        )

    async def crashing_worker(self, module: str, percent: str) -> Process:
        """A worker of a module that kills its own process at so many of its crash points, maybe at the first."""
        return await self._launched(module, KAGZI_TEST_CRASHES=percent)

    async def doomed_author(self) -> Process:
        """As `author`, where runs wait that kill whoever takes them, maybe before it could say that it is ready."""
        return await self._launched(EXECUTION_FLOWS)

    async def _launched(self, module: str, **environment: str) -> Process:
        environment["KAGZI_TEST_LEDGER"] = str(self.ledger.path)
        return await self.processes.launch_worker(self.address, module, **environment)

    async def author(self, *options: str, address: str | None = None, **environment: str) -> Process:
        """A worker that serves everything an author can do."""
        return await self.worker(*options, address=address, module=EXECUTION_FLOWS, **environment)

    async def strike(self, worker: Process, run: Run[Any], step: str = "hold", **environment: str) -> Process:
        """kill -9 while the body of this step runs, and another worker in its place."""
        await self.until_begun(run, step)
        worker.kill()
        return await self.author(**environment)

    async def until_begun(self, run: Run[Any], step: str = "hold", *, times: int = 1) -> list[Entry]:
        def begun(entries: list[Entry]) -> bool:
            begins = [entry for entry in entries if entry.run_id == run.id and last_part(entry.step_id) == step]
            return sum(entry.event == "begin" for entry in begins) >= times

        return await self.until(begun, f"{step} of {run.id} begun")

    async def claims_of(self, run: Run[Any]) -> int:
        """How often the run was handed to a worker: its lease counter, which only the database tells."""
        if self._database.startswith("sqlite"):
            path = self._database.removeprefix("sqlite:///")
            with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as file:
                (row,) = file.execute("select lease from runs where run_id = ?", [run.id]).fetchall()
        else:
            connection = await asyncpg.connect(self._database)
            try:
                row = await connection.fetchrow("select lease from runs where run_id::text = $1", run.id)
            finally:
                await connection.close()
        assert row is not None
        return row[0]

    def executions(self, run: Run[Any]) -> dict[str, int]:
        """How often each step of this run was begun."""
        return {step: count for (run_id, step), count in self.ledger.executions().items() if run_id == run.id}

    def steps_begun(self, run: Run[Any]) -> int:
        return sum(entry.run_id == run.id for entry in self.ledger.entries(event="begin"))

    def check_struck_once(self, run: Run[Any], step: str = "hold") -> None:
        """Only the step that was struck ran twice."""
        again = {each: count for each, count in self.executions(run).items() if count != 1}
        assert [last_part(each) for each in again] == [step], again
        assert set(again.values()) == {2}, again

    def client(self, index: int | None = None) -> Connecting[Kagzi]:
        return Kagzi.connect(self.address if index is None else self.servers[index].grpc)

    async def until(self, holds: Callable[[list[Entry]], bool], what: str) -> list[Entry]:
        """The ledger, as soon as it `holds`."""
        entries: list[Entry] = []

        def shown() -> bool:
            entries[:] = self.ledger.entries()
            return holds(entries)

        await until(shown, every_s=0.01, what=f"the ledger shows {what}")
        return entries


async def until_status(run: Run[Any], *statuses: RunStatus, timeout_s: float = TIMEOUT_S) -> RunStatus:
    """Its status, as soon as it is one of these."""

    async def reached() -> RunStatus | None:
        status = await run.status()
        return status if status in statuses else None

    try:
        return await until(reached, timeout_s=timeout_s)
    except AssertionError:
        raise AssertionError(f"{run.id} did not become {statuses}, it is {await run.info()}") from None


async def worker_of(client: Kagzi, pid: int) -> WorkerInfo:
    (worker,) = [worker async for worker in client.workers.list() if worker.pid == pid]
    return worker


async def replayed(run: Run[Any], from_step: str = "hold") -> Run[Any]:
    """The run again, from its history up to this step: what is recorded must be enough."""
    return await run.fork(from_step=from_step)


def last_part(step_id: str) -> str:
    return step_id.rpartition("/")[2]


def check_done_is_done(entries: list[Entry]) -> int:
    """P2 for sequential runs: once the body of s3 has begun, s0..s2 are acknowledged and never begin again.

    Returns how many bodies were cut short and begun again, which is what a kill must have caused.
    """
    furthest: dict[str, int] = {}
    begun: dict[tuple[str, int], int] = {}
    for entry in entries:
        if entry.event != "begin":
            continue
        number = int(entry.step_id.removeprefix("s"))
        assert number >= furthest.get(entry.run_id, 0), f"an acknowledged step ran again: {entry}"
        furthest[entry.run_id] = number
        begun[entry.run_id, number] = begun.get((entry.run_id, number), 0) + 1
    return sum(count - 1 for count in begun.values())

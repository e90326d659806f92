"""Outages of PostgreSQL under load: two servers, workers, runs and schedules go on, and a fault comes for a while.

Clients are told UNAVAILABLE when it takes long, and ask again; that is all that anybody may notice.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any

import asyncpg

from kagzi import Kagzi, KagziError, Run, RunStatus, Unavailable
from tests.acceptance.cluster import Cluster, check_done_is_done
from tests.support.polling import until
from tests.support.processes import Process

from . import flows
from .figures import spread

SCHEDULES = 5
STEP_S = 0.02
TIMEOUT_S = 120.0
ERRCODE = "XX000"
INSIDE = "something inside of the database"
# What a tenant must never read: the driver's words, the database's words, where it is.
SECRETS = ("asyncpg", "PostgreSQL", ERRCODE, INSIDE, "/dev/shm", "/tmp", "read-only", "lock timeout", "Traceback")


class Hits:
    """How often a fault was met."""

    def __init__(self) -> None:
        self.count = 0


Fault = Callable[[str], AbstractAsyncContextManager[Hits]]


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(url, server_settings={"default_transaction_read_only": "off"})
    try:
        yield connection
    finally:
        await connection.close()


@asynccontextmanager
async def runs_locked(url: str) -> AsyncIterator[Hits]:
    """As by an ALTER TABLE, or one that waits behind a long SELECT. Counts those who were seen to wait."""
    hits = Hits()

    async def count() -> None:
        while True:
            waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'runs'::regclass"
            hits.count += await watching.fetchval(waiting)
            await asyncio.sleep(0.01)

    async with connected(url) as holding, connected(url) as watching, holding.transaction():
        await holding.execute("LOCK TABLE runs IN ACCESS EXCLUSIVE MODE")
        counting = asyncio.create_task(count())
        yield hits
        counting.cancel()
        with suppress(asyncio.CancelledError):
            await counting


@asynccontextmanager
async def read_only(url: str) -> AsyncIterator[Hits]:
    """As after a failover to a standby, for those who are connected and for those who come. Counts what was rolled
    back."""
    rolled_back = "SELECT xact_rollback FROM pg_stat_database WHERE datname = current_database()"
    hits = Hits()
    async with connected(url) as connection:
        before = await connection.fetchval(rolled_back)
        await connection.execute("ALTER SYSTEM SET default_transaction_read_only = on")
        await connection.execute("SELECT pg_reload_conf()")
        try:
            yield hits
            hits.count = await connection.fetchval(rolled_back) - before
        finally:
            await connection.execute("ALTER SYSTEM RESET default_transaction_read_only")
            await connection.execute("SELECT pg_reload_conf()")


@asynccontextmanager
async def steps_broken(url: str, share: float = 0.01) -> AsyncIterator[Hits]:
    """A share of the rows of `steps` fails inside of the database. A sequence counts: it is not rolled back."""
    hits = Hits()
    async with connected(url) as connection:
        await connection.execute(
            f"""
            CREATE SEQUENCE storm_hits;
            CREATE FUNCTION storm() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                IF random() < {share} THEN
                    PERFORM nextval('storm_hits');
                    RAISE EXCEPTION '{INSIDE}' USING ERRCODE = '{ERRCODE}';
                END IF;
                RETURN NEW;
            END $$;
            CREATE TRIGGER storm BEFORE INSERT OR UPDATE ON steps FOR EACH ROW EXECUTE FUNCTION storm();
            """
        )
        try:
            yield hits
        finally:
            await connection.execute("DROP TRIGGER storm ON steps; DROP FUNCTION storm()")
            hits.count = await connection.fetchval(
                "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM storm_hits"
            )
            await connection.execute("DROP SEQUENCE storm_hits")


class Storm:
    """`cluster` has its servers; `prepare` starts workers and schedules, `run` has a fault come while runs go on."""

    def __init__(self, cluster: Cluster, database: str, *, workers: int) -> None:
        self._cluster = cluster
        self._database = database
        self._count = workers
        self._workers: list[Process] = []
        self._refusals: list[str] = []
        self._serial = 0
        self._started = 0

    async def prepare(self, client: Kagzi) -> None:
        self._workers = [await self._cluster.worker(module=flows.__name__) for _ in range(self._count)]
        for number in range(SCHEDULES):
            await client.schedule(f"tick-{number}").workflow(flows.pickup).input(None).cron("* * * * * *")

    async def run(self, client: Kagzi, *faults: Fault, per_second: float, seconds: float) -> dict[str, Any]:
        """Raises AssertionError if a fault was not met, or if anything but a delay came of it. Returns the figures."""
        took: list[float] = []
        hits: list[int] = []
        load = asyncio.create_task(self._load(client, per_second, took))
        try:
            await asyncio.sleep(1)
            for fault in faults:
                async with fault(self._database) as met:
                    await asyncio.sleep(seconds)
                hits.append(met.count)
                over_at = time.monotonic()
                await asyncio.sleep(0.5)
        finally:
            load.cancel()
            with suppress(asyncio.CancelledError):
                await load
        await self._settle(client)
        settled_s = time.monotonic() - over_at
        assert all(hits), f"a fault was never met, which proves nothing: {hits}"
        await self._check(client)
        return {
            "hits": sum(hits),
            "fault_s": seconds,
            "runs": len(took),
            "scheduled": await client.count(status=RunStatus.COMPLETED) - self._started,
            "cores": os.cpu_count(),
            "told_unavailable": len(self._refusals),
            "failed": 0,
            "settled_s": round(settled_s, 2),
            "start_to_result": spread([each * 1_000 for each in took]),
        }

    async def _load(self, client: Kagzi, per_second: float, took: list[float]) -> None:
        """Until it is cancelled; those that were started are waited for."""
        runs: set[asyncio.Task[None]] = set()
        try:
            while True:
                self._serial += 1
                runs.add(asyncio.create_task(self._one(client, f"load-{self._serial}", took)))
                await asyncio.sleep(1 / per_second)
        finally:
            await asyncio.gather(*runs)

    async def _one(self, client: Kagzi, id: str, took: list[float]) -> None:
        began = time.monotonic()

        async def start() -> Run[int]:
            return await client.start(flows.load, STEP_S, id=id, on_conflict="existing_or_completed")

        run = await self._patiently(start)
        assert await self._patiently(lambda: run.result(timeout=f"{TIMEOUT_S:g}s")) == sum(range(flows.STEPS))
        self._started += 1
        took.append(time.monotonic() - began)

    async def _patiently(self, ask: Callable[[], Any]) -> Any:
        async with asyncio.timeout(TIMEOUT_S):
            while True:
                try:
                    return await ask()
                except Unavailable as error:
                    self._refusals.append(str(error))
                except KagziError as error:
                    raise AssertionError(f"a client was told {error!r}") from error

    async def _settle(self, client: Kagzi) -> None:
        """Every schedule has fired after the fault, and whatever was started has ended: the schedules go on, so that a
        few of their runs are always open."""
        before = await self._patiently(lambda: self._last_fires(client))

        async def settled() -> bool:
            later = await self._last_fires(client)
            fired = all(last > first for first, last in zip(before, later, strict=True))
            return fired and await self._open(client) <= 2 * SCHEDULES

        await until(settled, timeout_s=TIMEOUT_S, every_s=0.2)

    async def _last_fires(self, client: Kagzi) -> list[float]:
        last: list[float] = []
        for number in range(SCHEDULES):
            fires = [fire async for fire in client.schedules.runs(f"tick-{number}", limit=1)]
            last.append(fires[0].nominal_at.timestamp())
        return last

    async def _open(self, client: Kagzi) -> int:
        counts = [
            await client.count(status=status) for status in (RunStatus.PENDING, RunStatus.RUNNING, RunStatus.SLEEPING)
        ]
        return sum(counts)

    async def _check(self, client: Kagzi) -> None:
        assert all(server.running for server in self._cluster.servers), "a server ended"
        assert all(worker.running for worker in self._workers), "a worker ended"
        for status in (RunStatus.FAILED, RunStatus.PAUSED, RunStatus.CANCELLED):
            assert await client.count(status=status) == 0, f"runs are {status}"
        for number in range(SCHEDULES):
            schedule = await client.schedules.get(f"tick-{number}")
            assert not schedule.paused, schedule.paused_reason
        for text in self._refusals:
            assert not [secret for secret in SECRETS if secret in text], text
        load = {run.id async for run in client.list(workflow=flows.load)}
        check_done_is_done([entry for entry in self._cluster.ledger.entries() if entry.run_id in load])

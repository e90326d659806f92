"""A worker that is sent home finishes what it can within its grace, hands back the rest at once, and leaves: by a
signal, or by an operator, through whichever server."""

import re
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kagzi import Kagzi, WorkerInfo, WorkerStatus
from tests.support.polling import until
from tests.support.processes import Processes
from tests.support.timeouts import LOADED_MACHINE, LOADED_MACHINE_S

from .cluster import Cluster, worker_of
from .conftest import migrated_database
from .drain_flows import GRACE_S, blocking_step, long_step, mark_of
from .draining import LEASE, SLACK_S, send_home, serve, words

TRIES = 5
TIMEOUT_S = LOADED_MACHINE_S


@pytest.fixture
async def patient(
    setup: str, request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[tuple[Cluster, Processes]]:
    """Servers whose leases are so long that nobody can wait for their end."""
    database = migrated_database(setup, request, tmp_path)
    async with Processes(tmp_path) as processes:
        cluster = Cluster(processes, database, tmp_path, *LEASE)
        for _ in range(1 if setup == "sqlite" else 2):
            await cluster.add_server()
        yield cluster, processes


async def until_status(client: Kagzi, worker_id: str, status: WorkerStatus) -> WorkerInfo:
    async def reached() -> WorkerInfo | None:
        worker = await client.workers.get(worker_id)
        return worker if worker.status is status else None

    return await until(reached)


async def kinds(client: Kagzi, worker_id: str) -> list[str]:
    return [str(event.kind) async for event in client.workers.events(worker_id)][::-1]


@pytest.mark.timeout(180)
async def test_a_signal_with_20_running_runs(patient: tuple[Cluster, Processes]) -> None:
    cluster, processes = patient
    leaver = await serve(processes, cluster)
    async with cluster.client() as client:
        for _ in range(TRIES):
            left = await worker_of(client, leaver.pid)
            outcome, leaver = await send_home(cluster, client, leaver, processes)
            print(words(outcome))
            assert outcome.well, words(outcome)
            assert outcome.handed_back, "nothing was handed back: this has shown nothing"
            assert (await kinds(client, left.id))[-3:] == ["draining", "drained", "left"]
            assert (await client.workers.get(left.id)).status is WorkerStatus.OFFLINE


async def test_an_operator_sends_a_worker_home_through_another_server(patient: tuple[Cluster, Processes]) -> None:
    cluster, processes = patient
    worker = await serve(processes, cluster, address=cluster.servers[0].grpc)
    async with cluster.client(len(cluster.servers) - 1) as client:
        run = await client.start(long_step)
        await cluster.until_begun(run, "long")
        drained_worker = await worker_of(client, worker.pid)
        assert drained_worker.status is WorkerStatus.ONLINE
        heir = await serve(processes, cluster)
        requested_at = time.monotonic()
        drained = await client.workers.drain(drained_worker.id)
        assert drained.status is WorkerStatus.DRAINING
        assert await worker.wait() == 0
        assert time.monotonic() - requested_at < GRACE_S + SLACK_S
        assert await run.result(timeout=LOADED_MACHINE) == "done"
        assert (await until_status(client, drained_worker.id, WorkerStatus.OFFLINE)).active == 0
        assert await kinds(client, drained_worker.id) == ["registered", "draining", "drained", "left"]
        begun = {entry.pid for entry in cluster.ledger.entries() if entry.run_id == run.id and entry.event == "begin"}
        assert heir.pid in begun or worker.pid in begun


async def test_a_second_signal_stops_it_at_once(patient: tuple[Cluster, Processes]) -> None:
    cluster, processes = patient
    worker = await serve(processes, cluster)
    async with cluster.client() as client:
        mark_of(cluster.ledger.path, worker.pid).touch()
        run = await client.start(blocking_step)
        await cluster.until_begun(run, "blocking")
        worker.interrupt()
        await worker.wait_for(re.compile("stops; runs to finish: 1"))
        worker.interrupt()
        assert await worker.wait() == -signal.SIGINT, "it ended by itself, when its grace was over"

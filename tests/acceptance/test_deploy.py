"""Deploying a new version while the old one drains: no run fails, none changes its version, and new ones get the new
one."""

import asyncio
import contextlib
import re
import sys

import pytest

from kagzi import Kagzi, PreconditionFailed, Run, WorkerStatus
from tests.support.polling import until
from tests.support.processes import Process, Processes
from tests.support.timeouts import LOADED_MACHINE, LOADED_MACHINE_S

from .cluster import Cluster

SERVES = re.compile(r"\bserves\b")
PER_SECOND = 20
TIMEOUT_S = LOADED_MACHINE_S


async def serve(cluster: Cluster, processes: Processes, version: str) -> Process:
    process = await processes.run(
        *(
            sys.executable,
            "-m",
            "kagzi",
            "worker",
            "tests.acceptance.deploy_flows:worker",
            "--address",
            cluster.address,
        ),
        name=f"worker-v{version}",
        KAGZI_TEST_LEDGER=str(cluster.ledger.path),
        KAGZI_TEST_VERSION=version,
    )
    await process.wait_for(SERVES)
    return process


class Load:
    """Starts runs all the time, on every server in turn."""

    def __init__(self, clients: list[Kagzi]) -> None:
        self._clients = clients
        self.runs: list[Run[str]] = []
        self._stop = asyncio.Event()

    async def run(self) -> None:
        while not self._stop.is_set():
            client = self._clients[len(self.runs) % len(self._clients)]
            self.runs.append(await client.start("order"))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), 1 / PER_SECOND)

    def stop(self) -> None:
        self._stop.set()


async def until_drained(client: Kagzi, version: str) -> None:
    async def drained() -> bool:
        return not (await client.versions.counts("order"))[version]

    await until(drained, every_s=0.1)


async def version_of(client: Kagzi) -> str | None:
    """The version that a start through this client is pinned to."""
    return (await (await client.start("order")).info()).version


async def until_default(version: str, *clients: Kagzi) -> None:
    """Until starts through all of these get this version. A server that others cannot wake is behind for a second."""

    async def default() -> bool:
        return {await version_of(client) for client in clients} == {version}

    await until(default, every_s=0.1)


async def refusal_of_version_1(client: Kagzi) -> str:
    try:
        await client.start("order").version(1)
    except PreconditionFailed as error:
        return str(error)
    return ""


@pytest.mark.timeout(150)
async def test_a_new_version_is_deployed_while_the_old_one_drains(cluster: Cluster) -> None:
    processes = cluster.processes
    old = await serve(cluster, processes, "1")
    async with cluster.client(0) as one, cluster.client(len(cluster.servers) - 1) as other:
        load = Load([one, other])
        loading = asyncio.create_task(load.run())
        await until(lambda: len(load.runs) >= 40)

        new = await serve(cluster, processes, "2")
        await until_default("2", one, other)
        deployed_at = len(load.runs)
        listed = {version.version: version async for version in one.versions.list("order")}
        assert [version.version for version in listed.values() if version.is_default] == ["2"]
        assert listed["1"].open_runs > 0, "nothing was left to drain: this has shown nothing"
        assert (listed["1"].workers, listed["2"].workers) == (1, 1)

        await other.versions.deprecate("order", 1)
        assert "version 1 of order is deprecated" in await until(lambda: refusal_of_version_1(one))
        await until_drained(one, "1")
        (leaving,) = [worker async for worker in one.workers.list(status="online") if worker.pid == old.pid]
        await other.workers.drain(leaving.id)
        assert await old.wait() == 0
        assert (await one.workers.get(leaving.id)).status is WorkerStatus.OFFLINE

        load.stop()
        await loading
        results = await asyncio.gather(*(run.result(timeout="60s") for run in load.runs))
    assert set(results[:20]) == {"1 by code of 1"}
    assert set(results[deployed_at:]) == {"2 by code of 2"}
    assert len(results) > deployed_at
    assert set(results) == {"1 by code of 1", "2 by code of 2"}
    by_pid = {(entry.pid, entry.note) for entry in cluster.ledger.entries()}
    assert by_pid == {(old.pid, "1"), (new.pid, "2")}


async def test_the_default_can_be_set_and_taken_back(cluster: Cluster) -> None:
    processes = cluster.processes
    await serve(cluster, processes, "1")
    await serve(cluster, processes, "2")
    async with cluster.client(0) as one, cluster.client(len(cluster.servers) - 1) as other:
        assert await version_of(other) == "2"
        assert (await one.versions.set_default("order", 1)).version == "1"
        assert await version_of(one) == "1"  # at once where it was said
        await until_default("1", other)
        with pytest.raises(PreconditionFailed, match="set as the default"):
            await other.versions.deprecate("order", 1)
        assert (await one.versions.set_default("order", None)).version == "2"
        assert await version_of(one) == "2"


async def test_a_run_whose_version_nobody_has_waits_and_says_so(cluster: Cluster) -> None:
    await serve(cluster, cluster.processes, "1")
    async with cluster.client() as client:
        run = await client.start("order").version(7)
        explained = await run.explain()
        assert explained.reason == "no_worker_for_version"
        assert "version 7 of order" in str(explained)
        assert explained.facts["versions_served"] == "1"
        assert f"kagzi fork {run.id} --version 1" in explained.remedy
        await serve(cluster, cluster.processes, "7")
        assert await run.result(timeout=LOADED_MACHINE) == "7 by code of 7"

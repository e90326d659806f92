"""Servers whose machine's clock is set an hour forward, an hour back, and right again, under load, by libfaketime: no
timer early, no lease ended, no run failed, and a dead worker's runs are taken over in time."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kagzi import Kagzi, RunStatus
from tests.acceptance.clock_flows import nap, ten_steps
from tests.acceptance.cluster import Cluster, until_status
from tests.support.processes import Processes
from tests.support.shifted_time import ShiftedClock

from .figures import Figures, number
from .load import Done, Load

FLOWS = "tests.acceptance.clock_flows"
PER_SECOND = number("PER_SECOND", 10)
SECONDS = number("SECONDS", 60)
HOUR_S = 3_600
TIMINGS = (
    "--lease",
    "6s",
    "--heartbeat",
    "1s",
    "--reconnect-grace",
    "3s",
)  # a loaded machine may stall for a second or two
NAP_S = 2.0
TAKEOVER_S = 30.0  # on a loaded machine; a clock that is off by an hour would need that hour


@pytest.mark.timeout(SECONDS + 300)
@pytest.mark.parametrize("setup", ["sqlite", "two-servers"])
async def test_clocks_are_set_under_load(setup: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/kagzi.db" if setup == "sqlite" else request.getfixturevalue("postgres_url")
    figures = Figures("clock")
    if figures.known(setup):
        return
    clock = ShiftedClock(tmp_path)
    async with Processes(tmp_path) as processes:
        cluster = Cluster(processes, database, tmp_path)
        for _ in range(1 if setup == "sqlite" else 2):
            cluster.servers.append(await processes.server(database, *TIMINGS, **clock.faketime_environment))
        await cluster.worker(module=FLOWS)
        async with cluster.client() as client:
            load = Load(client, ten_steps, 0.01, expected=45)
            naps = Naps(client)
            long = [await client.start(nap, 900.0), await client.start(nap, 1_000.0, deadline=_in(minutes=30))]
            for run in long:
                await until_status(run, RunStatus.SLEEPING)
            jumps, _, _ = await asyncio.gather(_jump(clock, SECONDS), load.run(PER_SECOND, SECONDS), naps.run(SECONDS))
            assert [await run.status() for run in long] == [RunStatus.SLEEPING] * 2
            leases = [await _leases(cluster, client, done) for done in load.done[:: max(len(load.done) // 50, 1)]]
            takeover_s = await _take_over(cluster, client)
    figures.put(
        setup,
        {
            "jumps": jumps,
            "runs": len(load.done),
            "errors": load.errors[:5],
            "naps": len(naps.late_s),
            "earliest nap s": min(naps.late_s),
            "latest nap s": max(naps.late_s),
            "leases of a run at most": max(leases),
            "takeover s": takeover_s,
        },
    )
    assert jumps >= 3
    assert not load.errors
    assert min(naps.late_s) >= 0, "a timer fired early"
    assert set(leases) == {1}, "a lease was ended under its holder's hands"
    assert takeover_s < TAKEOVER_S


async def _jump(clock: ShiftedClock, seconds: float) -> int:
    """An hour forward, back, an hour back, forward ... until the time is over; right in the end."""
    shifts = (HOUR_S, 0, -HOUR_S, HOUR_S, -HOUR_S, 0)
    for shift in shifts:
        await asyncio.sleep(seconds / (len(shifts) + 1))
        clock.shift(shift)
    return len(shifts)


class Naps:
    """Sleeps of two seconds, measured by this process's own clock."""

    def __init__(self, client: Kagzi) -> None:
        self._client = client
        self.late_s: list[float] = []

    async def run(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            began = time.monotonic()
            run = await self._client.start(nap, NAP_S)
            try:
                await run.result(timeout="60s")
            except TimeoutError:
                raise AssertionError(f"{run} has not ended: {await run.explain()}") from None
            self.late_s.append(round(time.monotonic() - began - NAP_S, 3))


async def _leases(cluster: Cluster, client: Kagzi, done: Done) -> int:
    run = client.get(done.run_id)
    assert await run.status() is RunStatus.COMPLETED
    return await cluster.claims_of(run)


async def _take_over(cluster: Cluster, client: Kagzi) -> float:
    """Seconds from kill -9 of a worker to the end of what it held."""
    doomed = await cluster.worker(module=FLOWS)
    holds = [await client.start("hold-on", 1.0) for _ in range(20)]
    await cluster.until_begun(holds[-1])
    doomed.kill()
    began = time.monotonic()
    await asyncio.gather(*(hold.result(timeout="120s") for hold in holds))
    return round(time.monotonic() - began, 3)


def _in(*, minutes: int) -> datetime:
    return datetime.now(UTC) + timedelta(minutes=minutes)

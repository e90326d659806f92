"""P10 with real processes: every nominal time once, or recorded why not, while servers are killed and come back."""

import asyncio
from datetime import datetime, timedelta
from itertools import pairwise

from kagzi import Kagzi, RunStatus, ScheduleFire
from tests.support.lateness import measured_lateness
from tests.support.polling import until
from tests.support.timeouts import LOADED_MACHINE, LOADED_MACHINE_S

from .cluster import Cluster, until_status
from .flows import ten_steps

SECOND = timedelta(seconds=1)
TIMEOUT_S = LOADED_MACHINE_S
LATE_P99_S = 0.1
LATE_AFTER_A_DEATH_S = 5.0


async def fires_of(client: Kagzi, id: str) -> list[ScheduleFire]:
    return [fire async for fire in client.schedules.runs(id)][::-1]


async def until_fired(client: Kagzi, id: str, times: int, *, after: datetime | None = None) -> list[ScheduleFire]:
    """What became of its times, as soon as so many were fired (on time, after that moment)."""

    async def fired() -> list[ScheduleFire]:
        fires = await fires_of(client, id)
        late = [fire for fire in fires if fire.run_id and (after is None or fire.nominal_at > after)]
        return fires if len(late) >= times else []

    return await until(fired, every_s=0.2)


def check_every_second(fires: list[ScheduleFire]) -> None:
    """Each second between the first and the last was fired once, or lies in a skip that says why."""
    fired = [fire.nominal_at for fire in fires if fire.run_id]
    assert len(fired) == len(set(fired))
    skips = [fire for fire in fires if fire.run_id is None]
    assert all(skip.skipped for skip in skips)
    at = fires[0].nominal_at
    while at <= fired[-1]:
        skipped = [skip for skip in skips if skip.nominal_at <= at <= (skip.skipped_until or skip.nominal_at)]
        assert (at in fired) != bool(skipped), f"{at}: fired {at in fired}, skipped {skipped}"
        at += SECOND


async def test_every_second_is_accounted_for_while_servers_are_killed(cluster: Cluster) -> None:
    async with cluster.client() as client, measured_lateness() as lateness:
        await client.schedule("tick").workflow(ten_steps).input(0.0).cron("* * * * * *")
        await client.schedule("few").workflow(ten_steps).input(0.0).cron("* * * * * *").catchup(1)
        fires = await until_fired(client, "tick", 3)
        for kill in range(3):
            fires = await until_fired(client, "tick", 3, after=fires[-1].nominal_at)
            index = kill % len(cluster.servers)
            cluster.servers[index].kill()
            if len(cluster.servers) > 1:
                # The other one goes on: nothing is missed by more than the time to find out.
                fires = await until_fired(client, "tick", 3, after=fires[-1].nominal_at)
            else:
                await asyncio.sleep(3)  # downtime is the subject
            await cluster.restart(index)
        fires = await until_fired(client, "tick", 3, after=fires[-1].nominal_at)
        check_every_second(fires)
        assert not [fire for fire in fires if fire.run_id is None], "a hundred may be caught up with: none is skipped"
        late = [(fire.at - fire.nominal_at).total_seconds() for fire in fires]
        assert min(late) >= 0
        if len(cluster.servers) > 1:
            assert max(late) < LATE_AFTER_A_DEATH_S + 1.5 + 10 * lateness.worst_s
        few = await until_fired(client, "few", 1, after=fires[-1].nominal_at)
        check_every_second(few)
        if len(cluster.servers) == 1:
            assert [fire for fire in few if fire.run_id is None], "downtime longer than one time leaves a skip"
        runs = [run async for run in client.list(schedule="tick")]
        ids = {fire.run_id for fire in await fires_of(client, "tick")}
        assert {run.id for run in runs} <= ids
        assert len({run.workflow_id for run in runs}) == len(runs)


async def test_firing_is_on_time(cluster: Cluster) -> None:
    async with cluster.client() as client:
        await asyncio.gather(
            *(
                client.schedule(f"on-time-{number}").workflow(ten_steps).input(0.0).cron("* * * * * *")
                for number in range(10)
            )
        )
        late: list[float] = []
        async with measured_lateness() as lateness:
            for number in range(10):
                fires = await until_fired(client, f"on-time-{number}", 12)
                check_every_second(fires)
                late += [(fire.at - fire.nominal_at).total_seconds() for fire in fires]
        late.sort()
        machine = lateness.worst_s
        assert late[0] >= 0
        assert late[len(late) // 2] < LATE_P99_S + machine
        assert late[int(len(late) * 0.99)] < LATE_P99_S + 10 * machine, (late[-5:], machine)


async def test_a_buffered_run_begins_when_the_other_has_ended(cluster: Cluster) -> None:
    worker = await cluster.worker()
    async with cluster.client() as client:
        await client.schedule("slow").workflow(ten_steps).input(0.2).cron("* * * * * *").overlap("buffer_one")
        fires = await until_fired(client, "slow", 4)
        await client.schedules.pause("slow")
        runs = [client.get(fire.run_id) for fire in fires if fire.run_id]
        results = await asyncio.gather(*(run.result(timeout="60s") for run in runs))
        assert results == [45] * len(runs)
        infos = [await run.info() for run in runs]
        for before, after in pairwise(infos):
            assert before.finished_at is not None
            assert after.started_at is not None
            assert after.started_at >= before.finished_at
        skips = [fire for fire in fires if fire.run_id is None]
        assert skips
        assert "buffer_one" in skips[0].skipped
    assert worker.running


async def test_cancel_other_reaches_the_worker_at_once(cluster: Cluster) -> None:
    await cluster.worker()
    async with cluster.client() as client:
        await client.schedule("newest").workflow(ten_steps).input(0.5).cron("* * * * * *").overlap("cancel_other")
        fires = await until_fired(client, "newest", 4)
        await client.schedules.pause("newest")
        *others, last = [client.get(fire.run_id) for fire in fires if fire.run_id]
        for run in others[:-1]:
            assert await until_status(run, RunStatus.CANCELLED, RunStatus.COMPLETED) is RunStatus.CANCELLED
        assert await last.result(timeout=LOADED_MACHINE) == 45

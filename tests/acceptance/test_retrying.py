"""Items 1 to 3: retries keep count over crashes, caps hold (P6), errors are results (P11), timeouts and deadlines are
kept."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from kagzi import ErrorKind, Retry, RunError, RunStatus
from tests.support.timeouts import LOADED_MACHINE

from . import execution_flows as flows
from .cluster import Cluster, until_status
from .keeping import replaced


async def test_fifty_failures_across_worker_restarts_keep_count(cluster: Cluster) -> None:
    worker = await cluster.author()
    async with cluster.client() as client:
        run = await client.start(flows.stubborn, 50)
        for times in (8, 20, 35):
            await cluster.until_begun(run, "stubborn", times=times)
            worker.kill()
            worker = await cluster.author()
        assert await run.result(timeout="60s") == 51
        (step,) = await run.steps()
    assert step.attempts == 51
    attempts = [entry.attempt for entry in cluster.ledger.entries(event="begin")]
    assert sorted(set(attempts)) == list(range(1, 52)), "an attempt was left out"
    assert attempts == sorted(attempts), "the count went back"
    assert len(attempts) <= 51 + 3, "more executions than failures and kills"


async def test_three_attempts_never_fail_a_fourth_time(cluster: Cluster) -> None:
    worker = await cluster.author()
    async with cluster.client() as client:
        runs = await asyncio.gather(*(client.start(flows.three_tries, 0.4) for _ in range(5)))
        for times in (1, 3):
            await asyncio.gather(*(cluster.until_begun(run, "thrice", times=times) for run in runs))
            worker.kill()
            worker = await cluster.author()
        results = await asyncio.gather(*(run.result(timeout="60s") for run in runs))
    assert set(results) == {"3 (True, True, False) transient exhausted never works"}
    for run in runs:
        entries = [entry for entry in cluster.ledger.entries() if entry.run_id == run.id]
        assert 3 < sum(entry.event == "begin" for entry in entries) <= 3 + 2, "no kill hit it, or one too many"
        assert sum(entry.event == "fail" for entry in entries) == 3


async def test_a_step_to_be_run_once_never_runs_twice(cluster: Cluster) -> None:
    worker = await cluster.author()
    async with cluster.client() as client:
        runs = await asyncio.gather(*(client.start(flows.only_once, 4) for _ in range(20)))
        for times in (1, 3):
            step = f"once{times}"
            await cluster.until(lambda entries, step=step: any(e.step_id == step for e in entries), f"{step} begun")
            worker.kill()
            worker = await cluster.author()
        results = await asyncio.gather(*(run.result(timeout="60s") for run in runs))
    assert max(cluster.ledger.executions().values()) == 1, "a step to be run once ran twice"
    seen = [value for result in results for value in result]
    assert seen.count("lost") >= 1, "no kill hit a body: this test has shown nothing"
    assert set(seen) <= {"0", "1", "2", "3", "lost"}
    assert seen.count("lost") <= len(runs) * 2, "more was lost than was killed"


async def test_a_run_may_try_again_as_a_whole_and_keeps_its_results(cluster: Cluster) -> None:
    await cluster.author()
    async with cluster.client() as client:
        run = await client.start("tries-itself-again", None, retry=Retry.fixed(3, "50ms"))
        assert await run.result(timeout=LOADED_MACHINE) == "kept 3"
        assert cluster.executions(run) == {"before": 1}
        never = await client.start("tries-itself-again", None)
        with pytest.raises(RunError, match="RuntimeError: try 1"):
            await never.result(timeout=LOADED_MACHINE)


async def test_a_step_that_takes_too_long_is_stopped_and_that_is_an_attempt(cluster: Cluster) -> None:
    worker = await cluster.author()
    async with cluster.client() as client:
        run = await client.start(flows.times_out)
        await cluster.strike(worker, run)
        assert await run.result(timeout=LOADED_MACHINE) == "2 True"
    slow = [entry.event for entry in cluster.ledger.entries() if entry.step_id == "slow"]
    assert slow == ["begin", "cancelled"] * 2
    assert cluster.executions(run) == {"slow": 2, "hold": 2}


async def test_a_run_fails_at_its_deadline_asleep_or_unclaimed(cluster: Cluster) -> None:
    async with cluster.client() as client:
        soon = datetime.now(UTC) + timedelta(seconds=1)
        unclaimed = await client.start("approval", None, deadline=soon)
        with pytest.raises(RunError) as failed:
            await unclaimed.result(timeout=LOADED_MACHINE)
        assert failed.value.kind is ErrorKind.TIMEOUT
        await cluster.author()
        asleep = await client.start(flows.too_long)
        await cluster.until_begun(asleep, "before")
        with pytest.raises(RunError) as failed:
            await asleep.result(timeout=LOADED_MACHINE)
        assert (failed.value.kind, failed.value.status) == (ErrorKind.TIMEOUT, "failed")
        assert await asleep.status() is RunStatus.FAILED


async def test_a_run_that_kills_every_worker_is_put_aside_and_harms_nobody(cluster: Cluster) -> None:
    workers = [await cluster.author() for _ in range(2)]
    async with cluster.client() as client:
        bad = await client.start(flows.poison)
        good = await asyncio.gather(*(client.start(flows.slow_leaf, 0.2) for _ in range(20)))
        async with replaced(workers, cluster.doomed_author) as dead:
            await until_status(bad, RunStatus.PAUSED, timeout_s=100)
            assert len(dead) <= 11
            assert cluster.executions(bad)["bite"] == 10
            assert await asyncio.gather(*(run.result(timeout=LOADED_MACHINE) for run in good)) == ["slow"] * 20
        info = await bad.info()
        assert info.problem is not None
        assert "10 times" in info.problem.message
        assert "resume" in str(await bad.explain()) + (await bad.explain()).remedy
        await cluster.author(KAGZI_TEST_ANTIDOTE="1")
        await bad.resume()
        assert await bad.result(timeout=LOADED_MACHINE) == "cured"
        await until_status(bad, RunStatus.COMPLETED)

"""The promises of the backbone, each through real servers and workers: P1, P4, P5, P8, P11, P12. P2 and P3 are in
test_kills."""

import asyncio
import itertools

import pytest

from kagzi import InvalidArgument, ResourceExhausted, RunError, RunStatus
from tests.support.timeouts import LOADED_MACHINE

from . import flows
from .cluster import UNNOTIFIED_S, Cluster, until_status


async def test_p1_what_was_accepted_is_kept_when_the_server_is_killed(cluster: Cluster) -> None:
    async with cluster.client() as client:
        runs = await asyncio.gather(*(client.start(flows.echo, f"text {n}") for n in range(50)))
        for server in cluster.servers:
            server.kill()
        for index in range(len(cluster.servers)):
            await cluster.restart(index)
        assert {await run.status() for run in runs} == {RunStatus.PENDING}
        await cluster.worker()
        results = await asyncio.gather(*(run.result(timeout=LOADED_MACHINE) for run in runs))
    assert results == [f"text {n}" for n in range(50)]


async def test_p4_a_run_has_one_end_whatever_is_tried_afterwards(cluster: Cluster) -> None:
    await cluster.worker()
    async with cluster.client() as client:
        completed = await client.start(flows.echo, "once")
        assert await completed.result(timeout=LOADED_MACHINE) == "once"
        await completed.cancel("too late")
        assert await completed.status() is RunStatus.COMPLETED
        assert await completed.result(timeout=LOADED_MACHINE) == "once"

        failed = await client.start(flows.fails_at_once)
        with pytest.raises(RunError, match="NonRetryable: card stolen"):
            await failed.result(timeout=LOADED_MACHINE)
        await failed.cancel("too late")
        assert await failed.status() is RunStatus.FAILED


async def test_p4_cancel_races_completion_and_one_of_them_wins(cluster: Cluster) -> None:
    await cluster.worker()
    async with cluster.client() as client:
        runs = await asyncio.gather(*(client.start(flows.ten_steps, 0.002) for _ in range(30)))
        await asyncio.gather(*(run.cancel("race") for run in runs[::2]))

        results = await asyncio.gather(*(run.result(timeout=LOADED_MACHINE) for run in runs), return_exceptions=True)
        endings = [each.status if isinstance(each, RunError) else RunStatus.COMPLETED for each in results]
        assert set(results[1::2]) == {sum(range(flows.STEPS))}
        assert set(endings) <= {RunStatus.COMPLETED, RunStatus.CANCELLED}
        assert [await run.status() for run in runs] == endings


async def test_p5_timers_are_never_early_and_prompt(cluster: Cluster) -> None:
    await cluster.worker()
    async with cluster.client() as client:
        naps = [30, 300, 1_300, 1_700, 2_000]  # in place, and parked
        late = await asyncio.gather(*(client.run(flows.nap, ms, timeout=LOADED_MACHINE) for ms in naps * 6))
    assert min(late) >= 0.0, f"a timer fired {-min(late) * 1_000:.3f} ms early"
    assert min(late) < 0.5, f"the promptest was {min(late):.3f} s late"
    assert sorted(late)[len(late) // 2] < UNNOTIFIED_S / 2, f"late by {sorted(late)} s"


async def test_p5_timers_of_a_server_that_died_fire(cluster: Cluster) -> None:
    worker = await cluster.worker()
    async with cluster.client() as client:
        runs = await asyncio.gather(*(client.start(flows.long_nap, 2.5) for _ in range(10)))
        await cluster.until(lambda entries: len(entries) == 20, "all runs before their nap")
        for run in runs:
            await until_status(run, RunStatus.SLEEPING)
        cluster.servers[0].kill()
        if len(cluster.servers) == 1:
            await cluster.restart(0)
        assert await asyncio.gather(*(run.result(timeout=LOADED_MACHINE) for run in runs)) == ["rested"] * 10
    assert worker.running
    befores = [entry for entry in cluster.ledger.entries(event="begin") if entry.step_id == "before"]
    assert len(befores) == 10, "a step ran again because its run had slept"


async def test_p8_racing_starts_of_one_id_make_one_run(cluster: Cluster) -> None:
    async with cluster.client(0) as one, cluster.client(-1) as other:
        for attempt in range(5):
            clients = itertools.islice(itertools.cycle((one, other)), 40)
            runs = await asyncio.gather(
                *(c.start(flows.echo, f"{n}", id=f"order-{attempt}") for n, c in enumerate(clients))
            )
            assert len({run.id for run in runs}) == 1
            assert sum(run.created for run in runs) == 1


async def test_p11_failures_and_none_are_results_that_replay_gives_again(cluster: Cluster) -> None:
    first = await cluster.worker()
    async with cluster.client() as client:
        run = await client.start(flows.failure_is_a_result)
        await cluster.until(
            lambda entries: any(entry.step_id == "hold" for entry in entries), "the run past its failures"
        )
        first.kill()
        await cluster.worker()
        assert await run.result(timeout=LOADED_MACHINE) == "ConnectionError: no funds after 2, None"
    counts = {step: n for (_, step), n in cluster.ledger.executions().items()}
    assert counts == {"charge": 2, "none": 1, "hold": 2}, "what was recorded ran again"


async def test_p12_a_bad_payload_does_not_touch_its_neighbours(cluster: Cluster) -> None:
    await cluster.worker()
    async with cluster.client() as client:
        good = [client.start(flows.echo, f"{n}") for n in range(20)]
        too_big = client.start(flows.echo, "x" * 3_000_000)
        outcomes = await asyncio.gather(*good[:10], too_big, *good[10:], return_exceptions=True)
        refused = outcomes.pop(10)
        assert isinstance(refused, ResourceExhausted)
        assert "2,097,152" in str(refused), "the error names the limit"
        assert [await run.result(timeout=LOADED_MACHINE) for run in outcomes] == [f"{n}" for n in range(20)]

        with pytest.raises(RunError, match="limit"):
            await client.run(flows.too_much, timeout=LOADED_MACHINE)
        with pytest.raises(InvalidArgument, match="expected a whole number, got string"):
            await client.start("typed", "not a number")
        assert await client.run(flows.typed, 1, timeout=LOADED_MACHINE) == 2


async def test_p12_a_worker_that_blocks_its_loop_keeps_its_runs_and_blocks_nobody(cluster: Cluster) -> None:
    async with cluster.client() as client:
        stuck = await cluster.worker("--max-concurrent", "1")
        run = await client.start(flows.blocks_the_loop, 5.0)  # longer than a lease
        await cluster.until(lambda entries: len(entries) == 1, "the loop blocked")
        await cluster.worker()
        assert await client.run(flows.echo, "still here", timeout=LOADED_MACHINE) == "still here"
        assert await run.result(timeout=LOADED_MACHINE) == "done"
    assert sum(cluster.ledger.executions().values()) == 1, "the blocked run was taken away"
    assert "block" in stuck.output, "nothing was said about the blocked loop"

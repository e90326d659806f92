"""Items 8 to 11: side effects are the same on replay; runs are retried, forked, continued; other code is told apart;
explain."""

from typing import Any

import pytest

from kagzi import Run, RunError, RunStatus
from tests.support.polling import until
from tests.support.timeouts import LOADED_MACHINE

from . import execution_flows as flows
from .cluster import Cluster, replayed, until_status


async def test_side_effects_are_the_same_on_replay(cluster: Cluster) -> None:
    worker = await cluster.author()
    async with cluster.client() as client:
        run = await client.start(flows.side_effects)
        await cluster.until_begun(run)
        await until_status_text(run, "half way")
        assert run.progress == 0.5
        await cluster.strike(worker, run)
        result = await run.result(timeout=LOADED_MACHINE)
        assert result[3] == "True"
        facts = [entry.note for entry in cluster.ledger.entries(event="facts") if entry.run_id == run.id]
        assert len(facts) >= 2, "it was not replayed"
        assert set(facts) == {"|".join(result)}


async def test_a_run_goes_on_as_a_new_one_with_its_id_and_signals(cluster: Cluster) -> None:
    worker = await cluster.author()
    async with cluster.client() as client:
        run = await client.start("counts-down", 5, id="poll")
        await cluster.until(lambda entries: len(entries) >= 4, "some rounds")
        worker.kill()
        await cluster.author()
        last = client.get("poll")
        await cluster.until(lambda entries: any(entry.note == "0" for entry in entries), "the last round")
        await last.signal("approved", "at last", request_id="once")
        assert await run.result(timeout=LOADED_MACHINE) == "at last poll"
        assert await client.count(workflow="counts-down") == 6
        assert (await last.info()).continued_as is None
        assert (await run.info()).continued_as is not None
    async with cluster.client(-1) as client:  # whose first answer was lost, and who meets another run of the id
        anew = await client.start("counts-down", 0, id="poll")
        assert await client.get("poll").signal("approved", "at last", request_id="once")
        await client.signal("poll", "approved", "anew")
        assert await anew.result(timeout=LOADED_MACHINE) == "anew poll"


async def test_a_long_step_goes_on_from_its_last_heartbeat(cluster: Cluster) -> None:
    worker = await cluster.author()
    async with cluster.client() as client:
        run = await client.start(flows.heartbeats, 30)
        await cluster.until_begun(run, "long")
        await until_heartbeats(run, 8)
        worker.kill()
        await cluster.author()
        assert await run.result(timeout=LOADED_MACHINE) >= 8
    begun = [int(entry.note) for entry in cluster.ledger.entries(event="begin")]
    assert begun[0] == 0
    assert begun[1] >= 8


async def until_status_text(run: Run[Any], text: str) -> None:
    async def shown() -> bool:
        return await run.status() is not RunStatus.RUNNING or run.status_text == text

    await until(shown)
    assert run.status_text == text


async def until_heartbeats(run: Run[Any], heartbeats: int) -> None:
    async def recorded() -> bool:
        return any(step.details and int(step.details) >= heartbeats for step in await run.steps())

    await until(recorded)


async def test_a_failed_run_is_retried_from_the_step_that_failed(cluster: Cluster) -> None:
    worker = await cluster.author()
    async with cluster.client() as client:
        run = await client.start(flows.mendable)
        with pytest.raises(RunError, match="RuntimeError: broken"):
            await run.result(timeout=LOADED_MACHINE)
        worker.kill()
        await cluster.author(KAGZI_TEST_MENDED="1")
        await run.retry()
        assert await run.result(timeout=LOADED_MACHINE) == ["first", "mended", "after mended"]
        assert cluster.executions(run) == {"first": 1, "second": 2, "third": 1}
        again = await replayed(run, "third")
        assert await again.result(timeout=LOADED_MACHINE) == ["first", "mended", "after mended"]


async def test_a_fork_goes_on_with_replaced_outputs(cluster: Cluster) -> None:
    await cluster.author(KAGZI_TEST_MENDED="1")
    async with cluster.client() as client:
        run = await client.start(flows.mendable)
        assert await run.result(timeout=LOADED_MACHINE) == ["first", "mended", "after mended"]
        fork = await run.fork(from_step="third", outputs={"second": "replaced"})
        assert await fork.result(timeout=LOADED_MACHINE) == ["first", "replaced", "after replaced"]
        assert (await fork.info()).forked_from == run.id
        assert cluster.executions(fork) == {"third": 1}
        assert await run.result(timeout=LOADED_MACHINE) == ["first", "mended", "after mended"]


async def test_code_that_does_not_fit_pauses_the_run_until_fitting_code_comes(cluster: Cluster) -> None:
    worker = await cluster.author("--build-id", "one")
    async with cluster.client() as client:
        run = await client.start(flows.rewritten)
        await cluster.until_begun(run)
        worker.kill()
        wrong = await cluster.author("--build-id", "two", KAGZI_TEST_CODE="wrong")
        await until_status(run, RunStatus.PAUSED)
        problem = (await run.info()).problem
        assert problem is not None
        assert "another" in problem.message
        assert "execution_flows.py" in problem.message
        assert "another" not in cluster.executions(run), "a body ran although the code does not fit"
        assert "another" in str(await run.explain())
        wrong.kill()
        await cluster.author("--build-id", "three")
        assert await run.result(timeout=LOADED_MACHINE) == "first"
        cluster.check_struck_once(run)


async def test_a_patch_lets_old_runs_pass_and_new_ones_change(cluster: Cluster) -> None:
    worker = await cluster.author("--build-id", "one")
    async with cluster.client() as client:
        old = await client.start(flows.patched)
        await cluster.strike(worker, old, KAGZI_TEST_CODE="patched")
        assert await old.result(timeout=LOADED_MACHINE) == ["first", "late"]
        new = await client.start(flows.patched)
        assert await new.result(timeout=LOADED_MACHINE) == ["extra", "first", "late"]


async def until_explained(run: Run[Any], word: str) -> None:
    """A body may begin a moment before its step is recorded."""

    async def explained() -> bool:
        return word in str(await run.explain())

    await until(explained)


async def test_explain_says_why_a_run_is_where_it_is(cluster: Cluster) -> None:
    async with cluster.client() as client:
        run = await client.start("approval", None, id="why")
        assert "worker" in str(await client.explain("why"))
        await cluster.author()
        await until_status(run, RunStatus.SLEEPING)
        assert "approved" in str(await run.explain())
        await run.pause("for lunch")
        assert "pause" in str(await run.explain()).lower()
        await run.resume()
        await run.signal(flows.approved, "yes")
        await cluster.until_begun(run)
        await until_explained(run, "hold")
        await run.result(timeout=LOADED_MACHINE)
        assert "completed" in str(await run.explain()).lower()

"""Everything an author can do, killed -9 in the middle, and its finished runs replayed from what the server recorded.

| Item | killed in the middle | replayed here |
|---|---|---|
| 1 retries | test_retrying: fifty failures, three attempts, once, poison | three_tries |
| 2 errors | below | errors_are_kept, with a good and a bad end |
| 3 timeouts, deadlines | test_retrying: times_out; below: too_long | times_out |
| 4 parallel | test_at_once: all but two | much_at_once, mapped (other orders), one_fails, races, race_lost_by_a_step |
| 5 signals | test_signals: most | approval, impatient, in_order |
| 6 children | test_children: most | parent, wide (other completion orders) |
| 7 cancellation | test_stopping: cleanup, sleeper, pause | tidies_up |
| 8 side effects | test_again: facts, continue_as_new, heartbeats | side_effects, counts_down |
| 9 retry, fork | below: a fork; test_again | mendable after its retry, a fork |
| 10 divergence | test_again: rewritten, patched | rewritten, patched; and code that does not fit |
| 11 explain | below | approval |
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import pytest

from kagzi import ErrorKind, Kagzi, Run, RunError, RunStatus, Workflow
from tests.support.replaying import check_replays, history_of
from tests.support.timeouts import LOADED_MACHINE

from . import execution_flows as flows
from .cluster import Cluster, until_status

_RESULT_TIMEOUT = "60s"


class Case(NamedTuple):
    """`strike` is the step in which the worker is killed. `help` does what the run waits for."""

    workflow: Workflow[Any, Any]
    input: Any = None
    strike: str = "hold"
    help: Callable[[Kagzi, Run[Any]], Awaitable[None]] | None = None
    reordered: bool = False
    end_status: str = "completed"


async def approve(client: Kagzi, run: Run[Any]) -> None:
    await run.signal(flows.approved, "yes")


async def send_items(client: Kagzi, run: Run[Any]) -> None:
    for number in range(5):
        await run.signal(flows.item, number)


CASES = [
    Case(flows.three_tries, 0.4, strike="thrice"),
    Case(flows.errors_are_kept, True),
    Case(flows.errors_are_kept, False, end_status="failed"),
    Case(flows.times_out),
    Case(flows.much_at_once, reordered=True),
    Case(flows.mapped, 6, strike="work[3]", reordered=True),
    Case(flows.one_fails),
    Case(flows.races),
    Case(flows.race_lost_by_a_step),
    Case(flows.approval, help=approve),
    Case(flows.impatient),
    Case(flows.in_order, 5, help=send_items),
    Case(flows.parent),
    Case(flows.wide, 12, strike="", reordered=True),
    Case(flows.side_effects),
    Case(flows.rewritten),
]


@pytest.fixture(autouse=True)
def ledger_of_replays(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """What workflow code writes while it is replayed here goes where the workers write."""
    monkeypatch.setattr(flows, "LEDGER", cluster.ledger)


async def start(client: Kagzi, number: int, case: Case) -> Run[Any]:
    run = await client.start(case.workflow.name, case.input, id=f"case-{number}")
    if case.help is not None:
        await case.help(client, run)
    return run


def pids_of(cluster: Cluster, run: Run[Any]) -> set[int]:
    """The workers that executed something of it, its children aside."""
    return {entry.pid for entry in cluster.ledger.entries(event="begin") if entry.run_id == run.id}


async def ended(run: Run[Any]) -> str:
    try:
        await run.result(timeout=_RESULT_TIMEOUT)
    except RunError as error:
        return str(error.status)
    return "completed"


async def test_what_was_killed_and_has_ended_replays_in_any_order(cluster: Cluster) -> None:
    worker = await cluster.author(KAGZI_TEST_HOLD="600")
    async with cluster.client() as client:
        runs = [await start(client, number, case) for number, case in enumerate(CASES)]
        struck = [(run, case) for run, case in zip(runs, CASES, strict=True) if case.strike]
        await asyncio.gather(*(cluster.until_begun(run, case.strike) for run, case in struck))
        worker.kill()
        await cluster.author()
        assert await asyncio.gather(*(ended(run) for run in runs)) == [case.end_status for case in CASES]
        for run, case in struck:
            hit = len(pids_of(cluster, run)) == 2
            assert hit or case.strike != "hold", f"the kill did not hit {case.workflow}"

        bodies = len(cluster.ledger.entries(event="begin"))
        for run, case in zip(runs, CASES, strict=True):
            history = await history_of(run)
            await check_replays(history, case.workflow, reordered=case.reordered)
        assert len(cluster.ledger.entries(event="begin")) == bodies, "a replay executed something"
    facts = {entry.note for entry in cluster.ledger.entries(event="facts")}
    assert len(facts) == 1, "a replay saw other side effects"


async def test_cancelled_continued_and_patched_runs_replay(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = await cluster.author(KAGZI_TEST_CODE="patched")
    async with cluster.client() as client:
        cancelled = await client.start(flows.tidies_up, 60.0)
        counts = await client.start("counts-down", 2, id="counts")
        patched = await client.start(flows.patched)
        await cluster.until_begun(cancelled, "long")
        await cluster.until_begun(patched)
        await cancelled.cancel("changed my mind")
        await cluster.until_begun(cancelled, "undo")
        worker.kill()
        await cluster.author(KAGZI_TEST_CODE="patched")
        await client.signal("counts", "approved", "at last")
        assert await counts.result(timeout=LOADED_MACHINE) == "at last counts"
        assert await patched.result(timeout=LOADED_MACHINE) == ["extra", "first", "late"]
        await until_status(cancelled, RunStatus.CANCELLED)

        monkeypatch.setattr(flows, "CODE", "patched")
        await check_replays(await history_of(cancelled), flows.tidies_up)
        await check_replays(await history_of(counts), flows.counts_down)  # the first of three: it went on as a new one
        last = client.get("counts")
        assert (await last.info()).continued_as is None
        await check_replays(await history_of(last), flows.counts_down)
        await check_replays(await history_of(patched), flows.patched)


async def test_retried_and_forked_runs_are_killed_and_replay(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = await cluster.author()
    async with cluster.client() as client:
        run = await client.start(flows.mendable)
        assert await ended(run) == "failed"
        await check_replays(await history_of(run), flows.mendable)
        original = await client.start(flows.rewritten)
        assert await original.result(timeout=LOADED_MACHINE) == "first"
        fork = await original.fork(from_step="hold", outputs={"first": "replaced"})
        await cluster.until_begun(fork)
        worker.kill()
        await cluster.author(KAGZI_TEST_MENDED="1")
        assert await fork.result(timeout=LOADED_MACHINE) == "replaced"
        assert cluster.executions(fork) == {"hold": 2}
        await run.retry()
        assert await run.result(timeout=LOADED_MACHINE) == ["first", "mended", "after mended"]

        await check_replays(await history_of(run), flows.mendable)
        await check_replays(await history_of(fork), flows.rewritten)
        monkeypatch.setattr(flows, "CODE", "wrong")
        with pytest.raises(AssertionError, match=r"(?s)diverged.*another"):
            await check_replays(await history_of(fork), flows.rewritten)


async def test_a_deadline_passes_though_nobody_works(cluster: Cluster) -> None:
    worker = await cluster.author()
    async with cluster.client() as client:
        run = await client.start(flows.too_long)
        await cluster.until_begun(run, "before")
        worker.kill()
        with pytest.raises(RunError) as failed:
            await run.result(timeout=LOADED_MACHINE)
        assert failed.value.kind is ErrorKind.TIMEOUT


async def test_explain_follows_a_run_over_the_death_of_its_worker(cluster: Cluster) -> None:
    worker = await cluster.author()
    async with cluster.client() as client:
        run = await client.start(flows.approval)
        await until_status(run, RunStatus.SLEEPING)
        assert "approved" in str(await run.explain())
        await approve(client, run)
        await cluster.until_begun(run)
        worker.kill()
        await until_status(run, RunStatus.PENDING)
        assert "worker" in str(await run.explain()).lower()
        await cluster.author()
        assert await run.result(timeout=LOADED_MACHINE) == "yes"
        assert "completed" in str(await run.explain()).lower()
        cluster.check_struck_once(run)

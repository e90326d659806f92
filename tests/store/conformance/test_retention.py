"""Forgetting what has ended: whole runs, oldest first, and never one that lives."""

import asyncio

import pytest

from kagzi.core.records import RunFilter, RunKey
from kagzi.core.states import RunStatus
from kagzi.core.times import US_PER_S, Timestamp
from kagzi.store.protocol import Store
from kagzi.store.protocol.retention import Purged

from .verbs import (
    STEADY,
    StoreHarness,
    begin,
    complete_run,
    fail,
    fail_run,
    leased,
    park,
    the,
    wait_signal,
)

ALL = (RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED)
LATE: Timestamp = 2**62


async def completed(harness: StoreHarness, **options: object) -> RunKey:
    holding = await harness.running(**options)
    await harness.done(holding, "a")
    await harness.do(complete_run(holding))
    return holding.run


async def failed(harness: StoreHarness, **options: object) -> RunKey:
    holding = await harness.running(**options)
    await harness.done(holding, "a")
    await harness.do(fail_run(holding))
    return holding.run


async def purge(
    harness: StoreHarness, *, statuses: tuple[RunStatus, ...] = ALL, after: int = 0, until: int = LATE, limit: int = 100
) -> Purged:
    return await harness.store.purge_runs("default", statuses, after=after, until=until, limit=limit)


async def left(harness: StoreHarness, namespace: str = "default") -> set[str]:
    rows = await harness.store.list_runs(namespace, RunFilter(), None, 1_000)
    return {record.run.run_id for record in rows.rows}


async def test_what_ended_before_goes_and_what_ended_later_stays(harness: StoreHarness) -> None:
    old = await completed(harness)
    until = harness.now
    harness.clock.advance(s=1)
    new = await completed(harness)
    purged = await purge(harness, until=until)
    assert (purged.runs, purged.more) == (1, False)
    assert await left(harness) == {new.run_id}
    assert await harness.store.get_run("default", run_id=old.run_id) is None


async def test_open_runs_stay_in_every_state(harness: StoreHarness) -> None:
    sleeping = await harness.asleep()
    paused = await harness.start()
    await harness.pause(paused)
    running = await harness.running()
    pending = await harness.start()
    harness.clock.advance(s=10)
    assert (await purge(harness)).runs == 0
    assert await left(harness) == {sleeping.run.run_id, paused.run_id, running.run.run_id, pending.run_id}


async def test_by_how_it_ended(harness: StoreHarness) -> None:
    good, bad, cancelled = await completed(harness), await failed(harness), await harness.start()
    await harness.terminate(cancelled)
    await purge(harness, statuses=(RunStatus.COMPLETED,))
    assert await left(harness) == {bad.run_id, cancelled.run_id}
    await purge(harness, statuses=(RunStatus.CANCELLED, RunStatus.COMPLETED))
    assert await left(harness) == {bad.run_id}
    assert good.run_id != bad.run_id


async def test_oldest_first_and_from_where_the_last_call_came_to(harness: StoreHarness) -> None:
    runs: list[RunKey] = []
    for _ in range(5):
        runs.append(await completed(harness))
        harness.clock.advance(s=1)
    first = await purge(harness, limit=2)
    assert (first.runs, first.more) == (2, True)
    assert await left(harness) == {run.run_id for run in runs[2:]}
    second = await purge(harness, after=first.reached, limit=2)
    assert (second.runs, second.more) == (2, True)
    third = await purge(harness, after=second.reached, limit=2)
    assert (third.runs, third.more, third.reached) == (1, False, LATE)
    assert await left(harness) == set()


async def test_many_that_ended_at_the_same_moment(harness: StoreHarness) -> None:
    await harness.start_many(7)
    for record in (await harness.store.list_runs("default", RunFilter(), None, 100)).rows:
        await harness.terminate(record.run)
    after, turns = 0, 0
    while (purged := await purge(harness, after=after, limit=3)).more:
        after = purged.reached
        turns += 1
    assert turns == 2
    assert await left(harness) == set()


async def test_everything_that_belongs_to_it_goes(harness: StoreHarness) -> None:
    """A new run with the same ids finds nothing of the old one."""
    command = harness.start_command("order-1", labels={"team": "a", "tier": "b"}, request_id="request-1")
    await harness.do(command)
    holding = leased(await harness.claim_one())
    await harness.write(begin(holding, "pay", retry=STEADY), fail(holding, "pay"))
    await harness.do(wait_signal(holding, "other"))
    await harness.signal(holding.run, "approved")
    await harness.terminate(holding.run)
    assert (await purge(harness)).runs == 1

    await harness.do(command)
    again = leased(await harness.claim_one())
    assert again.run == holding.run
    rows = await harness.store.list_steps(again.run, name=None, after_begun_seq=0, limit=10, payloads=True)
    assert rows is not None
    assert rows.rows == ()
    listed = await harness.store.list_runs("default", RunFilter(labels={"team": "a"}), None, 10)
    assert len(listed.rows) == 1
    await harness.write(begin(again, "pay", retry=STEADY), fail(again, "pay"))  # its attempts are new, too
    await harness.do(wait_signal(again, "approved"))
    record = await harness.store.get_step(again.run, "approved")
    assert record is not None
    assert record.output is None, "it got the signal of a run that is gone"


async def test_a_long_history_goes_bit_by_bit(harness: StoreHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("sqlite", "postgres"):
        monkeypatch.setattr(f"kagzi.store.{package}.operate.retention.LONG_HISTORY_SEQ", 5)
    command = harness.start_command("long")
    await harness.do(command)
    holding = leased(await harness.claim_one())
    for number in range(10):
        await harness.done(holding, f"step-{number}")
    await harness.do(complete_run(holding))
    assert (await purge(harness)).runs == 1
    assert await left(harness) == set()
    assert await harness.store.purge_leftovers(4)
    assert await harness.store.purge_leftovers(4)
    while await harness.store.purge_leftovers(4):
        pass
    await harness.do(command)
    rows = await harness.store.list_steps(command.run, name=None, after_begun_seq=0, limit=10, payloads=True)
    assert rows is not None
    assert rows.rows == ()


async def test_a_child_may_be_deleted_before_its_parent(harness: StoreHarness) -> None:
    parent = await harness.running()
    child = await harness.child(parent)
    await harness.do(park(parent, "child"))
    child_lease = await harness.hold(child)
    await harness.do(complete_run(child_lease, "from the child"))
    assert (await purge(harness)).runs == 1
    claimed = await harness.hold(parent.run)
    step = await harness.store.get_step(parent.run, "child")
    assert step is not None
    assert step.output is not None
    assert step.output.data == b"from the child"
    await harness.do(complete_run(claimed))


async def test_a_failed_parent_is_tried_again_when_its_child_is_gone(harness: StoreHarness) -> None:
    """It would wait for ever for a run that is not there any more."""
    parent = await harness.running()
    child = await harness.child(parent, on_close="abandon")
    await harness.write(begin(parent, "pay"), fail(parent, "pay"))
    await harness.do(fail_run(parent))
    await harness.cascade()
    await harness.do(complete_run(await harness.hold(child)))
    assert (await purge(harness, statuses=(RunStatus.COMPLETED,))).runs == 1
    the(RunStatus, await harness.retry(parent.run))
    again = await harness.hold(parent.run)
    step = await harness.store.get_step(parent.run, "child")
    assert step is not None  # in its place, or replay would meet a new step in front of recorded results
    assert step.child_run_id is None
    assert await harness.child(again) != child


async def test_a_parent_may_be_deleted_before_an_abandoned_child(harness: StoreHarness) -> None:
    parent = await harness.running()
    child = await harness.child(parent, on_close="abandon")
    await harness.do(complete_run(parent))
    await harness.cascade()
    assert (await purge(harness)).runs == 1
    child_lease = await harness.hold(child)
    await harness.do(complete_run(child_lease))
    assert (await harness.run(child)).status is RunStatus.COMPLETED


async def test_a_parent_stays_until_its_children_were_cancelled(harness: StoreHarness) -> None:
    parent = await harness.running()
    child = await harness.child(parent)
    await harness.do(complete_run(parent))
    assert (await purge(harness)).runs == 0
    await harness.cascade()
    assert (await harness.run(child)).status is RunStatus.CANCELLED
    assert (await purge(harness)).runs == 2


async def test_namespaces_are_not_mixed_up(harness: StoreHarness) -> None:
    mine, foreign = await completed(harness), await completed(harness, namespace="other")
    assert not await harness.store.delete_runs("default", [foreign.run_id], until=LATE)
    assert (await purge(harness)).runs == 1
    assert await left(harness, "other") == {foreign.run_id}
    assert mine.run_id not in await left(harness)


async def test_delete_says_which_went(harness: StoreHarness) -> None:
    ended, living = await completed(harness), await harness.start()
    unknown = harness.ids.run_id(harness.now)
    gone = await harness.store.delete_runs("default", [living.run_id, ended.run_id, unknown], until=LATE)
    assert list(gone) == [ended.run_id]
    assert await left(harness) == {living.run_id}


async def test_a_reopened_run_is_alive(harness: StoreHarness) -> None:
    run = await failed(harness)
    the(RunStatus, await harness.retry(run))
    assert (await purge(harness)).runs == 0
    assert not await harness.store.delete_runs("default", [run.run_id], until=LATE)
    assert (await harness.run(run)).status is RunStatus.PENDING


async def test_retry_against_purge(harness: StoreHarness, second_store: Store) -> None:
    """Either it is tried again, whole, or it is gone: nothing between."""
    runs = [await failed(harness) for _ in range(40)]

    async def retry(run: RunKey) -> bool:
        status, _ = await second_store.retry_run(run, "", harness.ids.token(), harness.now)
        assert status in (None, RunStatus.PENDING), status
        return status is not None

    async def purge_some() -> None:
        for _ in range(20):
            await purge(harness, limit=2)

    reopened, _ = await asyncio.gather(asyncio.gather(*map(retry, runs)), purge_some())
    alive = await left(harness)
    for run, was_reopened in zip(runs, reopened, strict=True):
        assert (run.run_id in alive) >= was_reopened, "a run that was tried again was deleted"
        if run.run_id in alive:
            steps = await harness.store.list_steps(run, name=None, after_begun_seq=0, limit=10, payloads=True)
            assert steps is not None
            assert [step.step_id for step in steps.rows] == ["a"], "it lost its history"


async def test_a_chore_is_claimed_by_one(harness: StoreHarness, second_store: Store) -> None:
    now, until = harness.now, harness.now + 60 * US_PER_S
    claimed = await asyncio.gather(
        harness.store.claim_chore("sweep", now, until), second_store.claim_chore("sweep", now, until)
    )
    assert sorted(claimed) == [False, True]
    assert await harness.store.claim_chore("dust", now, until)
    assert not await harness.store.claim_chore("sweep", until - 1, until + 1)
    assert await second_store.claim_chore("sweep", until, until + 1)


async def test_namespaces_page_by_page(harness: StoreHarness) -> None:
    for namespace in ("b", "a", "c"):
        await harness.start(namespace=namespace)
    first = await harness.store.namespaces_after("", 2)
    assert [record.namespace for record in first] == ["a", "b"]
    assert [record.namespace for record in await harness.store.namespaces_after("b", 2)] == ["c"]


async def test_a_deleted_run_is_not_found(harness: StoreHarness) -> None:
    run = await failed(harness)
    await purge(harness)
    assert await harness.retry(run) is None
    signal = harness.signal_request()
    outcome, _ = await harness.store.signal_run("default", run_id=run.run_id, signal=signal, now=harness.now)
    assert outcome is None
    assert await harness.fork(run, "a") is None

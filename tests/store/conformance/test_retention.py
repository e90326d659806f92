"""Forgetting what has ended: whole runs, oldest first, and never one that lives."""

import asyncio

import pytest

from kagzi.core.records import RunFilter, RunKey
from kagzi.core.states import RunStatus
from kagzi.core.times import US_PER_S, Timestamp
from kagzi.store.protocol import Changed, Store
from kagzi.store.protocol.retention import Purged

from .verbs import (
    STEADY,
    Cellar,
    begin,
    complete_run,
    fail,
    fail_run,
    held,
    park,
    the,
    wait_signal,
)

ALL = (RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED)
LATE: Timestamp = 2**62


async def completed(cellar: Cellar, **options: object) -> RunKey:
    holding = await cellar.running(**options)
    await cellar.done(holding, "a")
    await cellar.do(complete_run(holding))
    return holding.run


async def failed(cellar: Cellar, **options: object) -> RunKey:
    holding = await cellar.running(**options)
    await cellar.done(holding, "a")
    await cellar.do(fail_run(holding))
    return holding.run


async def purge(
    cellar: Cellar, *, statuses: tuple[RunStatus, ...] = ALL, after: int = 0, until: int = LATE, limit: int = 100
) -> Purged:
    return await cellar.store.purge_runs("default", statuses, after=after, until=until, limit=limit)


async def left(cellar: Cellar, namespace: str = "default") -> set[str]:
    rows = await cellar.store.list_runs(namespace, RunFilter(), None, 1_000)
    return {record.run.run_id for record in rows.rows}


async def test_what_ended_before_goes_and_what_ended_later_stays(cellar: Cellar) -> None:
    old = await completed(cellar)
    until = cellar.now
    cellar.clock.advance(s=1)
    new = await completed(cellar)
    purged = await purge(cellar, until=until)
    assert (purged.runs, purged.more) == (1, False)
    assert await left(cellar) == {new.run_id}
    assert await cellar.store.get_run("default", run_id=old.run_id) is None


async def test_open_runs_stay_in_every_state(cellar: Cellar) -> None:
    sleeping = await cellar.asleep()
    paused = await cellar.start()
    await cellar.pause(paused)
    running = await cellar.running()
    pending = await cellar.start()
    cellar.clock.advance(s=10)
    assert (await purge(cellar)).runs == 0
    assert await left(cellar) == {sleeping.run.run_id, paused.run_id, running.run.run_id, pending.run_id}


async def test_by_how_it_ended(cellar: Cellar) -> None:
    good, bad, cancelled = await completed(cellar), await failed(cellar), await cellar.start()
    await cellar.terminate(cancelled)
    await purge(cellar, statuses=(RunStatus.COMPLETED,))
    assert await left(cellar) == {bad.run_id, cancelled.run_id}
    await purge(cellar, statuses=(RunStatus.CANCELLED, RunStatus.COMPLETED))
    assert await left(cellar) == {bad.run_id}
    assert good.run_id != bad.run_id


async def test_oldest_first_and_from_where_the_last_call_came_to(cellar: Cellar) -> None:
    runs: list[RunKey] = []
    for _ in range(5):
        runs.append(await completed(cellar))
        cellar.clock.advance(s=1)
    first = await purge(cellar, limit=2)
    assert (first.runs, first.more) == (2, True)
    assert await left(cellar) == {run.run_id for run in runs[2:]}
    second = await purge(cellar, after=first.reached, limit=2)
    assert (second.runs, second.more) == (2, True)
    third = await purge(cellar, after=second.reached, limit=2)
    assert (third.runs, third.more, third.reached) == (1, False, LATE)
    assert await left(cellar) == set()


async def test_many_that_ended_at_the_same_moment(cellar: Cellar) -> None:
    await cellar.start_many(7)
    for record in (await cellar.store.list_runs("default", RunFilter(), None, 100)).rows:
        await cellar.terminate(record.run)
    after, turns = 0, 0
    while (purged := await purge(cellar, after=after, limit=3)).more:
        after = purged.reached
        turns += 1
    assert turns == 2
    assert await left(cellar) == set()


async def test_everything_that_belongs_to_it_goes(cellar: Cellar) -> None:
    """A new run with the same ids finds nothing of the old one."""
    command = cellar.start_command("order-1", labels={"team": "a", "tier": "b"}, request_id="request-1")
    await cellar.do(command)
    holding = held(await cellar.claim_one())
    await cellar.write(begin(holding, "pay", retry=STEADY), fail(holding, "pay"))
    await cellar.do(wait_signal(holding, "other"))
    await cellar.signal(holding.run, "approved")
    await cellar.terminate(holding.run)
    assert (await purge(cellar)).runs == 1

    await cellar.do(command)
    again = held(await cellar.claim_one())
    assert again.run == holding.run
    rows = await cellar.store.list_steps(again.run, name=None, after_begun_seq=0, limit=10, payloads=True)
    assert rows is not None
    assert rows.rows == ()
    listed = await cellar.store.list_runs("default", RunFilter(labels={"team": "a"}), None, 10)
    assert len(listed.rows) == 1
    await cellar.write(begin(again, "pay", retry=STEADY), fail(again, "pay"))  # its attempts are new, too
    await cellar.do(wait_signal(again, "approved"))
    record = await cellar.store.get_step(again.run, "approved")
    assert record is not None
    assert record.output is None, "it got the signal of a run that is gone"


async def test_a_long_history_goes_bit_by_bit(cellar: Cellar, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("sqlite", "postgres"):
        monkeypatch.setattr(f"kagzi.store.{package}.operate.retention.LONG_HISTORY_SEQ", 5)
    command = cellar.start_command("long")
    await cellar.do(command)
    holding = held(await cellar.claim_one())
    for number in range(10):
        await cellar.done(holding, f"step-{number}")
    await cellar.do(complete_run(holding))
    assert (await purge(cellar)).runs == 1
    assert await left(cellar) == set()
    assert await cellar.store.purge_leftovers(4)
    assert await cellar.store.purge_leftovers(4)
    while await cellar.store.purge_leftovers(4):
        pass
    await cellar.do(command)
    rows = await cellar.store.list_steps(command.run, name=None, after_begun_seq=0, limit=10, payloads=True)
    assert rows is not None
    assert rows.rows == ()


async def test_a_child_may_go_before_its_parent(cellar: Cellar) -> None:
    parent = await cellar.running()
    child = await cellar.child(parent)
    await cellar.do(park(parent, "child"))
    child_held = await cellar.hold(child)
    await cellar.do(complete_run(child_held, "from the child"))
    assert (await purge(cellar)).runs == 1
    claimed = await cellar.hold(parent.run)
    step = await cellar.store.get_step(parent.run, "child")
    assert step is not None
    assert step.output is not None
    assert step.output.data == b"from the child"
    await cellar.do(complete_run(claimed))


async def test_a_failed_parent_is_tried_again_when_its_child_is_gone(cellar: Cellar) -> None:
    """It would wait for ever for a run that is not there any more."""
    parent = await cellar.running()
    child = await cellar.child(parent, on_close="abandon")
    await cellar.write(begin(parent, "pay"), fail(parent, "pay"))
    await cellar.do(fail_run(parent))
    await cellar.cascade()
    await cellar.do(complete_run(await cellar.hold(child)))
    assert (await purge(cellar, statuses=(RunStatus.COMPLETED,))).runs == 1
    the(Changed, await cellar.retry(parent.run))
    again = await cellar.hold(parent.run)
    step = await cellar.store.get_step(parent.run, "child")
    assert step is not None  # in its place, or replay would meet a new step in front of recorded results
    assert step.child_run_id is None
    assert await cellar.child(again) != child


async def test_a_parent_may_go_before_an_abandoned_child(cellar: Cellar) -> None:
    parent = await cellar.running()
    child = await cellar.child(parent, on_close="abandon")
    await cellar.do(complete_run(parent))
    await cellar.cascade()
    assert (await purge(cellar)).runs == 1
    child_held = await cellar.hold(child)
    await cellar.do(complete_run(child_held))
    assert (await cellar.run(child)).status is RunStatus.COMPLETED


async def test_a_parent_stays_until_its_children_were_told(cellar: Cellar) -> None:
    parent = await cellar.running()
    child = await cellar.child(parent)
    await cellar.do(complete_run(parent))
    assert (await purge(cellar)).runs == 0
    await cellar.cascade()
    assert (await cellar.run(child)).status is RunStatus.CANCELLED
    assert (await purge(cellar)).runs == 2


async def test_namespaces_are_not_mixed_up(cellar: Cellar) -> None:
    mine, foreign = await completed(cellar), await completed(cellar, namespace="other")
    assert not await cellar.store.delete_runs("default", [foreign.run_id], until=LATE)
    assert (await purge(cellar)).runs == 1
    assert await left(cellar, "other") == {foreign.run_id}
    assert mine.run_id not in await left(cellar)


async def test_delete_says_which_went(cellar: Cellar) -> None:
    ended, living = await completed(cellar), await cellar.start()
    unknown = cellar.ids.run_id(cellar.now)
    gone = await cellar.store.delete_runs("default", [living.run_id, ended.run_id, unknown], until=LATE)
    assert list(gone) == [ended.run_id]
    assert await left(cellar) == {living.run_id}


async def test_a_reopened_run_is_alive(cellar: Cellar) -> None:
    run = await failed(cellar)
    the(Changed, await cellar.retry(run))
    assert (await purge(cellar)).runs == 0
    assert not await cellar.store.delete_runs("default", [run.run_id], until=LATE)
    assert (await cellar.run(run)).status is RunStatus.PENDING


async def test_retry_against_purge(cellar: Cellar, second_store: Store) -> None:
    """Either it is tried again, whole, or it is gone: nothing between."""
    runs = [await failed(cellar) for _ in range(40)]

    async def retry(run: RunKey) -> bool:
        changed = await second_store.retry_run(run, "", cellar.ids.token(), cellar.now)
        assert changed is None or isinstance(changed, Changed), changed
        return changed is not None

    async def purge_some() -> None:
        for _ in range(20):
            await purge(cellar, limit=2)

    reopened, _ = await asyncio.gather(asyncio.gather(*map(retry, runs)), purge_some())
    alive = await left(cellar)
    for run, was_reopened in zip(runs, reopened, strict=True):
        assert (run.run_id in alive) >= was_reopened, "a run that was tried again was deleted"
        if run.run_id in alive:
            steps = await cellar.store.list_steps(run, name=None, after_begun_seq=0, limit=10, payloads=True)
            assert steps is not None
            assert [step.step_id for step in steps.rows] == ["a"], "it lost its history"


async def test_a_chore_is_claimed_by_one(cellar: Cellar, second_store: Store) -> None:
    now, until = cellar.now, cellar.now + 60 * US_PER_S
    claimed = await asyncio.gather(
        cellar.store.claim_chore("sweep", now, until), second_store.claim_chore("sweep", now, until)
    )
    assert sorted(claimed) == [False, True]
    assert await cellar.store.claim_chore("dust", now, until)
    assert not await cellar.store.claim_chore("sweep", until - 1, until + 1)
    assert await second_store.claim_chore("sweep", until, until + 1)


async def test_namespaces_page_by_page(cellar: Cellar) -> None:
    for namespace in ("b", "a", "c"):
        await cellar.start(namespace=namespace)
    first = await cellar.store.namespaces_after("", 2)
    assert [record.namespace for record in first] == ["a", "b"]
    assert [record.namespace for record in await cellar.store.namespaces_after("b", 2)] == ["c"]


async def test_a_run_that_is_gone_is_not_found(cellar: Cellar) -> None:
    run = await failed(cellar)
    await purge(cellar)
    assert await cellar.retry(run) is None
    signal = cellar.signal_given()
    assert await cellar.store.signal_run("default", run_id=run.run_id, signal=signal, now=cellar.now) is None
    assert await cellar.fork(run, "a") is None

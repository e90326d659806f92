"""Ends that somebody waits for: off the quick path, in one order of locking, once per batch."""

import asyncio

import asyncpg

from kagzi.core.records import Lease, RunLease
from kagzi.core.run.commands import Command, CompleteRun, StartChild, WaitSignal
from kagzi.core.run.outcomes import Busy, ChildStarted, Outcome, Parked, RunClosed, Started
from kagzi.core.states import RunStatus, StepStatus
from kagzi.store.postgres import PostgresStore
from kagzi.store.protocol import Signalled
from kagzi.system import SystemRng
from tests.support.timeouts import LOADED_MACHINE_S

from .verbs import NOW, OUTPUT, TERMS, begin, complete, leased_child, park, running, signal, start, start_child, write


def end(leased: RunLease) -> CompleteRun:
    return CompleteRun(run=leased.run, lease=leased.lease, output=OUTPUT)


async def settled(store: PostgresStore, *commands: Command) -> list[Outcome]:
    """Again for those that met a locked row, as the engine does."""
    outcomes = list((await store.write(commands, NOW, TERMS))[0])
    async with asyncio.timeout(LOADED_MACHINE_S):
        while busy := [place for place, outcome in enumerate(outcomes) if isinstance(outcome, Busy)]:
            again, _ = await store.write([commands[place] for place in busy], NOW, TERMS)
            for place, outcome in zip(busy, again, strict=True):
                outcomes[place] = outcome
    return outcomes


async def test_a_run_that_nobody_watches_is_closed_by_one_statement(store: PostgresStore) -> None:
    [leased] = await running(store, 1)
    statements = store.statements
    await write(store, begin(leased, "a"), complete(leased, "a"), end(leased))
    assert store.statements - statements == 1


async def test_steps_of_a_watched_run_take_the_quick_path_and_only_its_end_does_not(store: PostgresStore) -> None:
    [parent] = await running(store, 1)
    child = await leased_child(store, parent, "child")
    statements, transactions = store.statements, store.transactions
    await write(store, begin(child, "a"), complete(child, "a"))
    assert (store.statements - statements, store.transactions - transactions) == (1, 1)
    [closed], effects = await store.write([end(child)], NOW, TERMS)
    assert isinstance(closed, RunClosed)
    assert [notice.leased for notice in effects.notices] == [parent]
    step = await store.get_step(parent.run, "child")
    assert step is not None
    assert (step.status, step.output) == (StepStatus.COMPLETED, OUTPUT)


async def test_a_hundred_children_that_end_together_cost_as_many_statements_as_one(store: PostgresStore) -> None:
    [parent] = await running(store, 1)
    children = [await leased_child(store, parent, f"child-{n}") for n in range(100)]
    assert isinstance((await write(store, park(parent)))[0], Parked)
    before = store.statements, store.transactions
    outcomes, effects = await store.write([end(child) for child in children], NOW, TERMS)
    assert all(isinstance(outcome, RunClosed) for outcome in outcomes)
    assert effects.changed == (parent.run,)
    assert store.statements - before[0] <= 10
    assert store.transactions - before[1] <= 2
    record = await store.get_run("default", run_id=parent.run.run_id)
    assert record is not None
    assert record.status == RunStatus.PENDING


async def test_a_hundred_child_starts_are_one_transaction(store: PostgresStore) -> None:
    [parent] = await running(store, 1)
    before = store.statements, store.transactions
    outcomes = await write(store, *(start_child(parent, f"child-{n}") for n in range(100)))
    assert all(isinstance(outcome, ChildStarted) and outcome.created for outcome in outcomes)
    assert store.statements - before[0] <= 8
    assert store.transactions - before[1] == 1


async def test_a_locked_parent_delays_the_end_of_its_child_only(
    store: PostgresStore, connection: asyncpg.Connection
) -> None:
    parent, other = await running(store, 2)
    child = await leased_child(store, parent, "child")
    async with connection.transaction():
        await connection.execute("SELECT 1 FROM runs WHERE run_id = $1 FOR UPDATE", parent.run.run_id)
        async with asyncio.timeout(LOADED_MACHINE_S):
            outcomes = await write(store, begin(other, "a"), end(child))
        assert [type(outcome).__name__ for outcome in outcomes] == ["Begun", "Busy"]
    [closed], effects = await store.write([end(child)], NOW, TERMS)
    assert isinstance(closed, RunClosed)
    assert [notice.leased for notice in effects.notices] == [parent]


async def test_runs_that_wait_for_each_other_s_children_do_not_lock_each_other_out(
    store: PostgresStore, url: str
) -> None:
    """Parents that attached to runs older than themselves: both servers lock in the order of ids, whoever waits for
    whom."""
    second = PostgresStore(url, rng=SystemRng())
    await second.open()
    try:
        for round_ in range(10):
            old, young = await running(store, 2)
            ours, theirs = f"ours-{round_}", f"theirs-{round_}"
            children = await started(store, ours, theirs)
            await settled(store, attach(old, ours), attach(young, ours), attach(old, theirs), attach(young, theirs))
            async with asyncio.timeout(LOADED_MACHINE_S):
                endings = await asyncio.gather(settled(store, end(children[0])), settled(second, end(children[1])))
            assert all(isinstance(outcome, RunClosed) for outcomes in endings for outcome in outcomes)
            for parent in (old, young):
                steps = await store.list_steps(parent.run, name=None, after_begun_seq=0, limit=10, payloads=False)
                assert steps is not None
                assert {step.status for step in steps.rows} == {StepStatus.COMPLETED}
                assert len({step.seq for step in steps.rows}) == 2
    finally:
        await second.close()


async def test_a_wait_and_its_signal_at_the_same_time_meet(store: PostgresStore, url: str) -> None:
    """The careful path reads, decides, and writes only if no signal came meanwhile."""
    second = PostgresStore(url, rng=SystemRng())
    await second.open()
    try:
        holdings = await running(store, 30)
        waits = [WaitSignal(run=h.run, lease=h.lease, step_id="approved", signal_name="approved") for h in holdings]
        async with asyncio.timeout(LOADED_MACHINE_S):
            _, *answers = await asyncio.gather(
                settled(store, *waits),
                *(
                    second.signal_run("default", run_id=leased.run.run_id, signal=signal("approved"), now=NOW)
                    for leased in holdings
                ),
            )
        assert all(isinstance(signalled, Signalled) for signalled, _ in answers)
        for leased in holdings:
            step = await store.get_step(leased.run, "approved")
            assert step is not None
            assert (step.status, step.output) == (StepStatus.COMPLETED, OUTPUT)
    finally:
        await second.close()


async def test_losing_leases_is_forgotten_without_touching_an_index(
    store: PostgresStore, connection: asyncpg.Connection
) -> None:
    [leased] = await running(store, 1)
    await connection.execute("UPDATE runs SET lost_leases = 3 WHERE run_id = $1", leased.run.run_id)
    await write(store, begin(leased, "a"))
    assert await connection.fetchval("SELECT lost_leases FROM runs WHERE run_id = $1", leased.run.run_id) == 3
    await write(store, complete(leased, "a"))
    assert await connection.fetchval("SELECT lost_leases FROM runs WHERE run_id = $1", leased.run.run_id) == 0
    indexed = await connection.fetch(
        "SELECT indexdef FROM pg_indexes WHERE tablename = 'runs' AND indexdef LIKE '%lost_leases%'"
    )
    assert indexed == []


async def started(store: PostgresStore, *workflow_ids: str) -> list[RunLease]:
    """Runs with these workflow ids, held by a worker."""
    commands = [start(assigned=True, workflow_id=workflow_id, workflow_type="child") for workflow_id in workflow_ids]
    outcomes = await write(store, *commands)
    assert all(isinstance(outcome, Started) for outcome in outcomes)
    return [RunLease(command.run, Lease(1, 7)) for command in commands]


def attach(parent: RunLease, workflow_id: str) -> StartChild:
    return start_child(parent, f"child-{workflow_id}", workflow_id=workflow_id, attach=True)

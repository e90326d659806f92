"""Namespaces from their making to their end: what is known of them, what they allow, and how they go."""

import asyncio
import sqlite3
from collections.abc import Sequence

import msgspec

from kagzi.core.error_details import ErrorCode
from kagzi.core.pages.cursor import Cursor
from kagzi.core.records import NamespaceRecord, RunKey, Served, WorkerRecord
from kagzi.core.run.outcomes import ChildStarted, Existing, Refused, Started
from kagzi.core.states import RunStatus
from kagzi.core.times import US_PER_S
from kagzi.store.protocol.namespaces import Deletion
from tests.support.clock import FakeClock
from tests.support.seams import CountingIds

from .places import Place, connected
from .verbs import Cellar, complete_run, payload, refused, the

ENDED = (RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED)
OURS = "ours"


async def make(cellar: Cellar, **fields: object) -> NamespaceRecord:
    record = NamespaceRecord(namespace=OURS, **fields)  # type: ignore[arg-type]
    assert await cellar.store.put_namespace(record, cellar.now)
    return record


async def names(cellar: Cellar, size: int) -> list[str]:
    seen: list[str] = []
    cursor = None
    while True:
        page = await cellar.store.list_namespaces(cursor, size)
        seen += [record.namespace for record in page.rows]
        if not page.has_more:
            return seen
        cursor = Cursor(0, page.rows[-1].namespace)


# --- what is known ----------------------------------------------------------------------------------------------------


async def test_one_is_made_once(cellar: Cellar) -> None:
    store = cellar.store
    assert await store.put_namespace(NamespaceRecord(namespace=OURS, open_runs_limit=3), cellar.now, new=True)
    assert not await store.put_namespace(NamespaceRecord(namespace=OURS), cellar.now, new=True)
    found = await store.get_namespace(OURS)
    assert found is not None
    assert (found.open_runs_limit, found.created_at, found.deleting) == (3, cellar.now, False)


async def test_a_change_leaves_the_other_fields_alone(cellar: Cellar) -> None:
    await make(cellar, open_runs_limit=3, sessions_limit=4, retention_seconds={"failed": 3600})
    wanted = NamespaceRecord(namespace=OURS, enabled=False, open_runs_limit=None, starts_per_second_limit=2.5)
    changed = await cellar.store.update_namespace(wanted, ["enabled", "open_runs_limit"])
    assert changed is not None
    assert (changed.enabled, changed.open_runs_limit, changed.sessions_limit) == (False, None, 4)
    assert (changed.starts_per_second_limit, changed.retention_seconds) == (None, {"failed": 3600})
    assert await cellar.store.get_namespace(OURS) == changed
    changed = await cellar.store.update_namespace(
        msgspec.structs.replace(wanted, retention_seconds={"completed": 60}),
        ["retention_seconds", "starts_per_second_limit"],
    )
    assert changed is not None
    assert (changed.retention_seconds, changed.starts_per_second_limit, changed.enabled) == (
        {"completed": 60},
        2.5,
        False,
    )
    assert await cellar.store.update_namespace(NamespaceRecord(namespace="nobody"), ["enabled"]) is None


async def test_they_are_listed_by_name_there_and_back(cellar: Cellar) -> None:
    wanted = sorted(f"tenant-{n}" for n in range(11))
    for name in reversed(wanted):
        await cellar.store.put_namespace(NamespaceRecord(namespace=name), cellar.now)
    for size in (1, 4, 11, 20):
        assert await names(cellar, size) == wanted
    page = await cellar.store.list_namespaces(Cursor(0, wanted[7], "prev"), 3)
    assert ([record.namespace for record in page.rows], page.has_more) == (wanted[4:7], True)
    page = await cellar.store.list_namespaces(Cursor(0, wanted[2], "prev"), 3)
    assert ([record.namespace for record in page.rows], page.has_more) == (wanted[:2], False)


# --- disabled ---------------------------------------------------------------------------------------------------------


async def test_a_disabled_one_takes_no_new_runs_and_lets_those_it_has_finish(cellar: Cellar) -> None:
    holding = await cellar.running(workflow_id="order-1", namespace=OURS, request_id="first")
    await cellar.store.update_namespace(NamespaceRecord(namespace=OURS, enabled=False), ["enabled"])
    for on_conflict in ("existing", "fail", "replace", "existing_or_completed"):
        command = cellar.start_command(namespace=OURS, on_conflict=on_conflict)
        assert "disabled" in refused(await cellar.do(command), ErrorCode.PRECONDITION_FAILED).message
    repeated = cellar.start_command("order-1", namespace=OURS, request_id="first")
    assert the(Existing, await cellar.do(repeated)).run_id == holding.run.run_id, "asked for before it was disabled"
    child = the(ChildStarted, await cellar.do(cellar.child_command(holding, "child")))
    assert child.created, "so that the run which is there can finish"
    await cellar.do(complete_run(holding))
    assert (await cellar.run(holding.run)).status == RunStatus.COMPLETED
    await cellar.store.update_namespace(NamespaceRecord(namespace=OURS), ["enabled"])
    await cellar.start(namespace=OURS)


# --- limits -----------------------------------------------------------------------------------------------------------


async def started(cellar: Cellar, count: int) -> list[bool]:
    """Which of so many starts at one moment were let in."""
    outcomes = await cellar.write(*(cellar.start_command(namespace=OURS) for _ in range(count)))
    return [isinstance(outcome, Started) for outcome in outcomes]


async def test_no_more_starts_a_second_than_it_allows(cellar: Cellar) -> None:
    await make(cellar, starts_per_second_limit=20.0)
    assert await started(cellar, 5) == [True, True, False, False, False], "a tenth of a second's worth at once"
    total = 2
    for _ in range(100):
        cellar.clock.advance(ms=100)
        total += sum(await started(cellar, 5))
    assert 200 <= total <= 203, f"{total} in 10 s"


async def test_a_start_that_came_too_soon_is_told_when_to_come_again(cellar: Cellar) -> None:
    await make(cellar, starts_per_second_limit=0.5)
    await cellar.start(namespace=OURS)
    cellar.clock.advance(s=0.5)
    error = refused(await cellar.do(cellar.start_command(namespace=OURS)), ErrorCode.RESOURCE_EXHAUSTED)
    assert (error.retry_after_ms, error.metadata["limit"]) == (1_500, "starts_per_second_limit")
    cellar.clock.advance(ms=error.retry_after_ms)
    await cellar.start(namespace=OURS)


async def test_what_makes_no_run_uses_nothing_up(cellar: Cellar) -> None:
    await make(cellar, starts_per_second_limit=10.0)
    await cellar.start("order-1", namespace=OURS)
    for _ in range(3):
        assert isinstance(await cellar.do(cellar.start_command("order-1", namespace=OURS)), Existing)
    cellar.clock.advance(ms=100)
    await cellar.start("order-2", namespace=OURS)


async def test_the_rate_is_one_for_all_servers(cellar: Cellar, second_cellar: Cellar) -> None:
    await make(cellar, starts_per_second_limit=100.0)
    both = await asyncio.gather(started(cellar, 20), started(second_cellar, 20))
    assert sum(map(sum, both)) == 10


async def test_children_are_not_counted_by_the_rate(cellar: Cellar) -> None:
    await make(cellar, starts_per_second_limit=1.0)
    holding = await cellar.running(namespace=OURS)
    for n in range(3):
        await cellar.child(holding, f"child-{n}")


async def test_one_that_keeps_too_much_takes_no_more(cellar: Cellar) -> None:
    await make(cellar, stored_bytes_limit=100)
    run = await cellar.start(namespace=OURS, input=payload("x" * 60))
    await cellar.start(namespace=OURS, input=payload("y" * 70))
    chores = await cellar.store.namespace_chores(cellar.now, cellar.now + 60 * US_PER_S)
    assert chores.measure == OURS
    again = await cellar.store.namespace_chores(cellar.now, cellar.now + 60 * US_PER_S)
    assert again.measure == "", "it is being measured"
    measured = await cellar.store.measure_runs(OURS, None, 1)
    assert (measured.stored_bytes, measured.after) == (60, Cursor(cellar.now, run.run_id))
    rest = await cellar.store.measure_runs(OURS, measured.after, 2)
    assert (rest.stored_bytes, rest.after) == (70, None)
    await cellar.store.note_stored_bytes(OURS, 130, cellar.now)
    error = refused(await cellar.do(cellar.start_command(namespace=OURS)), ErrorCode.RESOURCE_EXHAUSTED)
    assert error.metadata["limit"] == "stored_bytes_limit"
    assert "130" in error.message
    assert error.retry_after_ms > 0
    await cellar.store.note_stored_bytes(OURS, 100, cellar.now)
    await cellar.start(namespace=OURS)
    cellar.clock.advance(s=61)
    assert (await cellar.store.namespace_chores(cellar.now, cellar.now + 60 * US_PER_S)).measure == OURS


async def test_all_that_a_run_keeps_is_measured(cellar: Cellar) -> None:
    holding = await cellar.running(namespace=OURS, input=payload("12345"), context=payload("123"))
    await cellar.done(holding, "step", "1234567")
    await cellar.signal(holding.run, "approved", "12")
    await cellar.do(complete_run(holding, "1234"))
    assert (await cellar.store.measure_runs(OURS, None, 10)).stored_bytes == 5 + 3 + 7 + 2 + 4


async def test_no_more_workers_than_it_allows(cellar: Cellar) -> None:
    await make(cellar, sessions_limit=2)
    worker = WorkerRecord(
        worker_id="worker-3",
        namespace=OURS,
        served=(Served("hello", "1"),),
        max_concurrent=10,
        last_heartbeat_at=cellar.now,
    )
    for name in ("worker-1", "worker-2", "worker-1"):
        await cellar.register(name, namespace=OURS)
    error = refused(await cellar.store.register_worker(worker, cellar.now), ErrorCode.RESOURCE_EXHAUSTED)
    assert error.metadata["limit"] == "sessions_limit"
    await cellar.store.worker_left(OURS, "worker-2", cellar.now, hand_back=True)
    assert not isinstance(await cellar.store.register_worker(worker, cellar.now), Refused)
    cellar.clock.advance(s=61)
    await cellar.register("worker-4", namespace=OURS)
    await cellar.register("worker-5", namespace=OURS)


# --- the end ----------------------------------------------------------------------------------------------------------


async def purge(cellar: Cellar, namespace: str = OURS) -> None:
    """As the engine does: the runs, then the rest."""
    for _ in range(1_000):
        gone = await cellar.store.purge_runs(namespace, ENDED, after=0, until=cellar.now, limit=7)
        if not gone.more and not await cellar.store.purge_namespace(namespace, 3):
            return
    raise AssertionError("the namespace does not go")


async def furnish(cellar: Cellar) -> list[RunKey]:
    """Something of everything a namespace can have, all of it ended."""
    await cellar.register("worker-1", namespace=OURS)
    runs: list[RunKey] = []
    for n in range(10):
        holding = await cellar.running(namespace=OURS, labels={"team": "x"}, input=payload("in"), schedule_id="nightly")
        if n == 0:
            child = await cellar.child(holding, "child")
            await cellar.terminate(child)
        await cellar.done(holding, "a")
        await cellar.do(complete_run(holding))
        runs.append(holding.run)
    cellar.clock.advance(s=120)
    await cellar.cascade()
    while await cellar.store.roll_up(cellar.now):
        pass
    return runs


async def test_it_goes_only_when_nothing_is_open_in_it(cellar: Cellar) -> None:
    await furnish(cellar)
    run = await cellar.start(namespace=OURS)
    await cellar.start(namespace=OURS)
    before = await cellar.store.get_namespace(OURS)
    assert await cellar.store.delete_namespace(OURS, cellar.now, 100) == Deletion(granted=False, open_runs=2)
    assert await cellar.store.delete_namespace(OURS, cellar.now, 1) == Deletion(granted=False, open_runs=1)
    assert await cellar.store.get_namespace(OURS) == before
    assert not await cellar.store.purge_namespace(OURS, 10)
    assert (await cellar.run(run)).status == RunStatus.PENDING
    assert await cellar.store.delete_namespace("nobody", cellar.now, 100) is None


async def test_it_goes_with_all_it_had_and_its_name_is_free_again(cellar: Cellar) -> None:
    runs = await furnish(cellar)
    other = await cellar.start("order-1", namespace="theirs", labels={"team": "x"})
    assert await cellar.store.delete_namespace(OURS, cellar.now, 100) == Deletion(granted=True)
    assert await cellar.store.delete_namespace(OURS, cellar.now, 100) == Deletion(granted=True), (
        "asking twice is asking once"
    )
    found = await cellar.store.get_namespace(OURS)
    assert found is not None
    assert found.deleting
    assert refused(await cellar.do(cellar.start_command(namespace=OURS)), ErrorCode.NOT_FOUND)
    worker = WorkerRecord(worker_id="w", namespace=OURS, served=(Served("hello", "1"),), max_concurrent=1)
    assert refused(await cellar.store.register_worker(worker, cellar.now), ErrorCode.NOT_FOUND)
    assert not await cellar.store.put_namespace(NamespaceRecord(namespace=OURS), cellar.now)
    assert await cellar.store.update_namespace(NamespaceRecord(namespace=OURS), ["enabled"]) is None
    assert (await cellar.store.namespace_chores(cellar.now, cellar.now)).purge == OURS
    await purge(cellar)
    assert await cellar.store.get_namespace(OURS) is None
    assert await cellar.store.get_run(OURS, run_id=runs[0].run_id) is None
    assert (await cellar.store.namespace_chores(cellar.now, cellar.now)).purge == ""
    assert (await cellar.run(other)).status == RunStatus.PENDING
    assert await cellar.store.put_namespace(NamespaceRecord(namespace=OURS), cellar.now, new=True)
    await cellar.start(namespace=OURS)


async def tables_with(place: Place, namespace: str) -> dict[str, int]:
    """How many rows of each table that has a column for it belong to a namespace."""
    if place.name == "postgres":
        async with connected(place.address) as connection:
            rows = await connection.fetch(
                "select table_name from information_schema.columns "
                "where column_name = 'namespace' and table_schema = current_schema()"
            )
            return {
                row["table_name"]: await connection.fetchval(
                    f'select count(*) from "{row["table_name"]}" where namespace = $1', namespace
                )
                for row in rows
            }
    database = sqlite3.connect(place.address)
    try:
        names: Sequence[tuple[str]] = database.execute(
            "select m.name from sqlite_master m, pragma_table_info(m.name) c where m.type = 'table' and c.name = 'namespace'"
        ).fetchall()
        return {
            name: database.execute(f"select count(*) from {name} where namespace = ?", (namespace,)).fetchone()[0]
            for (name,) in names
        }
    finally:
        database.close()


async def test_nothing_is_left_of_it_in_any_table(durable_place: Place, clock: FakeClock, ids: CountingIds) -> None:
    cellar = Cellar(await durable_place.open(), clock, ids)
    await furnish(cellar)
    had = {name for name, rows in (await tables_with(durable_place, OURS)).items() if rows}
    assert {"runs", "run_labels", "workers", "namespaces", "run_stats"} <= had
    await cellar.store.delete_namespace(OURS, cellar.now, 100)
    await purge(cellar)
    assert {name: rows for name, rows in (await tables_with(durable_place, OURS)).items() if rows} == {}


async def test_every_table_of_a_namespace_is_known_to_its_removal(durable_place: Place) -> None:
    from kagzi.store.postgres.statements import NAMESPACE_TABLES as POSTGRES
    from kagzi.store.sqlite.statements import NAMESPACE_TABLES as SQLITE

    await durable_place.open()
    known = set(POSTGRES if durable_place.name == "postgres" else SQLITE)
    assert set(await tables_with(durable_place, OURS)) == known | {"runs", "run_labels", "namespaces"}


async def test_a_start_and_the_deletion_race_and_one_of_them_wins(cellar: Cellar, second_cellar: Cellar) -> None:
    """Never both: a run that was accepted is kept."""
    for n in range(15):
        name = f"tenant-{n}"
        await cellar.store.put_namespace(NamespaceRecord(namespace=name), cellar.now)
        command = cellar.start_command(namespace=name)
        outcome, deletion = await asyncio.gather(
            cellar.do(command), second_cellar.store.delete_namespace(name, cellar.now, 10)
        )
        assert deletion is not None
        if isinstance(outcome, Started):
            assert not deletion.granted
            found = await cellar.store.get_namespace(name)
            assert found is not None
            assert not found.deleting
        else:
            assert deletion.granted
            assert the(Refused, outcome).error.code == ErrorCode.NOT_FOUND

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
from kagzi.store.sql_files import NAMESPACE_TABLES
from tests.support.clock import FakeClock
from tests.support.providers import CountingIds

from .places import Place, connected
from .verbs import StoreHarness, begin, complete_run, fail, payload, refused, the

ENDED = (RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED)
OURS = "ours"


async def make(harness: StoreHarness, **fields: object) -> NamespaceRecord:
    record = NamespaceRecord(namespace=OURS, **fields)  # type: ignore[arg-type]
    assert await harness.store.put_namespace(record, harness.now)
    return record


async def names(harness: StoreHarness, size: int) -> list[str]:
    seen: list[str] = []
    cursor = None
    while True:
        page = await harness.store.list_namespaces(cursor, size)
        seen += [record.namespace for record in page.rows]
        if not page.has_more:
            return seen
        cursor = Cursor(0, page.rows[-1].namespace)


# --- what is known ----------------------------------------------------------------------------------------------------


async def test_one_is_made_once(harness: StoreHarness) -> None:
    store = harness.store
    assert await store.put_namespace(NamespaceRecord(namespace=OURS, open_runs_limit=3), harness.now, new=True)
    assert not await store.put_namespace(NamespaceRecord(namespace=OURS), harness.now, new=True)
    stored = await store.get_namespace(OURS)
    assert stored is not None
    assert (stored.open_runs_limit, stored.created_at, stored.deleting) == (3, harness.now, False)


async def test_a_change_leaves_the_other_fields_alone(harness: StoreHarness) -> None:
    await make(harness, open_runs_limit=3, sessions_limit=4, retention_seconds={"failed": 3600})
    wanted = NamespaceRecord(namespace=OURS, enabled=False, open_runs_limit=None, starts_per_second_limit=2.5)
    changed = await harness.store.update_namespace(wanted, ["enabled", "open_runs_limit"])
    assert changed is not None
    assert (changed.enabled, changed.open_runs_limit, changed.sessions_limit) == (False, None, 4)
    assert (changed.starts_per_second_limit, changed.retention_seconds) == (None, {"failed": 3600})
    assert await harness.store.get_namespace(OURS) == changed
    changed = await harness.store.update_namespace(
        msgspec.structs.replace(wanted, retention_seconds={"completed": 60}),
        ["retention_seconds", "starts_per_second_limit"],
    )
    assert changed is not None
    assert (changed.retention_seconds, changed.starts_per_second_limit, changed.enabled) == (
        {"completed": 60},
        2.5,
        False,
    )
    assert await harness.store.update_namespace(NamespaceRecord(namespace="nobody"), ["enabled"]) is None


async def test_they_are_listed_by_name_there_and_back(harness: StoreHarness) -> None:
    wanted = sorted(f"tenant-{n}" for n in range(11))
    for name in reversed(wanted):
        await harness.store.put_namespace(NamespaceRecord(namespace=name), harness.now)
    for size in (1, 4, 11, 20):
        assert await names(harness, size) == wanted
    page = await harness.store.list_namespaces(Cursor(0, wanted[7], "prev"), 3)
    assert ([record.namespace for record in page.rows], page.has_more) == (wanted[4:7], True)
    page = await harness.store.list_namespaces(Cursor(0, wanted[2], "prev"), 3)
    assert ([record.namespace for record in page.rows], page.has_more) == (wanted[:2], False)


# --- disabled ---------------------------------------------------------------------------------------------------------


async def test_a_disabled_one_takes_no_new_runs_and_lets_those_it_has_finish(harness: StoreHarness) -> None:
    holding = await harness.running(workflow_id="order-1", namespace=OURS, request_id="first")
    await harness.store.update_namespace(NamespaceRecord(namespace=OURS, enabled=False), ["enabled"])
    for on_conflict in ("existing", "fail", "replace", "existing_or_completed"):
        command = harness.start_command(namespace=OURS, on_conflict=on_conflict)
        assert "disabled" in refused(await harness.do(command), ErrorCode.PRECONDITION_FAILED).message
    repeated = harness.start_command("order-1", namespace=OURS, request_id="first")
    assert the(Existing, await harness.do(repeated)).run_id == holding.run.run_id, "asked for before it was disabled"
    child = the(ChildStarted, await harness.do(harness.child_command(holding, "child")))
    assert child.created, "so that the run which is there can finish"
    await harness.do(complete_run(holding))
    assert (await harness.run(holding.run)).status == RunStatus.COMPLETED
    await harness.store.update_namespace(NamespaceRecord(namespace=OURS), ["enabled"])
    await harness.start(namespace=OURS)


# --- limits -----------------------------------------------------------------------------------------------------------


async def started(harness: StoreHarness, count: int) -> list[bool]:
    """Which of so many starts at one moment were let in."""
    outcomes = await harness.write(*(harness.start_command(namespace=OURS) for _ in range(count)))
    return [isinstance(outcome, Started) for outcome in outcomes]


async def test_no_more_starts_a_second_than_it_allows(harness: StoreHarness) -> None:
    await make(harness, starts_per_second_limit=20.0)
    assert await started(harness, 5) == [True, True, False, False, False], "a tenth of a second's worth at once"
    total = 2
    for _ in range(100):
        harness.clock.advance(ms=100)
        total += sum(await started(harness, 5))
    assert 200 <= total <= 203, f"{total} in 10 s"


async def test_a_start_over_the_rate_is_refused_with_the_time_to_retry(harness: StoreHarness) -> None:
    await make(harness, starts_per_second_limit=0.5)
    await harness.start(namespace=OURS)
    harness.clock.advance(s=0.5)
    error = refused(await harness.do(harness.start_command(namespace=OURS)), ErrorCode.RESOURCE_EXHAUSTED)
    assert (error.retry_after_ms, error.metadata["limit"]) == (1_500, "starts_per_second_limit")
    harness.clock.advance(ms=error.retry_after_ms)
    await harness.start(namespace=OURS)


async def test_what_makes_no_run_uses_nothing_up(harness: StoreHarness) -> None:
    await make(harness, starts_per_second_limit=10.0)
    await harness.start("order-1", namespace=OURS)
    for _ in range(3):
        assert isinstance(await harness.do(harness.start_command("order-1", namespace=OURS)), Existing)
    harness.clock.advance(ms=100)
    await harness.start("order-2", namespace=OURS)


async def test_the_rate_is_one_for_all_servers(harness: StoreHarness, second_harness: StoreHarness) -> None:
    await make(harness, starts_per_second_limit=100.0)
    both = await asyncio.gather(started(harness, 20), started(second_harness, 20))
    assert sum(map(sum, both)) == 10


async def test_children_are_not_counted_by_the_rate(harness: StoreHarness) -> None:
    await make(harness, starts_per_second_limit=1.0)
    holding = await harness.running(namespace=OURS)
    for n in range(3):
        await harness.child(holding, f"child-{n}")


async def test_one_that_keeps_too_much_takes_no_more(harness: StoreHarness) -> None:
    await make(harness, stored_bytes_limit=100)
    run = await harness.start(namespace=OURS, input=payload("x" * 60))
    await harness.start(namespace=OURS, input=payload("y" * 70))
    chores = await harness.store.namespace_chores(harness.now, harness.now + 60 * US_PER_S)
    assert chores.measure == OURS
    again = await harness.store.namespace_chores(harness.now, harness.now + 60 * US_PER_S)
    assert again.measure == "", "it is being measured"
    measured = await harness.store.measure_runs(OURS, None, 1)
    assert (measured.stored_bytes, measured.after) == (60, Cursor(harness.now, run.run_id))
    rest = await harness.store.measure_runs(OURS, measured.after, 2)
    assert (rest.stored_bytes, rest.after) == (70, None)
    await harness.store.note_stored_bytes(OURS, 130, harness.now)
    error = refused(await harness.do(harness.start_command(namespace=OURS)), ErrorCode.RESOURCE_EXHAUSTED)
    assert error.metadata["limit"] == "stored_bytes_limit"
    assert "130" in error.message
    assert error.retry_after_ms > 0
    await harness.store.note_stored_bytes(OURS, 100, harness.now)
    await harness.start(namespace=OURS)
    harness.clock.advance(s=61)
    assert (await harness.store.namespace_chores(harness.now, harness.now + 60 * US_PER_S)).measure == OURS


async def test_all_that_a_run_keeps_is_measured(harness: StoreHarness) -> None:
    holding = await harness.running(namespace=OURS, input=payload("12345"), context=payload("123"))
    await harness.done(holding, "step", "1234567")
    await harness.signal(holding.run, "approved", "12")
    await harness.do(begin(holding, "shaky", input=payload("1")))
    await harness.do(msgspec.structs.replace(fail(holding, "shaky"), input=payload("123456")))
    await harness.do(complete_run(holding, "1234"))
    kept_of_failure = 6 + 6  # by the step and by its attempt
    assert (await harness.store.measure_runs(OURS, None, 10)).stored_bytes == 5 + 3 + 7 + 2 + 4 + kept_of_failure


async def test_no_more_workers_than_it_allows(harness: StoreHarness) -> None:
    await make(harness, sessions_limit=2)
    worker = WorkerRecord(
        worker_id="worker-3",
        namespace=OURS,
        served=(Served("hello", "1"),),
        max_concurrent=10,
        last_heartbeat_at=harness.now,
    )
    for name in ("worker-1", "worker-2", "worker-1"):
        await harness.register(name, namespace=OURS)
    error = refused(await harness.store.register_worker(worker, harness.now), ErrorCode.RESOURCE_EXHAUSTED)
    assert error.metadata["limit"] == "sessions_limit"
    await harness.store.worker_left(OURS, "worker-2", harness.now, hand_back=True)
    assert not isinstance(await harness.store.register_worker(worker, harness.now), Refused)
    harness.clock.advance(s=61)
    await harness.register("worker-4", namespace=OURS)
    await harness.register("worker-5", namespace=OURS)


# --- the end ----------------------------------------------------------------------------------------------------------


async def purge(harness: StoreHarness, namespace: str = OURS) -> None:
    """As the engine does: the runs, then the rest."""
    for _ in range(1_000):
        gone = await harness.store.purge_runs(namespace, ENDED, after=0, until=harness.now, limit=7)
        if not gone.more and not await harness.store.purge_namespace(namespace, 3):
            return
    raise AssertionError("the namespace does not go")


async def furnish(harness: StoreHarness) -> list[RunKey]:
    """Something of everything a namespace can have, all of it ended."""
    await harness.register("worker-1", namespace=OURS)
    runs: list[RunKey] = []
    for n in range(10):
        holding = await harness.running(
            namespace=OURS, labels={"team": "x"}, input=payload("in"), schedule_id="nightly"
        )
        if n == 0:
            child = await harness.child(holding, "child")
            await harness.terminate(child)
        await harness.done(holding, "a")
        await harness.do(complete_run(holding))
        runs.append(holding.run)
    harness.clock.advance(s=120)
    await harness.cascade()
    while await harness.store.roll_up(harness.now):
        pass
    return runs


async def test_it_goes_only_when_nothing_is_open_in_it(harness: StoreHarness) -> None:
    await furnish(harness)
    run = await harness.start(namespace=OURS)
    await harness.start(namespace=OURS)
    before = await harness.store.get_namespace(OURS)
    assert await harness.store.delete_namespace(OURS, harness.now, 100) == Deletion(granted=False, open_runs=2)
    assert await harness.store.delete_namespace(OURS, harness.now, 1) == Deletion(granted=False, open_runs=1)
    assert await harness.store.get_namespace(OURS) == before
    assert not await harness.store.purge_namespace(OURS, 10)
    assert (await harness.run(run)).status == RunStatus.PENDING
    assert await harness.store.delete_namespace("nobody", harness.now, 100) is None


async def test_it_goes_with_all_it_had_and_its_name_is_free_again(harness: StoreHarness) -> None:
    runs = await furnish(harness)
    other = await harness.start("order-1", namespace="theirs", labels={"team": "x"})
    assert await harness.store.delete_namespace(OURS, harness.now, 100) == Deletion(granted=True)
    assert await harness.store.delete_namespace(OURS, harness.now, 100) == Deletion(granted=True), (
        "asking twice is asking once"
    )
    stored = await harness.store.get_namespace(OURS)
    assert stored is not None
    assert stored.deleting
    assert refused(await harness.do(harness.start_command(namespace=OURS)), ErrorCode.NOT_FOUND)
    worker = WorkerRecord(worker_id="w", namespace=OURS, served=(Served("hello", "1"),), max_concurrent=1)
    assert refused(await harness.store.register_worker(worker, harness.now), ErrorCode.NOT_FOUND)
    assert not await harness.store.put_namespace(NamespaceRecord(namespace=OURS), harness.now)
    assert await harness.store.update_namespace(NamespaceRecord(namespace=OURS), ["enabled"]) is None
    assert (await harness.store.namespace_chores(harness.now, harness.now)).purge == OURS
    await purge(harness)
    assert await harness.store.get_namespace(OURS) is None
    assert await harness.store.get_run(OURS, run_id=runs[0].run_id) is None
    assert (await harness.store.namespace_chores(harness.now, harness.now)).purge == ""
    assert (await harness.run(other)).status == RunStatus.PENDING
    assert await harness.store.put_namespace(NamespaceRecord(namespace=OURS), harness.now, new=True)
    await harness.start(namespace=OURS)


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
            "select m.name from sqlite_master m, pragma_table_info(m.name) c where m.type = 'table' and c.name = "
            "'namespace'"
        ).fetchall()
        return {
            name: database.execute(f"select count(*) from {name} where namespace = ?", (namespace,)).fetchone()[0]
            for (name,) in names
        }
    finally:
        database.close()


async def test_nothing_is_left_of_it_in_any_table(durable_place: Place, clock: FakeClock, ids: CountingIds) -> None:
    harness = StoreHarness(await durable_place.open(), clock, ids)
    await furnish(harness)
    had = {name for name, rows in (await tables_with(durable_place, OURS)).items() if rows}
    assert {"runs", "run_labels", "workers", "namespaces", "run_stats"} <= had
    await harness.store.delete_namespace(OURS, harness.now, 100)
    await purge(harness)
    assert {name: rows for name, rows in (await tables_with(durable_place, OURS)).items() if rows} == {}


async def test_every_table_of_a_namespace_is_known_to_its_removal(durable_place: Place) -> None:
    await durable_place.open()
    known = {*NAMESPACE_TABLES, "runs", "run_labels", "namespaces", "audit_log"}  # what was done there is kept
    assert set(await tables_with(durable_place, OURS)) == known


async def test_a_start_and_the_deletion_race_and_one_of_them_wins(
    harness: StoreHarness, second_harness: StoreHarness
) -> None:
    """Never both: a run that was accepted is kept."""
    for n in range(15):
        name = f"tenant-{n}"
        await harness.store.put_namespace(NamespaceRecord(namespace=name), harness.now)
        command = harness.start_command(namespace=name)
        outcome, deletion = await asyncio.gather(
            harness.do(command), second_harness.store.delete_namespace(name, harness.now, 10)
        )
        assert deletion is not None
        if isinstance(outcome, Started):
            assert not deletion.granted
            stored = await harness.store.get_namespace(name)
            assert stored is not None
            assert not stored.deleting
        else:
            assert deletion.granted
            assert the(Refused, outcome).error.code == ErrorCode.NOT_FOUND

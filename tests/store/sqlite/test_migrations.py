"""A file of an earlier schema keeps what it holds, and goes on as if it had always been of this one."""

import sqlite3
from contextlib import closing
from itertools import takewhile
from pathlib import Path

import pytest

from kagzi.core.errors import KagziError
from kagzi.core.records import RunKey
from kagzi.core.run.outcomes import Begun, RunClosed
from kagzi.core.states import RunStatus, StepStatus
from kagzi.store.sql_files import Migration, load_migrations
from kagzi.store.sqlite import SqliteMigrator, SqliteStore, migrate
from kagzi.store.sqlite.connection.connection import MEMORY, Database, connect
from kagzi.store.sqlite.migrate import apply_migrations
from kagzi.store.sqlite.statements import PACKAGE
from tests.store.conformance.invariants import check_invariants
from tests.store.conformance.test_open_counts import count_again, some_open_steps
from tests.store.conformance.test_unread_signals import count_unread_again, some_unread_signals
from tests.store.conformance.verbs import StoreHarness, begin, complete_run, fail_run, leased, payload, the
from tests.support.clock import FakeClock
from tests.support.providers import CountingIds, LoadedRng

LATER = tuple(f"{migration.version:04d}_{migration.name}" for migration in load_migrations(PACKAGE)[1:])

FIRST, SECOND = (f"00000000-0000-7000-8000-00000000000{number}" for number in (1, 2))
_RUN = """INSERT INTO runs (run_id, namespace, workflow_id, workflow_type, version, status, wait_reason, seq, lease,
    nonce, ready_at,
                            due_at, attempt, created_at, started_at)
VALUES (?, 'default', ?, 'hello', '1', ?, ?, 6, 1, 1, ?, ?, 1, 1, 1)"""
_STEP = """INSERT INTO steps (run_id, step_id, name, kind, status, attempt, begun_seq, seq, lease, nonce, output,
    error, retry_at, wake_at,
                              created_at, started_at, finished_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, 1, 1, ?, ?, ?, ?, 1, 1, ?)"""
_ATTEMPT = f"""INSERT INTO step_attempts
VALUES ('{FIRST}', 'flaky', 1, 3, 4, 1, 1, 1, 2, '{{"message":"no"}}', 2, 'worker-1')"""


@pytest.fixture
def old_path(tmp_path: Path) -> str:
    """A file as the first migration made it: a run that sleeps, with a result, a failed attempt and an input."""
    path = str(tmp_path / "kagzi.db")
    first = load_migrations(PACKAGE)[0]
    database = sqlite3.connect(path)
    database.executescript(first.sql)
    database.execute(
        "CREATE TABLE schema_migrations (version INTEGER NOT NULL PRIMARY KEY, name TEXT NOT NULL, checksum "
        "TEXT NOT NULL) STRICT"
    )
    database.execute("INSERT INTO schema_migrations VALUES (?, ?, ?)", (first.version, first.name, first.checksum))
    database.execute("INSERT INTO namespaces (namespace, created_at) VALUES ('default', 1)")
    database.execute(_RUN, (FIRST, "order-1", 3, 1, None, 2_000))
    database.execute(_RUN, (SECOND, "order-2", 1, None, 1, None))
    database.execute(_STEP, (FIRST, "$input", "$input", 100, 3, 1, 0, 0, b"in", None, None, None, 1))
    database.execute(_STEP, (FIRST, "a", "a", 1, 3, 1, 1, 2, b"out", None, None, None, 1))
    database.execute(_STEP, (FIRST, "flaky", "flaky", 1, 1, 2, 3, 0, None, None, 9_000, None, None))
    database.execute(_STEP, (FIRST, "nap", "nap", 2, 2, 1, 5, 0, None, None, None, 2_000, None))
    database.execute(_ATTEMPT)
    database.commit()
    database.close()
    return path


async def test_what_was_there_is_there(old_path: str) -> None:
    assert (await SqliteMigrator(old_path).status()).pending == LATER
    assert (await SqliteMigrator(old_path).migrate()).pending == ()
    store = SqliteStore(old_path, rng=LoadedRng())
    await store.open()
    try:
        harness = StoreHarness(store, FakeClock(), CountingIds())
        record, steps = await harness.picture(RunKey("default", FIRST))
        assert (record.status, record.wake_at, record.input) == (RunStatus.SLEEPING, 2_000, payload("in"))
        assert (record.pause_requested, record.status_text, record.continued_as) == (False, "", None)
        assert record.waits == ("nap", "flaky")
        assert steps["a"].output == payload("out")
        assert [attempt.error.message for attempt in steps["flaky"].attempts] == ["no"]
        await check_invariants(store)
    finally:
        await store.close()


async def test_open_waits_and_retries_are_counted_once_they_are_columns(tmp_path: Path) -> None:
    """What runs of an older schema have open: the migration says it of them."""
    path = str(tmp_path / "kagzi.db")
    await SqliteMigrator(path).migrate()
    store = SqliteStore(path, rng=LoadedRng())
    await store.open()
    try:
        await some_open_steps(StoreHarness(store, FakeClock(), CountingIds()))
        with closing(sqlite3.connect(path, isolation_level=None)) as database:
            database.execute("UPDATE runs SET awaits_signal = 0, retrying_steps = 0")
            database.execute(count_again(PACKAGE))
        counted = {(run.awaits_signal, run.retrying_steps) for run in await check_invariants(store)}
        assert counted == {(0, 0), (2, 0), (1, 1)}
    finally:
        await store.close()


async def test_unread_signals_are_counted_once_they_are_a_column(tmp_path: Path) -> None:
    path = str(tmp_path / "kagzi.db")
    await SqliteMigrator(path).migrate()
    store = SqliteStore(path, rng=LoadedRng())
    await store.open()
    try:
        await some_unread_signals(StoreHarness(store, FakeClock(), CountingIds()))
        with closing(sqlite3.connect(path, isolation_level=None)) as database:
            database.execute("UPDATE runs SET unread_signals = 0")
            database.execute(count_unread_again(PACKAGE))
        assert sorted(run.unread_signals for run in await check_invariants(store)) == [0, 2, 2]
    finally:
        await store.close()


async def test_it_goes_on(old_path: str) -> None:
    await SqliteMigrator(old_path).migrate()
    store = SqliteStore(old_path, rng=LoadedRng())
    await store.open()
    try:
        harness = StoreHarness(store, FakeClock(), CountingIds())
        await harness.fire()
        claimed = {one.run.run_id: one for one in await harness.claim()}
        nap = next(step for step in claimed[FIRST].history.steps if step.step_id == "nap")
        assert (nap.status, nap.seq) == (StepStatus.COMPLETED, 7)
        the(Begun, await harness.do(begin(leased(claimed[FIRST]), "flaky", 2)))
        child = await harness.child(leased(claimed[FIRST]))
        await harness.do(fail_run(await harness.hold(child)))
        the(RunClosed, await harness.do(complete_run(leased(claimed[FIRST]))))
        await check_invariants(store)
    finally:
        await store.close()


async def test_minutes_that_were_noted_stay_and_are_summed_up_to_hours(tmp_path: Path) -> None:
    path = str(tmp_path / "kagzi.db")
    hour, end = 3_600_000_000 * 480_000, 3_600_000_000 * 480_001
    database = sqlite3.connect(path)
    database.execute(
        "CREATE TABLE schema_migrations (version INTEGER NOT NULL PRIMARY KEY, name TEXT NOT NULL, checksum "
        "TEXT NOT NULL) STRICT"
    )
    for migration in takewhile(lambda each: each.name != "hourly_stats", load_migrations(PACKAGE)):
        database.executescript(migration.sql)
        database.execute(
            "INSERT INTO schema_migrations VALUES (?, ?, ?)", (migration.version, migration.name, migration.checksum)
        )
    for minute in (hour, hour + 60_000_000, end):
        database.execute("INSERT INTO run_stats VALUES ('default', 'ship', ?, 2, 1, 1, 0, 5, 9)", (minute,))
    database.execute("INSERT INTO rolled_up VALUES (1, ?)", (end + 120_000_000,))
    database.commit()
    database.close()
    await SqliteMigrator(path).migrate()
    store = SqliteStore(path, rng=LoadedRng())
    await store.open()
    minutes = (await store.stats("default", "", hour, end + 3_600_000_000, 60_000_000, 10)).buckets
    hours = (await store.stats("default", "", hour, end + 3_600_000_000, 3_600_000_000, 10)).buckets
    await store.close()
    assert [(row.minute, row.started, row.p50_us) for row in minutes] == [
        (hour, 2, 5),
        (hour + 60_000_000, 2, 5),
        (end, 2, 5),
    ]
    assert [(row.minute, row.started, row.failed, row.p50_us) for row in hours] == [(hour, 4, 2, None), (end, 2, 1, 5)]


# --- a new database ---------------------------------------------------------------------------------------------------


def _everything(database: Database) -> list[tuple[object, ...]]:
    objects = database.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY rowid")
    return objects + database.execute("SELECT * FROM schema_migrations ORDER BY version")


def test_a_new_database_is_what_one_migration_after_the_other_makes() -> None:
    at_once, one_by_one = connect(MEMORY), connect(MEMORY)
    with closing(at_once), closing(one_by_one):
        apply_migrations(at_once, MEMORY)
        apply_migrations(one_by_one, MEMORY, quick=False)
        assert _everything(at_once) == _everything(one_by_one)


def test_migrations_that_its_script_does_not_have_yet_are_applied_to_a_new_database(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = load_migrations(PACKAGE)
    newer = Migration(len(known) + 1, "newer", "CREATE TABLE newer (a INTEGER) STRICT;\n", "a checksum")
    monkeypatch.setattr(migrate, "load_migrations", lambda _package: (*known, newer))
    with closing(connect(MEMORY)) as database:
        apply_migrations(database, MEMORY)
        assert database.execute("SELECT count(*) FROM newer") == [(0,)]
        assert database.execute("SELECT max(version), count(*) FROM schema_migrations") == [(len(known) + 1,) * 2]


async def test_a_new_database_is_made_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = tmp_path / "schema.sql"
    schema.write_text(migrate._SCHEMA.read_text("utf-8") + "CREATE TABLE runs (again INTEGER);\n")
    path = str(tmp_path / "kagzi.db")
    with monkeypatch.context() as patched:
        patched.setattr(migrate, "_SCHEMA", schema)
        with pytest.raises(KagziError, match="runs"):
            await SqliteMigrator(path).migrate()
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("SELECT count(*) FROM sqlite_master").fetchall() == [(0,)]
    assert (await SqliteMigrator(path).migrate()).pending == ()

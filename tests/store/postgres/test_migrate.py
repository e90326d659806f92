"""The schema: brought up to date by any number of servers at once, and refused when it is not what the code knows."""

import asyncio
from itertools import takewhile

import asyncpg
import pytest

from kagzi.core.errors import SchemaMismatch, Unavailable
from kagzi.core.records import RunFilter
from kagzi.core.states import StepStatus
from kagzi.store.postgres import PostgresMigrator, PostgresStore
from kagzi.store.postgres.connection.connection import STATEMENTS
from kagzi.store.protocol import Want
from kagzi.store.sql_files import load_migrations
from kagzi.system import SystemRng
from tests.store.conformance.invariants import check_invariants
from tests.store.conformance.test_open_counts import count_again, some_open_steps
from tests.store.conformance.test_unread_signals import count_unread_again, some_unread_signals
from tests.store.conformance.verbs import StoreHarness
from tests.support.clock import FakeClock
from tests.support.providers import CountingIds

OLD_RUN = """
INSERT INTO namespaces (namespace, created_at) VALUES ('default', 0);
INSERT INTO runs (run_id, namespace, workflow_id, workflow_type, request_id, created_at, status, wait_reason, due_at,
    seq, lease)
VALUES ('019b7ca9-8f2e-7e6a-8000-000000000001', 'default', 'id', 'ship', 'request', 0, 3, 1, 1, 1, 1);
INSERT INTO steps (run_id, step_id, name, kind, status, begun_seq, created_at, wake_at, due_at)
VALUES ('019b7ca9-8f2e-7e6a-8000-000000000001', 'nap', 'nap', 2, 2, 1, 0, 1, 1);
"""

OLD_RUNS = """
INSERT INTO namespaces (namespace, created_at) VALUES ('default', 0);
INSERT INTO runs (run_id, namespace, workflow_id, workflow_type, request_id, created_at, status, ready_at, version)
SELECT gen_random_uuid(), 'default', 'id-' || i, CASE WHEN i % 3 = 0 THEN 'bill' ELSE 'ship' END, 'request-' || i,
    i / 2, 1, 0, CASE WHEN i % 4 > 0 THEN (i % 4)::text END
FROM generate_series(1, 60) AS i;
"""
OLD_LIST = "SELECT run_id FROM runs WHERE {where} ORDER BY created_at DESC, run_id DESC"


async def test_an_empty_database_is_migrated_once_by_all_who_try(postgres_url: str) -> None:
    before = await PostgresMigrator(postgres_url).status()
    assert (before.current, before.pending[0]) == (0, "0001_backbone")
    states = await asyncio.gather(*(PostgresMigrator(postgres_url).migrate() for _ in range(8)))
    assert {(state.current, state.pending) for state in states} == {(before.latest, ())}


async def test_migrating_again_changes_nothing(url: str) -> None:
    assert await PostgresMigrator(url).migrate() == await PostgresMigrator(url).status()


async def test_what_an_older_schema_holds_goes_on(postgres_url: str) -> None:
    first = load_migrations("kagzi.store.postgres")[0]
    connection = await asyncpg.connect(postgres_url)
    try:
        await connection.execute(STATEMENTS["create_schema_table"])
        await connection.execute(first.sql)
        await connection.execute(STATEMENTS["note_migration"], first.version, first.name, first.checksum)
        await connection.execute(OLD_RUN)
    finally:
        await connection.close()
    await PostgresMigrator(postgres_url).migrate()
    store = PostgresStore(postgres_url, rng=SystemRng())
    await store.open()
    try:
        _, effects = await store.fire(2, end_leases=True, limit=10)
        assert effects.pending == (("default", "ship"),)
        [claimed] = (await store.claim([Want("default", "ship", ("1",), "worker", 1)], 5, 2, 3)).runs
        assert [(step.step_id, step.status) for step in claimed.history.steps] == [("nap", StepStatus.COMPLETED)]
    finally:
        await store.close()


async def test_lists_by_type_and_version_are_the_same_after_their_indexes_are_gone(postgres_url: str) -> None:
    """Of version 10, with runs in it: with a version, with another, and with none yet."""
    connection = await asyncpg.connect(postgres_url)
    try:
        await connection.execute(STATEMENTS["create_schema_table"])
        for migration in load_migrations("kagzi.store.postgres")[:10]:
            await connection.execute(migration.sql)
            await connection.execute(
                STATEMENTS["note_migration"], migration.version, migration.name, migration.checksum
            )
        await connection.execute(OLD_RUNS)
        expected = {
            where: [str(row["run_id"]) for row in await connection.fetch(OLD_LIST.format(where=where))]
            for where in ("workflow_type = 'ship'", "version = '2'", "workflow_type = 'ship' AND version = '2'")
        }
    finally:
        await connection.close()
    await PostgresMigrator(postgres_url).migrate()
    store = PostgresStore(postgres_url, rng=SystemRng())
    await store.open()
    try:
        for where, run_ids in zip(
            (
                RunFilter(workflow_types=("ship",)),
                RunFilter(version="2"),
                RunFilter(workflow_types=("ship",), version="2"),
            ),
            expected.values(),
            strict=True,
        ):
            rows = await store.list_runs("default", where, None, 100)
            assert [row.run.run_id for row in rows.rows] == run_ids
            assert await store.count_runs("default", where, 100) == len(run_ids) > 5
    finally:
        await store.close()


async def test_minutes_that_were_noted_stay_and_are_summed_up_to_hours(postgres_url: str) -> None:
    hour, end = 3_600_000_000 * 480_000, 3_600_000_000 * 480_001
    connection = await asyncpg.connect(postgres_url)
    try:
        await connection.execute(STATEMENTS["create_schema_table"])
        for migration in takewhile(lambda each: each.name != "hourly_stats", load_migrations("kagzi.store.postgres")):
            await connection.execute(migration.sql)
            await connection.execute(
                STATEMENTS["note_migration"], migration.version, migration.name, migration.checksum
            )
        await connection.execute(
            "INSERT INTO run_stats SELECT 'default', 'ship', m, 2, 1, 1, 0, 5, 9 FROM unnest($1::bigint[]) AS m",
            [hour, hour + 60_000_000, end],
        )
        await connection.execute("INSERT INTO rolled_up VALUES (1, $1)", end + 120_000_000)
    finally:
        await connection.close()
    await PostgresMigrator(postgres_url).migrate()
    store = PostgresStore(postgres_url, rng=SystemRng())
    await store.open()
    try:
        minutes = (await store.stats("default", "", hour, end + 3_600_000_000, 60_000_000, 10)).buckets
        hours = (await store.stats("default", "", hour, end + 3_600_000_000, 3_600_000_000, 10)).buckets
    finally:
        await store.close()
    assert [(row.minute, row.started, row.p50_us) for row in minutes] == [
        (hour, 2, 5),
        (hour + 60_000_000, 2, 5),
        (end, 2, 5),
    ]
    assert [(row.minute, row.started, row.failed, row.p50_us) for row in hours] == [(hour, 4, 2, None), (end, 2, 1, 5)]


async def test_open_waits_and_retries_are_counted_once_they_are_columns(
    url: str, connection: asyncpg.Connection
) -> None:
    """What runs of an older schema have open: the migration says it of them."""
    store = PostgresStore(url, rng=SystemRng())
    await store.open()
    try:
        harness = StoreHarness(store, FakeClock(), CountingIds())
        await some_open_steps(harness)
        await connection.execute("UPDATE runs SET awaits_signal = 0, retrying_steps = 0")
        await connection.execute(count_again("kagzi.store.postgres"))
        counted = {(run.awaits_signal, run.retrying_steps) for run in await check_invariants(store)}
        assert counted == {(0, 0), (2, 0), (1, 1)}
    finally:
        await store.close()


async def test_unread_signals_are_counted_once_they_are_a_column(url: str, connection: asyncpg.Connection) -> None:
    store = PostgresStore(url, rng=SystemRng())
    await store.open()
    try:
        await some_unread_signals(StoreHarness(store, FakeClock(), CountingIds()))
        await connection.execute("UPDATE runs SET unread_signals = 0")
        await connection.execute(count_unread_again("kagzi.store.postgres"))
        assert sorted(run.unread_signals for run in await check_invariants(store)) == [0, 2, 2]
    finally:
        await store.close()


async def test_a_store_does_not_open_on_an_empty_database(postgres_url: str) -> None:
    store = PostgresStore(postgres_url, rng=SystemRng())
    with pytest.raises(SchemaMismatch, match="kagzi db migrate"):
        await store.open()
    await store.close()


async def test_a_newer_schema_is_refused(url: str, connection: asyncpg.Connection) -> None:
    await connection.execute("INSERT INTO schema_migrations (version, name, checksum) VALUES (99, 'later', 'x')")
    for refused in (PostgresMigrator(url).status(), PostgresMigrator(url).migrate()):
        with pytest.raises(SchemaMismatch, match="newer"):
            await refused


async def test_an_edited_migration_is_noticed(url: str, connection: asyncpg.Connection) -> None:
    await connection.execute("UPDATE schema_migrations SET checksum = 'other' WHERE version = 1")
    with pytest.raises(SchemaMismatch, match=r"0001_backbone.*checksum"):
        await PostgresMigrator(url).migrate()


async def test_an_unreachable_database_is_unavailable_and_no_secret_is_disclosed() -> None:
    url = "postgresql://kagzi:s3cret@127.0.0.1:1/kagzi"
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1") as caught:
        await PostgresMigrator(url).status()
    assert "s3cret" not in str(caught.value)

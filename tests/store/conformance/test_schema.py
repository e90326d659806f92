"""A database of another schema is refused in words, and nothing is left open by the refusal."""

from pathlib import Path

import pytest

from kagzi.core.errors import SchemaMismatch
from kagzi.store.protocol import Migrator, Store
from tests.support.polling import until
from tests.support.providers import LoadedRng

from .places import connected


def sqlite_at(path: Path) -> tuple[Store, Migrator]:
    from kagzi.store.sqlite import SqliteMigrator, SqliteStore

    return SqliteStore(str(path), rng=LoadedRng()), SqliteMigrator(str(path))


def postgres_at(url: str) -> tuple[Store, Migrator]:
    from kagzi.store.postgres import PostgresMigrator, PostgresStore

    return PostgresStore(url, rng=LoadedRng()), PostgresMigrator(url)


@pytest.fixture(params=["sqlite-file", "postgres"])
def unmigrated(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Store, Migrator]:
    if request.param == "sqlite-file":
        return sqlite_at(tmp_path / "kagzi.db")
    return postgres_at(request.getfixturevalue("postgres_url"))


async def test_an_empty_database_is_refused_until_it_is_migrated(unmigrated: tuple[Store, Migrator]) -> None:
    store, migrator = unmigrated
    with pytest.raises(SchemaMismatch, match=r"kagzi db migrate"):
        await store.open()
    await store.close()

    before = await migrator.status()
    assert before.current == 0
    assert before.pending
    after = await migrator.migrate()
    assert (after.current, after.pending) == (after.latest, ())
    assert await migrator.migrate() == after
    await store.open()
    try:
        assert (await store.poll((), 0)).pending == ()
    finally:
        await store.close()


async def test_an_edited_migration_is_noticed_and_leaves_nothing_open(postgres_url: str) -> None:
    store, migrator = postgres_at(postgres_url)
    await migrator.migrate()
    async with connected(postgres_url) as connection:
        await connection.execute("update schema_migrations set checksum = 'edited'")
    with pytest.raises(SchemaMismatch):
        await migrator.status()
    try:
        with pytest.raises(SchemaMismatch):
            await store.open()
        await none_left_open(postgres_url)
    finally:
        await store.close()


async def none_left_open(url: str) -> None:
    """No connections to the database other than this one. A closed one takes a moment to be gone."""
    async with connected(url) as connection:

        async def none_left() -> bool:
            return not await connection.fetchval(
                "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
            )

        await until(none_left)

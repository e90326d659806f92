"""The file: how it comes to be, which schema it has, and what is said when it is not usable."""

import asyncio
import sqlite3
import stat
from pathlib import Path

import pytest

from kagzi.core.errors import InvalidArgument, SchemaMismatch, StatementFailed, Unavailable
from kagzi.store.sql_files import load_migrations
from kagzi.store.sqlite import SqliteMigrator, SqliteStore
from kagzi.store.sqlite.connection import connection
from kagzi.store.sqlite.statements import PACKAGE
from tests.support.providers import LoadedRng

NAMES = tuple(f"{migration.version:04d}_{migration.name}" for migration in load_migrations(PACKAGE))
LATEST = len(NAMES)


def store_at(path: Path | str) -> SqliteStore:
    return SqliteStore(str(path), rng=LoadedRng())


def modes(folder: Path) -> dict[str, int]:
    return {file.name: stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()}


async def test_a_file_is_made_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "kagzi.db"
    status = await SqliteMigrator(str(path)).migrate()
    assert (status.current, status.latest, status.pending) == (LATEST, LATEST, ())
    assert modes(tmp_path) == {"kagzi.db": 0o600}
    store = store_at(path)
    await store.open()
    assert set(modes(tmp_path).values()) == {0o600}, "the log and its index too"
    await store.close()


async def test_a_file_that_others_could_read_is_its_owners_only_once_it_was_opened(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """With its companions, which are there while somebody else has it open, or was killed."""
    path = tmp_path / "kagzi.db"
    await SqliteMigrator(str(path)).migrate()
    other = sqlite3.connect(path)
    other.execute("BEGIN IMMEDIATE")
    other.execute("CREATE TABLE something (number INTEGER)")
    other.commit()
    assert set(modes(tmp_path)) == {"kagzi.db", "kagzi.db-wal", "kagzi.db-shm"}
    for name in modes(tmp_path):
        (tmp_path / name).chmod(0o644)
    store = store_at(path)
    await store.open()
    assert set(modes(tmp_path).values()) == {0o600}
    assert caplog.text.count("was readable by other users (mode 0644)") == 3
    await store.close()
    other.close()
    caplog.clear()
    await store.open()
    await store.close()
    assert caplog.text == ""


async def test_migrating_closes_a_file_to_others(tmp_path: Path) -> None:
    path = tmp_path / "kagzi.db"
    path.touch(0o666)
    path.chmod(0o666)
    await SqliteMigrator(str(path)).migrate()
    assert modes(tmp_path) == {"kagzi.db": 0o600}


async def test_a_file_that_stays_open_to_others_is_complained_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "kagzi.db"
    await SqliteMigrator(str(path)).migrate()
    path.chmod(0o644)
    monkeypatch.setattr("kagzi.store.private_files.os.geteuid", lambda: path.stat().st_uid + 1)
    store = store_at(path)
    await store.open()
    await store.close()
    assert modes(tmp_path) == {"kagzi.db": 0o644}
    (logged,) = {record.getMessage() for record in caplog.records if record.levelname == "ERROR"}
    assert f"{path} is OPEN TO OTHER USERS" in logged
    assert f"chmod go= {path}" in logged


async def test_status_makes_no_file(tmp_path: Path) -> None:
    status = await SqliteMigrator(str(tmp_path / "kagzi.db")).status()
    assert (status.current, status.latest, status.pending) == (0, LATEST, NAMES)
    assert modes(tmp_path) == {}


async def test_migrating_again_and_at_once_changes_nothing(tmp_path: Path) -> None:
    path = str(tmp_path / "kagzi.db")
    statuses = await asyncio.gather(*(SqliteMigrator(path).migrate() for _ in range(4)))
    assert {status.current for status in statuses} == {LATEST}
    assert (await SqliteMigrator(path).migrate()).current == LATEST


async def test_a_store_opens_only_at_the_latest_schema(tmp_path: Path) -> None:
    path = tmp_path / "kagzi.db"
    with pytest.raises(SchemaMismatch, match="kagzi db migrate"):
        await store_at(path).open()
    assert not path.exists()
    path.touch()
    with pytest.raises(SchemaMismatch, match=rf"version 0; this code needs {LATEST}\. Run `kagzi db migrate`"):
        await store_at(path).open()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("UPDATE schema_migrations SET checksum = 'other'", "differs from the one that was applied"),
        (
            f"INSERT INTO schema_migrations VALUES ({LATEST + 1}, 'future', 'x')",
            f"newer than {LATEST}, which this code knows",
        ),
    ],
)
async def test_a_schema_of_another_kind_is_refused(path: str, change: str, says: str) -> None:
    database = sqlite3.connect(path)
    database.execute(change)
    database.commit()
    database.close()
    for act in (SqliteMigrator(path).status, SqliteMigrator(path).migrate, store_at(path).open):
        with pytest.raises(SchemaMismatch, match=says):
            await act()


async def test_a_failed_migration_leaves_nothing_behind(tmp_path: Path) -> None:
    path = str(tmp_path / "kagzi.db")
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE workers (in_the_way)")
    database.close()
    with pytest.raises(StatementFailed, match="workers"):  # no outage: waiting would not mend it
        await SqliteMigrator(path).migrate()
    database = sqlite3.connect(path)
    assert database.execute("SELECT name FROM sqlite_master").fetchall() == [("workers",)]
    database.close()


async def test_a_path_that_cannot_be_a_store_is_explained(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("These are notes, and not a little of them: " * 100)
    cases = [
        (tmp_path / "absent" / "kagzi.db", "does not exist. Create it first"),
        (tmp_path, "is a directory. Name a file in it"),
        (text, "is not an SQLite database"),
    ]
    for path, says in cases:
        for act in (SqliteMigrator(str(path)).migrate, SqliteMigrator(str(path)).status, store_at(path).open):
            with pytest.raises(InvalidArgument, match=says) as caught:
                await act()
            assert caught.value.field == "path"
    assert text.read_text().startswith("These are notes")


def test_a_file_of_somebody_else_is_explained(tmp_path: Path) -> None:
    error = connection.path_error(str(tmp_path / "kagzi.db"), PermissionError("denied"))
    assert isinstance(error, InvalidArgument)
    assert "is not writable by this user" in error.message


async def test_an_old_library_is_named(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 31, 1))
    with pytest.raises(Unavailable, match=r"needs 3\.37\.0 or newer"):
        await store_at(path).open()


async def test_memory_needs_no_migration_and_is_each_stores_own() -> None:
    one, other = store_at(":memory:"), store_at(":memory:")
    await one.open()
    await other.open()
    assert (await one.poll([], 0)).pending == ()
    assert (await other.poll([], 0)).pending == ()
    await one.close()
    await other.close()

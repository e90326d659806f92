"""Migrates a file to the schema that this code expects."""

import asyncio
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

from ...core.errors import SchemaMismatch
from ..private_files import database_files, make_private
from ..protocol import SchemaStatus
from ..sql_files import AppliedMigration, Migration, load_migrations, schema_status
from .connection.connection import MEMORY, Database, check_library, connect, create_file, path_error
from .connection.failures import driver_error
from .statements import PACKAGE

LAST_VERSION = "-- version: "
"""In schema.sql, the prefix of the number of its last migration."""

_SCHEMA = Path(__file__).with_name("schema.sql")
_REMEMBERED = """CREATE TABLE IF NOT EXISTS schema_migrations (
    version  INTEGER NOT NULL PRIMARY KEY,
    name     TEXT NOT NULL,
    checksum TEXT NOT NULL
) STRICT"""


class SqliteMigrator:
    """Migrates a file to the latest schema, and creates it if it does not exist."""

    def __init__(self, path: str) -> None:
        self._path = path

    async def status(self) -> SchemaStatus:
        """The state of the file; it is not created. Raises SchemaMismatch for a newer schema or a changed migration."""
        return await asyncio.to_thread(self._status)

    async def migrate(self) -> SchemaStatus:
        """Apply all missing migrations or none. Safe to run from several processes at once."""
        return await asyncio.to_thread(self._migrate)

    def _status(self) -> SchemaStatus:
        check_library()
        if not file_exists(self._path):
            return status_of(self._path)
        database = connect(self._path)
        try:
            return read_status(database, self._path)
        finally:
            database.close()

    def _migrate(self) -> SchemaStatus:
        check_library()
        if self._path != MEMORY:
            create_file(self._path)
            make_private(database_files(Path(self._path)))
        database = connect(self._path)
        try:
            apply_migrations(database, self._path)
            return read_status(database, self._path)
        except sqlite3.Error as error:
            raise driver_error(error) from error
        finally:
            database.close()


def file_exists(path: str) -> bool:
    """Whether the file exists. A missing directory is an error, not an empty database."""
    if path == MEMORY:
        return False
    if not Path(path).absolute().parent.is_dir() or Path(path).is_dir():
        raise path_error(path, FileNotFoundError(path))
    return Path(path).exists()


def check_schema(database: Database, path: str) -> None:
    """Raises SchemaMismatch unless the schema is exactly the one that this code expects."""
    status = read_status(database, path)
    if status.current != status.latest:
        raise behind(path, status)


def behind(path: str, status: SchemaStatus) -> SchemaMismatch:
    return SchemaMismatch(
        f"{path} has schema version {status.current}; this code needs {status.latest}. Run `kagzi db migrate`."
    )


def read_status(database: Database, path: str) -> SchemaStatus:
    try:
        tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name = 'schema_migrations'")
        applied = (
            database.execute("SELECT version, name, checksum FROM schema_migrations ORDER BY version") if tables else []
        )
    except sqlite3.Error as error:
        raise path_error(path, error) from error
    return status_of(path, [AppliedMigration(*row) for row in applied])


def status_of(path: str, applied: Sequence[AppliedMigration] = ()) -> SchemaStatus:
    return schema_status(path, load_migrations(PACKAGE), applied)


def apply_migrations(database: Database, path: str, *, quick: bool = True) -> None:
    """Applies what is missing, in one transaction that also serves as lock. `quick=False`: one migration after the
    other even in an empty database, which otherwise gets their combined result (schema.sql)."""
    database.execute("BEGIN EXCLUSIVE")
    try:
        is_empty = not database.execute("SELECT 1 FROM sqlite_master LIMIT 1")
        database.execute(_REMEMBERED)
        migrations = load_migrations(PACKAGE)
        current = _create(database, migrations) if is_empty and quick else read_status(database, path).current
        for migration in migrations[current:]:
            for statement in _split(migration.sql):
                database.execute(statement)
            database.remember_migration(migration.version, migration.name, migration.checksum)
        database.execute("COMMIT")
    except BaseException:
        database.rollback()
        raise


def _create(database: Database, migrations: Sequence[Migration]) -> int:
    """Create the combined result of the migrations up to some version; returns that version."""
    text = _SCHEMA.read_text("utf-8")
    version = int(text.partition(LAST_VERSION)[2].partition("\n")[0])
    for statement in _split(text):
        database.execute(statement)
    for migration in migrations[:version]:
        database.remember_migration(migration.version, migration.name, migration.checksum)
    return version


def _split(script: str) -> Iterator[str]:
    """The statements of a script, one by one: executescript would commit first."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""

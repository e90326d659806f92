"""A connection and the thread that owns it. Calls are queued to the thread and return to their event loop, one hop each
way; a caller may borrow the connection of an idle thread instead."""

import asyncio
import contextlib
import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import Any, ParamSpec, TypeVar

from ....core import limits
from ....core.errors import InvalidArgument, KagziError, Unavailable
from ...pages import ROW_BYTES
from ...private_files import PRIVATE
from ..statements import SQL, SQL_MANY
from .failures import driver_error

Answer = TypeVar("Answer")
Arguments = ParamSpec("Arguments")
Values = Sequence[Any] | dict[str, Any]
Row = tuple[Any, ...]
Record = dict[str, Any]
"""A row by column name."""

MEMORY = ":memory:"
OLDEST_SQLITE = (3, 37, 0)  # STRICT tables; UPDATE FROM and RETURNING are older
BUSY_TIMEOUT_MS = 5_000

WRITER_CACHE_KIB = 16_384  # four times as much made no difference to 100,000 starts, even with random ids
READER_CACHE_KIB = 16_384
SCAN_CACHE_KIB = 8_192

_PRAGMAS = (
    f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}",
    "PRAGMA synchronous = FULL",  # a commit is on disk when it returns
    "PRAGMA temp_store = MEMORY",
    "PRAGMA wal_autocheckpoint = 32000",  # pages; checkpoints.py does it earlier and outside of commits
    "PRAGMA journal_size_limit = 67108864",
)


class Database:
    """A connection that runs named statements and counts them. Used by one thread at a time."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._waits_for_locks = True
        self._columns: dict[str, tuple[str, ...]] = {}  # by statement
        self.statements = 0
        self.transactions = 0
        self.changed_rows = 0

    def run(self, name: str, values: Values = ()) -> int:
        """Run a statement that changes rows; returns how many."""
        self.statements += 1
        return self._connection.execute(SQL[name], values).rowcount

    def rows(self, name: str, values: Values = ()) -> list[Row]:
        self.statements += 1
        return self._connection.execute(SQL[name], values).fetchall()

    def row(self, name: str, values: Values = ()) -> Row | None:
        self.statements += 1
        cursor = self._connection.execute(SQL[name], values)
        row: Row | None = cursor.fetchone()
        cursor.close()
        return row

    def records(self, name: str, values: Values = ()) -> list[Record]:
        """Rows by column name."""
        cursor = self.cursor(name, values)
        columns = self.columns(name, cursor)
        return [dict(zip(columns, row, strict=True)) for row in cursor]

    def record(self, name: str, values: Values = ()) -> Record | None:
        records = self.records(name, values)
        return records[0] if records else None

    def page(self, name: str, values: Values, limit: int) -> tuple[list[Record], bool]:
        """At most `limit` rows and about as many bytes as a page may have; and whether there are more. Reads only one
        row beyond the page; the statement must ask for `limit` + 1 rows."""
        cursor = self.cursor(name, values)
        columns = self.columns(name, cursor)
        rows: list[Record] = []
        size = 0
        try:
            for row in cursor:
                size += _bytes_of(row)
                if len(rows) == limit or (rows and size > limits.PAGE_BYTES):
                    return rows, True
                rows.append(dict(zip(columns, row, strict=True)))
        finally:
            cursor.close()
        return rows, False

    def cursor(self, name: str, values: Values) -> sqlite3.Cursor:
        """Rows one by one; close it when done."""
        self.statements += 1
        return self._connection.execute(SQL[name], values)

    def columns(self, name: str, cursor: sqlite3.Cursor) -> tuple[str, ...]:
        """The columns of a statement being read, cached. Empty if it returns no rows."""
        columns = self._columns.get(name)
        if columns is None:
            columns = self._columns[name] = tuple(column[0] for column in cursor.description or ())
        return columns

    def run_many(self, name: str, rows: Sequence[Sequence[Any]]) -> int:
        """Run a statement for many rows, as few times as possible; returns how many rows changed."""
        if len(rows) == 1:
            self.statements += 1
            return self._connection.execute(SQL_MANY[name][-1][1], rows[0]).rowcount
        changed = start = 0
        for size, sql in SQL_MANY[name]:
            while len(rows) - start >= size:
                flat = [value for row in rows[start : start + size] for value in row]
                self.statements += 1
                changed += self._connection.execute(sql, flat).rowcount
                start += size
        return changed

    def begin(self) -> None:
        self.rollback()  # of a transaction whose own rollback failed
        self._connection.execute("BEGIN IMMEDIATE")
        self.changed_rows = self._connection.total_changes

    def wait_for_locks(self, wait: bool) -> None:
        """Whether to wait for a lock of another process from now on, or to raise Contended at once."""
        if wait is not self._waits_for_locks:
            self._connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS if wait else 0}")
            self._waits_for_locks = wait

    def begin_snapshot(self) -> None:
        self._connection.execute("BEGIN")

    def commit(self) -> None:
        self._connection.execute("COMMIT")
        changed_rows = self._connection.total_changes
        self.transactions += changed_rows != self.changed_rows
        self.changed_rows = changed_rows

    def rollback(self) -> None:
        """Roll back; does nothing if SQLite has done so itself (a full disk)."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def savepoint(self) -> None:
        self._connection.execute("SAVEPOINT one_command")

    def release(self) -> None:
        self._connection.execute("RELEASE one_command")

    def rollback_to_savepoint(self) -> None:
        self._connection.execute("ROLLBACK TO one_command")
        self._connection.execute("RELEASE one_command")

    def execute(self, sql: str) -> list[Row]:
        """Run a statement without a name: pragmas and migrations."""
        return self._connection.execute(sql).fetchall()

    def remember_migration(self, version: int, name: str, checksum: str) -> None:
        self._connection.execute("INSERT INTO schema_migrations VALUES (?, ?, ?)", (version, name, checksum))

    def checkpoint(self) -> int:
        """Checkpoint as much of the WAL as possible without waiting; returns how many pages the WAL has."""
        [(_busy, pages, _done)] = self.execute("PRAGMA wal_checkpoint(PASSIVE)")
        return int(pages)

    def checkpoint_all(self) -> bool:
        """Checkpoint the whole WAL, waiting for readers. False: a reader took too long."""
        self.wait_for_locks(True)
        [(busy, _pages, _done)] = self.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return not busy

    def copy_into(self, path: str) -> None:
        """Copy the database into one file. `path` names an empty one."""
        self._connection.execute("VACUUM INTO ?", (path,))

    def copy_to(self, other: "Database") -> None:
        """Copy the database into an empty one."""
        self._connection.backup(other._connection)  # noqa: SLF001  the same class

    def interrupt(self) -> None:
        """From any thread: make the current statement fail now."""
        self._connection.interrupt()

    def close(self) -> None:
        self._connection.close()

    def checkpoint_and_close(self) -> None:
        with contextlib.suppress(sqlite3.Error):  # the rest is read from the WAL next time
            self.wait_for_locks(True)
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._connection.close()


def rows_within(rows: Sequence[Record], limit: int) -> int:
    """How many of the first rows fit in a page."""
    size = 0
    for place, row in enumerate(rows[:limit]):
        size += _bytes_of(row.values())
        if place and size > limits.PAGE_BYTES:
            return place
    return min(len(rows), limit)


def _bytes_of(row: Iterable[Any]) -> int:
    return ROW_BYTES + sum(len(value) for value in row if value.__class__ is bytes or value.__class__ is str)


class DatabaseThread:
    """A thread that owns a Database and runs one call at a time, in order of arrival. `calls` counts them, without
    those that ran inline."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._queue: SimpleQueue[Callable[[], Callable[[], None] | None] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._closed = False
        self.calls = 0
        self._done = 0  # completed calls; written by the thread alone
        self._using = threading.Lock()  # held while a thread uses the database

    def start(self) -> None:
        self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
        self._thread.start()

    async def call(self, act: Callable[Arguments, Answer], *args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
        """Run `act` in the thread. Errors of the driver become Unavailable or StatementFailed. Once queued it runs,
        even if the caller is cancelled meanwhile."""
        self._require_open()
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Answer] = loop.create_future()

        def work() -> Callable[[], None]:
            try:
                result = act(*args, **kwargs)
            except BaseException as error:  # noqa: BLE001  any error belongs to the caller, not to this thread
                failure = failure_of(error)
                return lambda: _report(loop, _fail, answer, failure)
            return lambda: _report(loop, _succeed, answer, result)

        self.calls += 1
        self._queue.put(work)
        return await answer

    def borrow(self) -> bool:
        """Lend the database to the caller's thread, for one call of `inline`. False: it is in use, or calls are
        queued."""
        self._require_open()
        return self.calls == self._done and self._using.acquire(blocking=False)

    def inline(self, act: Callable[Arguments, Answer], *args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
        """Run `act` in this thread, after `borrow`. Errors are those of `call`."""
        try:
            return act(*args, **kwargs)
        except (sqlite3.Error, UnicodeEncodeError) as error:
            raise failure_of(error) from error
        finally:
            self._using.release()

    @property
    def busy(self) -> bool:
        return self.calls != self._done or self._using.locked()

    def _require_open(self) -> None:
        if self._closed or self._thread is None:
            raise Unavailable("the SQLite store is not open")

    async def close(self, last: Callable[[], None] | None = None) -> None:
        """Finish the queued calls, run `last`, end the thread. Idempotent."""
        if self._thread is None:
            return
        if not self._closed:
            self._closed = True
            if last is not None:
                self._queue.put(last)
            self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    def _work(self) -> None:
        while (work := self._queue.get()) is not None:
            with self._using:
                report = work()
                self._done += 1
            if report is not None:
                report()  # the thread is idle now: the next call may run inline


def failure_of(error: BaseException) -> BaseException:
    """The exception that the caller gets."""
    if isinstance(error, sqlite3.Error):
        return driver_error(error)
    if isinstance(error, UnicodeEncodeError):
        refused = InvalidArgument("the request contains a string that cannot be stored: it is not valid Unicode.")
        refused.__cause__ = error
        return refused
    return error


def _report(
    loop: asyncio.AbstractEventLoop,
    how: Callable[[asyncio.Future[Any], Any], None],
    answer: asyncio.Future[Any],
    what: Any,
) -> None:
    if not loop.is_closed():
        try:
            loop.call_soon_threadsafe(how, answer, what)
        except RuntimeError:  # the loop was closed just now: nobody waits any more
            return


def _succeed(answer: asyncio.Future[Any], result: Any) -> None:
    if not answer.done():
        answer.set_result(result)


def _fail(answer: asyncio.Future[Any], error: BaseException) -> None:
    if not answer.done():
        answer.set_exception(error)


def check_library() -> None:
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        oldest = ".".join(map(str, OLDEST_SQLITE))
        raise Unavailable(
            f"SQLite {sqlite3.sqlite_version} is too old: Kagzi needs {oldest} or newer. "
            "Use a Python that is built with it, or PostgreSQL."
        )


def connect(path: str, cache_kib: int = WRITER_CACHE_KIB) -> Database:
    """Open an existing file, or memory, for one thread at a time. `cache_kib` counts towards the memory of the
    process."""
    try:
        connection = sqlite3.connect(path, isolation_level=None, cached_statements=512, check_same_thread=False)
        database = Database(connection)
        for pragma in (*_PRAGMAS, f"PRAGMA cache_size = -{cache_kib}"):
            database.execute(pragma)
        if path != MEMORY:
            database.execute("PRAGMA journal_mode = WAL")
    except sqlite3.Error as error:
        raise path_error(path, error) from error
    return database


def create_file(path: str) -> None:
    """Create an empty file that only its owner may read; leave an existing one alone."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE))
    except FileExistsError:
        return
    except OSError as error:
        raise path_error(path, error) from error


def path_error(path: str, error: Exception) -> KagziError:
    """Explains what is wrong with a path."""
    folder = Path(path).absolute().parent
    if not folder.is_dir():
        return InvalidArgument(f"{path}: the directory {folder} does not exist. Create it first.", field="path")
    if Path(path).is_dir():
        return InvalidArgument(f"{path} is a directory. Name a file in it.", field="path")
    if "not a database" in str(error):
        return InvalidArgument(f"{path} is not an SQLite database. Name another file.", field="path")
    if isinstance(error, PermissionError) or not os.access(folder, os.W_OK) or not os.access(path, os.R_OK | os.W_OK):
        return InvalidArgument(f"{path} is not writable by this user ({error}). Change its permissions.", field="path")
    return Unavailable(f"{path} cannot be opened: {error}")

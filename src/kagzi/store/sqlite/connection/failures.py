"""Classifies errors of SQLite by cause: the one place that decides what counts as an outage.

See docs/adr/0014.
"""

import sqlite3
from enum import Enum

from ....core.errors import Contended, KagziError, StatementFailed, Unavailable


class Failure(Enum):
    LOST = "lost"
    """The file cannot be used now: it may be repaired, or the disk may have space again."""
    CONTENDED = "contended"
    """Another process has locked the file: nothing was changed, retry."""
    FAULT = "fault"
    """The statement or its parameters are wrong."""


_BY_CODE = {
    sqlite3.SQLITE_PERM: Failure.LOST,
    sqlite3.SQLITE_BUSY: Failure.CONTENDED,
    sqlite3.SQLITE_LOCKED: Failure.CONTENDED,
    sqlite3.SQLITE_NOMEM: Failure.LOST,
    sqlite3.SQLITE_READONLY: Failure.LOST,
    sqlite3.SQLITE_INTERRUPT: Failure.LOST,
    sqlite3.SQLITE_IOERR: Failure.LOST,
    sqlite3.SQLITE_CORRUPT: Failure.LOST,
    sqlite3.SQLITE_FULL: Failure.LOST,
    sqlite3.SQLITE_CANTOPEN: Failure.LOST,
    sqlite3.SQLITE_PROTOCOL: Failure.LOST,  # a race for the locks of the WAL
    sqlite3.SQLITE_NOLFS: Failure.LOST,
    sqlite3.SQLITE_NOTADB: Failure.LOST,
    sqlite3.SQLITE_INTERNAL: Failure.LOST,
}


def failure_of_code(code: int) -> Failure:
    """Classifies a result code of SQLite; extended codes count as their primary code."""
    return _BY_CODE.get(code & 0xFF, Failure.FAULT)


def failure_of(error: sqlite3.Error) -> Failure:
    """An error of the driver itself, without a code, is the caller's fault, unless it is an OperationalError."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    if code is not None:
        return failure_of_code(code)
    return Failure.LOST if isinstance(error, sqlite3.OperationalError) else Failure.FAULT


def driver_error(error: sqlite3.Error) -> KagziError:
    """The exception for a driver error. SQLite's message stays in the log, because it quotes statements and files."""
    match failure_of(error):
        case Failure.LOST:
            failure: KagziError = Unavailable(f"the SQLite store cannot be used: {describe(error)}")
        case Failure.CONTENDED:
            failure = Contended(f"the SQLite store is locked by another process: {describe(error)}")
        case Failure.FAULT:
            failure = StatementFailed(f"the SQLite store refused a statement: {describe(error)}")
    failure.__cause__ = error
    return failure


def describe(error: Exception) -> str:
    """For the log."""
    name = getattr(error, "sqlite_errorname", None)
    return f"{type(error).__name__} ({name}): {error}" if name else f"{type(error).__name__}: {error}"

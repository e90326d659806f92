"""Classifies errors of PostgreSQL and its driver by cause: the one place that decides what counts as an outage.

See docs/adr/0014.
"""

from enum import Enum

import asyncpg

from ....core.errors import InvalidArgument, KagziError, StatementFailed


class Failure(Enum):
    LOST = "lost"
    """The server is shutting down, full, read-only or too slow: reconnect, and wait."""
    BROKEN = "broken"
    """The server failed internally on this statement. Others may work: reconnect, and bisect."""
    CONTENDED = "contended"
    """Another transaction holds a lock: nothing was changed, retry. The connection is good."""
    FAULT = "fault"
    """The statement or its parameters are wrong."""


LOSSES = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # a call on a connection that is just breaking
)
"""What the driver itself raises when a connection is lost. Errors of the server are a PostgresError with a SQLSTATE."""

CONTENTION = (
    asyncpg.LockNotAvailableError,
    asyncpg.ObjectInUseError,
    asyncpg.TransactionRollbackError,  # deadlocks and serialization
)

_BY_CLASS = {
    "08": Failure.LOST,  # connections
    "28": Failure.LOST,  # authorization: a password is being changed, a role is locked for a while
    "40": Failure.CONTENDED,  # transaction rollback: deadlocks, serialization
    "53": Failure.LOST,  # insufficient resources: disk, memory, connections
    "57": Failure.LOST,  # operator intervention: shutdown, crash of another session, statement_timeout
    "58": Failure.BROKEN,  # system errors: a file that cannot be read
    "F0": Failure.LOST,  # configuration file
    "XX": Failure.BROKEN,  # internal errors, damaged data
}
_BY_STATE = {
    "25006": Failure.LOST,  # read-only: a standby, or a primary that was demoted
    "25P03": Failure.LOST,  # idle_in_transaction_session_timeout
    "25P04": Failure.LOST,  # transaction_timeout
    "26000": Failure.LOST,  # a prepared statement is gone: the pooler has switched to another session
    "3D000": Failure.LOST,  # no such database: it may be being restored
    "40003": Failure.LOST,  # the outcome is unknown
    "55006": Failure.CONTENDED,  # object in use
    "55P03": Failure.CONTENDED,  # lock_timeout
}


def failure_of_state(sqlstate: str) -> Failure:
    return _BY_STATE.get(sqlstate) or _BY_CLASS.get(sqlstate[:2], Failure.FAULT)


def failure_of(error: BaseException) -> Failure:
    """Classifies an error of the driver. A value that it cannot encode is not an outage."""
    if isinstance(error, asyncpg.InvalidCachedStatementError):
        return Failure.LOST  # a migration changed what a prepared statement returns: prepare it again
    if isinstance(error, asyncpg.PostgresError):
        return failure_of_state(error.sqlstate or "")
    return Failure.LOST if isinstance(error, LOSSES) and not isinstance(error, ValueError) else Failure.FAULT


def fault(error: BaseException) -> KagziError:
    """The exception for a FAULT. PostgreSQL's message stays in the log, because it quotes statements and values."""
    if isinstance(error, (ValueError, asyncpg.DataError)):
        return InvalidArgument(
            "the request contains a string or a number that PostgreSQL cannot store. Change or shorten it."
        )
    return StatementFailed(f"PostgreSQL refused a statement: {describe(error)}")


def describe(error: BaseException) -> str:
    """For the log."""
    state = getattr(error, "sqlstate", None)
    return f"{type(error).__name__} ({state}): {error}" if state else f"{type(error).__name__}: {error}"

"""Classifies what PostgreSQL and its driver raise, by whose fault it is: the one place that decides what is an outage.

See docs/adr/0014.
"""

from enum import Enum

import asyncpg

from ....core.errors import InvalidArgument, KagziError, StatementFailed


class Failure(Enum):
    LOST = "lost"
    """The server goes away, is full, is read-only or was too slow: connect anew, and wait."""
    BROKEN = "broken"
    """The server failed inside on this statement. Other statements may work: connect anew, and find out which."""
    CONTENDED = "contended"
    """Another transaction has a lock: nothing was changed, try again. The connection is sound."""
    FAULT = "fault"
    """The statement, or what was sent with it."""


LOSSES = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # a call on a connection that breaks at this moment
)
"""What the driver raises by itself when a connection is gone. What the server says is a PostgresError, and has a
SQLSTATE."""

CONTENTION = (
    asyncpg.LockNotAvailableError,
    asyncpg.ObjectInUseError,
    asyncpg.TransactionRollbackError,  # deadlocks and serialization
)

_BY_CLASS = {
    "08": Failure.LOST,  # connections
    "28": Failure.LOST,  # authorization: passwords are changed, roles are locked for a while
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
    "26000": Failure.LOST,  # a prepared statement that is gone: the session behind a pooler is another one
    "3D000": Failure.LOST,  # no such database: it is being restored
    "40003": Failure.LOST,  # whether it was done is not known
    "55006": Failure.CONTENDED,  # object in use
    "55P03": Failure.CONTENDED,  # lock_timeout
}


def failure_of_state(sqlstate: str) -> Failure:
    return _BY_STATE.get(sqlstate) or _BY_CLASS.get(sqlstate[:2], Failure.FAULT)


def failure_of(error: BaseException) -> Failure:
    """What the driver raised. A value that it cannot encode is nobody's outage."""
    if isinstance(error, asyncpg.InvalidCachedStatementError):
        return Failure.LOST  # a migration changed what a prepared statement returns: prepare it anew
    if isinstance(error, asyncpg.PostgresError):
        return failure_of_state(error.sqlstate or "")
    return Failure.LOST if isinstance(error, LOSSES) and not isinstance(error, ValueError) else Failure.FAULT


def fault(error: BaseException) -> KagziError:
    """A FAULT as an exception. PostgreSQL's own words stay in the log: they quote statements and values."""
    if isinstance(error, (ValueError, asyncpg.DataError)):
        return InvalidArgument(
            "the request contains a string or a number that PostgreSQL cannot store. Change or shorten it."
        )
    return StatementFailed(f"PostgreSQL refused a statement: {describe(error)}")


def describe(error: BaseException) -> str:
    """For the log."""
    state = getattr(error, "sqlstate", None)
    return f"{type(error).__name__} ({state}): {error}" if state else f"{type(error).__name__}: {error}"

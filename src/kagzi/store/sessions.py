"""Sessions: how the verbs that both stores share (`store/operate`) access a database.

A verb is written once, as a coroutine over a Session; the store runs it on a connection that suits its purpose.
Sessions of PostgreSQL wait for the network; those of SQLite run in the thread that owns the connection and never
suspend.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar, cast

from ..core.pages.cursor import Cursor
from ..core.records import Rows
from ..core.times import Timestamp
from .rows import Row

if TYPE_CHECKING:
    from types import CoroutineType

Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")

AFTER_ALL: Timestamp = 1 << 62
"""Later than any time: where a list that shows the newest first begins."""
NIL_ID = "00000000-0000-0000-0000-000000000000"
"""The id that goes with AFTER_ALL where ids are UUIDs."""


class Session(Protocol):
    """A connection while one verb uses it. Statements are called by name, with all of their parameters by name: a
    value, or rows as a sequence of mappings."""

    async def read(self, name: str, /, **values: object) -> Sequence[Row]:
        """Run a statement that changes nothing or is part of a transaction, and return its rows."""
        ...

    async def write(self, name: str, /, **values: object) -> Sequence[Row]:
        """Run a statement as a transaction of its own, and return its rows."""
        ...

    async def page(self, name: str, limit: int, /, **values: object) -> tuple[Sequence[Row], bool]:
        """At most `limit` rows and about as many bytes as a page may have; and whether there are more."""
        ...

    def transaction(self) -> AbstractAsyncContextManager[None]: ...


class Purpose(Enum):
    WRITE = auto()  # its outcome is acknowledged: durable, also on a synchronous standby if there is one
    CHORE = auto()  # its outcome is not acknowledged to anybody
    LEASES = auto()  # a chore about leases: on the connection for claims and timers
    READ = auto()  # reads a few rows
    LOOKUP = auto()  # the same, for something that is named: that there is no such thing (None) is acknowledged, too


class Sessions(ABC):
    """The connections of a store."""

    @abstractmethod
    async def run(self, purpose: Purpose, act: Callable[[Session], Coroutine[Any, Any, Result]]) -> Result: ...

    @abstractmethod
    async def run_scan(self, namespace: str, act: Callable[[Session], Coroutine[Any, Any, Result]]) -> Result:
        """Run a read whose cost grows with the stored data, when its namespace has a turn: see `scans`. None is as for
        Purpose.LOOKUP."""


Verb = Callable[Concatenate[Any, Arguments], Coroutine[Any, Any, Result]]
if TYPE_CHECKING:  # in Python 3.11 it cannot be subscripted at run time
    Method = Callable[Concatenate[Sessions, Arguments], CoroutineType[Any, Any, Result]]


def verb(purpose: Purpose, function: Verb[Arguments, Result]) -> "Method[Arguments, Result]":
    """Makes a store method of a function, which runs on a session of this purpose."""

    async def method(self: Sessions, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        return await self.run(purpose, lambda session: function(session, *args, **kwargs))

    typed: Method[Arguments, Result] = cast(
        "Any", method
    )  # mypy and pyright disagree on the type of a coroutine function
    return typed


def scan(function: Verb[Arguments, Result]) -> "Method[Arguments, Result]":
    """Like `verb`, for a scan. The first argument of the function is the namespace, or something that has one."""

    async def method(self: Sessions, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        what = args[0] if args else kwargs["namespace"]
        namespace = cast("str", getattr(what, "namespace", what))
        return await self.run_scan(namespace, lambda session: function(session, *args, **kwargs))

    typed: Method[Arguments, Result] = cast("Any", method)
    return typed


async def first(session: Session, name: str, /, **values: object) -> Row | None:
    rows = await session.read(name, **values)
    return rows[0] if rows else None


def position(cursor: Cursor | None, first_id: str = "") -> tuple[Timestamp, str]:
    """Where a page of a list that shows the newest first continues."""
    return (AFTER_ALL, first_id) if cursor is None else (cursor.at, cursor.id)


async def list_page(
    session: Session,
    name: str,
    read: Callable[[Row], Result],
    cursor: Cursor | None,
    limit: int,
    /,
    **values: object,
) -> Rows[Result]:
    """A page of a list that has a statement for each direction: see `sql_files`."""
    backwards = cursor is not None and cursor.direction == "prev"
    rows, more = await session.page(f"{name}_{'prev' if backwards else 'next'}", limit, **values)
    records = [read(row) for row in rows]
    return Rows(tuple(reversed(records) if backwards else records), has_more=more)

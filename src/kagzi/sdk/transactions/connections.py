"""The user's connection, of any supported driver: one interface for statements and transactions.

No driver is imported: the class of a connection tells its driver, which the program has then imported. For a sync
connection nothing here is really async: the coroutines never wait, and `run_now` runs them immediately.
"""

import sys
from collections.abc import Coroutine, Mapping
from typing import Any, Literal, Protocol, TypeVar

from ...core.errors import InternalError, InvalidArgument
from .statements import numbered, percent

T = TypeVar("T")
Rows = list[tuple[Any, ...]]
Dialect = Literal["postgresql", "sqlite"]
State = Literal["none", "block", "implicit"]
"""The state of the transaction: none is open; one is open in a block that ends it; or one was opened implicitly by a
statement, and it is not certain that it will be committed."""

_MISSING_TABLE = "42P01"  # PostgreSQL's undefined_table
_NOT_PERMITTED = "42501"
_KNOWN = "asyncpg, psycopg 3, or SQLAlchemy (Connection, Session, AsyncConnection, AsyncSession)"


class Connection(Protocol):
    """`what`: its name in messages. `is_async`: whether its user writes `async with`."""

    what: str
    is_async: bool
    dialect: Dialect

    def state(self) -> State: ...

    def explicit_block(self) -> str:
        """The code with which users open a transaction on it."""
        ...

    def autocommits(self) -> bool:
        """Whether a statement outside of a transaction is committed at once."""
        ...

    async def fetch(self, sql: str, values: Mapping[str, object]) -> Rows: ...

    async def begin(self) -> Any:
        """Begin a transaction, or a savepoint in the open one. Returns it for `end`."""
        ...

    async def end(self, transaction: Any, error: BaseException | None) -> None:
        """Commit, or roll back if there is an error."""
        ...


def connection_of(raw: Any, call: str) -> Connection:
    """Raises InvalidArgument for a value that is not a connection of a known driver."""
    for cls in type(raw).__mro__:
        make = _CLASSES.get(f"{cls.__module__}.{cls.__qualname__}")
        if make is not None:
            return make(raw, call)
    kind = f"{type(raw).__module__}.{type(raw).__qualname__}"
    advice = next((text for name, text in _ALMOST.items() if kind.endswith(name)), f"Give a connection of {_KNOWN}")
    raise InvalidArgument(f"{call}: {kind} is not a connection that it knows. {advice}.", field="connection")


def run_now(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that never waits, because its connection is sync."""
    try:
        work.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    work.close()
    raise InternalError("a connection that is not async was waited for")


def is_missing_table(error: BaseException, table: str) -> bool:
    return table in str(error) and (_state_of(error) == _MISSING_TABLE or "no such table" in str(error))


def is_not_permitted(error: BaseException) -> bool:
    return _state_of(error) == _NOT_PERMITTED or "readonly database" in str(error)


def _state_of(error: BaseException) -> str:
    original = getattr(error, "orig", None) or error  # SQLAlchemy keeps the driver's error
    return getattr(original, "sqlstate", None) or getattr(original, "pgcode", None) or ""


# --- drivers ----------------------------------------------------------------------------------------------------------


class _Asyncpg:
    what = "an asyncpg connection"
    is_async = True
    dialect: Dialect = "postgresql"

    def __init__(self, raw: Any, call: str) -> None:
        self._raw = raw

    def state(self) -> State:
        return "block" if self._raw.is_in_transaction() else "none"

    def explicit_block(self) -> str:
        return "async with connection.transaction():"

    def autocommits(self) -> bool:
        return True

    async def fetch(self, sql: str, values: Mapping[str, object]) -> Rows:
        text, names = numbered(sql)
        return [tuple(row) for row in await self._raw.fetch(text, *(values[name] for name in names))]

    async def begin(self) -> Any:
        transaction = self._raw.transaction()
        await transaction.start()
        return transaction

    async def end(self, transaction: Any, error: BaseException | None) -> None:
        if error is None:
            await transaction.commit()
        elif not self._raw.is_closed():
            await transaction.rollback()


class _Psycopg:
    what = "a psycopg connection"
    is_async = False
    dialect: Dialect = "postgresql"

    def __init__(self, raw: Any, call: str) -> None:
        self._raw = raw
        self._tuples = sys.modules["psycopg.rows"].tuple_row  # independent of the user's row factory

    def state(self) -> State:
        if self._raw.info.transaction_status == 0:  # IDLE
            return "none"
        # psycopg counts its blocks privately; on an autocommit connection, every transaction is in a block.
        return "block" if self._raw.autocommit or getattr(self._raw, "_num_transactions", 0) else "implicit"

    def explicit_block(self) -> str:
        return "with connection.transaction():"

    def autocommits(self) -> bool:
        return bool(self._raw.autocommit)

    async def fetch(self, sql: str, values: Mapping[str, object]) -> Rows:
        with self._raw.cursor(row_factory=self._tuples) as cursor:
            cursor.execute(percent(sql), values)
            return [] if cursor.description is None else list(cursor.fetchall())

    async def begin(self) -> Any:
        transaction = self._raw.transaction()
        transaction.__enter__()
        return transaction

    async def end(self, transaction: Any, error: BaseException | None) -> None:
        transaction.__exit__(*_raised(error))


class _AsyncPsycopg(_Psycopg):
    what = "an async psycopg connection"
    is_async = True

    def explicit_block(self) -> str:
        return "async with connection.transaction():"

    async def fetch(self, sql: str, values: Mapping[str, object]) -> Rows:
        async with self._raw.cursor(row_factory=self._tuples) as cursor:
            await cursor.execute(percent(sql), values)
            return [] if cursor.description is None else list(await cursor.fetchall())

    async def begin(self) -> Any:
        transaction = self._raw.transaction()
        await transaction.__aenter__()
        return transaction

    async def end(self, transaction: Any, error: BaseException | None) -> None:
        await transaction.__aexit__(*_raised(error))


class _SqlAlchemy:
    """A Connection or a Session: both have the same methods to begin, nest and execute."""

    what = "a connection of SQLAlchemy"
    is_async = False

    def __init__(self, raw: Any, call: str) -> None:
        self._raw = raw
        self._text = sys.modules["sqlalchemy"].text
        bind = raw.get_bind() if hasattr(raw, "get_bind") else raw
        name: str = bind.dialect.name
        if name not in ("postgresql", "sqlite"):
            raise InvalidArgument(
                f"{call}: this connection is to {name}. It works with PostgreSQL and SQLite.", field="connection"
            )
        self.dialect: Dialect = "postgresql" if name == "postgresql" else "sqlite"

    @property
    def _sync(self) -> Any:
        return self._raw

    def state(self) -> State:
        if not self._raw.in_transaction():
            return "none"
        begun = self._sync.get_transaction()
        # `with x.begin()` sets this attribute; a Session also has an origin. Implicit transactions end uncommitted.
        in_block = getattr(self._sync, "_trans_context_manager", None) is not None
        origin = getattr(getattr(begun, "origin", None), "name", "AUTOBEGIN")
        return "block" if in_block or origin != "AUTOBEGIN" else "implicit"

    def explicit_block(self) -> str:
        return "with session.begin():"

    def autocommits(self) -> bool:
        return False

    async def fetch(self, sql: str, values: Mapping[str, object]) -> Rows:
        result = self._raw.execute(self._text(sql), values)
        return [tuple(row) for row in result] if result.returns_rows else []

    async def begin(self) -> Any:
        transaction = self._raw.begin_nested() if self._raw.in_transaction() else self._raw.begin()
        transaction.__enter__()
        return transaction

    async def end(self, transaction: Any, error: BaseException | None) -> None:
        transaction.__exit__(*_raised(error))


class _AsyncSqlAlchemy(_SqlAlchemy):
    what = "an async connection of SQLAlchemy"
    is_async = True

    @property
    def _sync(self) -> Any:
        return getattr(self._raw, "sync_session", None) or self._raw.sync_connection

    def explicit_block(self) -> str:
        return "async with session.begin():"

    async def fetch(self, sql: str, values: Mapping[str, object]) -> Rows:
        result = await self._raw.execute(self._text(sql), values)
        return [tuple(row) for row in result] if result.returns_rows else []

    async def begin(self) -> Any:
        transaction = self._raw.begin_nested() if self._raw.in_transaction() else self._raw.begin()
        await transaction.__aenter__()
        return transaction

    async def end(self, transaction: Any, error: BaseException | None) -> None:
        await transaction.__aexit__(*_raised(error))


def _raised(error: BaseException | None) -> tuple[Any, Any, Any]:
    return (None, None, None) if error is None else (type(error), error, error.__traceback__)


_CLASSES: Mapping[str, type[_Asyncpg | _Psycopg | _SqlAlchemy]] = {
    "asyncpg.connection.Connection": _Asyncpg,
    "asyncpg.pool.PoolConnectionProxy": _Asyncpg,
    "psycopg.Connection": _Psycopg,
    "psycopg.AsyncConnection": _AsyncPsycopg,
    "sqlalchemy.engine.base.Connection": _SqlAlchemy,
    "sqlalchemy.orm.session.Session": _SqlAlchemy,
    "sqlalchemy.ext.asyncio.engine.AsyncConnection": _AsyncSqlAlchemy,
    "sqlalchemy.ext.asyncio.session.AsyncSession": _AsyncSqlAlchemy,
}

_ALMOST = {
    ".Pool": "Take a connection from the pool: async with pool.acquire() as connection",
    "ConnectionPool": "Take a connection from the pool: with pool.connection() as connection",
    "Cursor": "Give the connection, not a cursor",
    "Engine": "Take a connection from the engine: engine.connect()",
    "essionmaker": "Make a session first",
    "scoped_session": "Give the session itself: scoped()",
}

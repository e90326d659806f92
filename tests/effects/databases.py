"""A user's database through each driver, in the same words."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from types import SimpleNamespace
from typing import Any

import asyncpg
import psycopg
import sqlalchemy
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

import kagzi
from kagzi.sdk.workflow.current import StepInfo, place

POSTGRES = (
    "asyncpg",
    "asyncpg-pool",
    "psycopg-async",
    "psycopg",
    "sqlalchemy-session",
    "sqlalchemy-connection",
    "sqlalchemy-async-session",
    "sqlalchemy-async-connection",
)
SQLITE = ("sqlite-session", "sqlite-async-session")
KINDS = (*POSTGRES, *SQLITE)
SOME = ("asyncpg", "psycopg", "sqlalchemy-async-session", "sqlite-session")  # what is not about the drivers
BEGIN_BY_THEMSELVES = tuple(kind for kind in KINDS if not kind.startswith("asyncpg"))


class Database:
    """One connection of a user. `raw` is what they give to kagzi.effect."""

    def __init__(self, kind: str, raw: Any, *, is_async: bool) -> None:
        self.kind = kind
        self.raw = raw
        self.is_async = is_async

    @asynccontextmanager
    async def effect(self, name: str = "") -> AsyncIterator[kagzi.Effect]:
        if self.is_async:
            async with kagzi.effect(self.raw, name) as effect:
                yield effect
        else:
            with kagzi.effect(self.raw, name) as effect:
                yield effect

    @asynccontextmanager
    async def block(self) -> AsyncIterator[None]:
        """A transaction as the driver's users open it."""
        opened = self.raw.begin() if "sql" in self.kind and "psycopg" not in self.kind else self.raw.transaction()
        if self.is_async:
            async with opened:
                yield
        else:
            with opened:
                yield

    async def execute(self, sql: str) -> list[tuple[Any, ...]]:
        if self.kind.startswith("asyncpg"):
            return [tuple(row) for row in await self.raw.fetch(sql)]
        statement = sqlalchemy.text(sql) if self.kind.startswith("sql") else sql
        result = await self.raw.execute(statement) if self.is_async else self.raw.execute(statement)
        if self.kind.startswith("sql"):
            return [tuple(row) for row in result] if result.returns_rows else []
        if result.description is None:
            return []
        return await result.fetchall() if self.is_async else result.fetchall()

    async def commit(self) -> None:
        done = self.raw.commit()
        if self.is_async:
            await done

    async def pay(self, order: str) -> None:
        """The work of the steps of these tests."""
        await self.execute(f"insert into payments (order_id) values ('{order}')")


@asynccontextmanager
async def opened(kind: str, url: str) -> AsyncIterator[Database]:
    """`url`: of PostgreSQL, or the path of an SQLite file."""
    if kind.startswith("sqlalchemy") or kind in SQLITE:
        async with _sqlalchemy(kind, url) as database:
            yield database
    elif kind == "asyncpg":
        connection = await asyncpg.connect(url)
        try:
            yield Database(kind, connection, is_async=True)
        finally:
            await connection.close()
    elif kind == "asyncpg-pool":
        async with asyncpg.create_pool(url, min_size=1, max_size=1) as pool, pool.acquire() as connection:
            yield Database(kind, connection, is_async=True)
    elif kind == "psycopg-async":
        async with await psycopg.AsyncConnection.connect(url) as connection:
            yield Database(kind, connection, is_async=True)
    else:
        with psycopg.connect(url) as connection:
            yield Database(kind, connection, is_async=False)


@asynccontextmanager
async def _sqlalchemy(kind: str, url: str) -> AsyncIterator[Database]:
    if kind in SQLITE:
        target, asynchronous = f"sqlite:///{url}", f"sqlite+aiosqlite:///{url}"
    else:
        target, asynchronous = _with_driver(url, "psycopg"), _with_driver(url, "asyncpg")
    if "async" in kind:
        engine = create_async_engine(asynchronous)
        try:
            async with AsyncSession(engine) if "session" in kind else engine.connect() as raw:
                yield Database(kind, raw, is_async=True)
        finally:
            await engine.dispose()
    else:
        sync = sqlalchemy.create_engine(target)
        try:
            with Session(sync) if "session" in kind else sync.connect() as raw:
                yield Database(kind, raw, is_async=False)
        finally:
            sync.dispose()


def _with_driver(url: str, driver: str) -> str:
    return url.replace("postgresql://", f"postgresql+{driver}://", 1)


@contextmanager
def step(attempt: int = 1, *, run: str = "run-1", step_id: str = "charge", codec: Any = None) -> Iterator[StepInfo]:
    """The body of an attempt begins and ends here."""
    task = SimpleNamespace(namespace_id="shop")
    services = SimpleNamespace(step_logs=SimpleNamespace(codec=codec))
    info = StepInfo(run, step_id, attempt, SimpleNamespace(task=task, services=services, heartbeats=None))
    token = place.set(info)
    try:
        yield info
    finally:
        place.reset(token)


async def made(kind: str, url: str) -> None:
    """The user's own table."""
    async with opened(kind, url) as database:
        await database.execute("create table payments (order_id text)")
        if kind in BEGIN_BY_THEMSELVES:
            await database.commit()


async def payments(kind: str, url: str) -> list[str]:
    """As another connection sees them."""
    async with opened(kind, url) as database:
        return sorted(order for (order,) in await database.execute("select order_id from payments"))


async def both(first: Any, second: Any) -> list[Any]:
    async with asyncio.timeout(60):
        return await asyncio.gather(first, second, return_exceptions=True)

"""Connections to PostgreSQL: sessions, and owned connections.

A Link is one connection, opened when it is first needed and reopened after a loss. Only one user has it at a time.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TypeAlias

import asyncpg
from asyncpg.prepared_stmt import PreparedStatement

from ....core import limits
from ....core.errors import Contended, KagziError, StoreBroken
from ..statements import PARAMETERS, STATEMENTS
from .barrier import Barrier, Connection
from .failures import LOSSES, Failure, describe, failure_of, fault
from .hosts import Host
from .target import Target

CLOSE_TIMEOUT_S = 2.0

Row: TypeAlias = asyncpg.Record
Rows: TypeAlias = Sequence[Row]

_COMMON_SETTINGS = {
    "jit": "off",
    "idle_in_transaction_session_timeout": "30s",
    "client_min_messages": "warning",  # a commit that stopped waiting for its standby is reported as a warning
}

HOT_SETTINGS: Mapping[str, str] = {
    **_COMMON_SETTINGS,
    # Plans are made once and kept, whatever the tables contain later, so they must use indexes. Hash joins stay on:
    # they join the arrays of a batch.
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_mergejoin": "off",
    # A caller that finds a locked row continues with the others.
    "lock_timeout": "50ms",
}

QUERY_SETTINGS: Mapping[str, str] = {
    **_COMMON_SETTINGS,
    # Lists have optional conditions: the plan must know which are set.
    "plan_cache_mode": "force_custom_plan",
    # A list shows a few of many rows: a plan that reads all of them is never right, and no plan may use all CPUs.
    "enable_seqscan": "off",
    "max_parallel_workers_per_gather": "0",
}


class Counters:
    """Counts statements and commits."""

    def __init__(self) -> None:
        self.statements = 0
        self.transactions = 0


def _opening(settings: Mapping[str, str]) -> str:
    """The beginning of a transaction where the session keeps no settings: it sets all of them, and synchronous commit,
    whatever the role, the database or another client of the pooler has set; stricter modes are kept. Names and values
    are our own."""
    kept = "CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END"
    calls = [f"set_config('synchronous_commit', {kept}, true)"]
    calls += [f"set_config('{name}', '{value}', true)" for name, value in settings.items()]
    return "BEGIN; SELECT " + ", ".join(calls)


class Session:
    """A connection while one caller uses it.

    `opening`: begins every transaction on a pooled connection. Every statement is in a transaction there: outside, the
    messages of one statement could reach different sessions of the server. `confirms`: what is read may be
    acknowledged, so transactions confirm it when they commit.
    """

    def __init__(
        self, connection: Connection, counters: Counters, opening: str | None, barrier: Barrier | None = None
    ) -> None:
        self._connection = connection
        self._counters = counters
        self._opening = opening
        self._barrier = barrier or Barrier()
        self._confirmed = True
        self.confirms = False
        self._prepared: dict[str, PreparedStatement] = {}
        self._in_transaction = False
        self.suspect = False  # a failure may be the connection's fault: do not use it again

    @property
    def lost(self) -> bool:
        return self._connection.is_closed()

    async def read(self, name: str, /, **values: object) -> Rows:
        """Run a statement that changes nothing or is part of a transaction, and return its rows. See `parameters` for
        the values."""
        self._confirmed = False
        arguments = PARAMETERS[name].in_order(values)
        if self._opening is not None:
            return await self._read_pooled(self._opening, name, arguments)
        self._counters.statements += 1
        prepared = self._prepared.get(name)
        if prepared is None:
            # Named: an unnamed statement would be parsed and planned each time.
            prepared = self._prepared[name] = await self._connection.prepare(STATEMENTS[name], name=name)
        rows = await prepared.fetch(*arguments)
        self._connection.check()
        return rows

    async def write(self, name: str, /, **values: object) -> Rows:
        """Run a statement as a transaction of its own, and return its rows."""
        rows = await self.read(name, **values)
        if not self._in_transaction:
            self._counters.transactions += 1
        return rows

    async def page(self, name: str, limit: int, /, **values: object) -> tuple[Rows, bool]:
        """See `store.sessions.Session` and part_bounded_page."""
        rows = await self.read(name, **values, limit=limit + 1, page_bytes=limits.PAGE_BYTES)
        page = rows[:limit]
        return page, bool(page) and page[0]["page_rows"] > len(page)

    def committed(self) -> None:
        """The last `write` changed something: its commit waited for the standby, and so confirmed all that was read."""
        self._confirmed = not self._in_transaction

    def note_standbys(self, names: str) -> None:
        """See `Barrier`."""
        self._barrier.note_standbys(names)

    async def confirm(self) -> None:
        """Returns when the standby has everything that was read; within a transaction, its commit confirms that."""
        if self._confirmed or not self._barrier.needed:
            return
        await self.read("barrier")
        self.committed()

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[None]:
        """BEGIN ... COMMIT, or ROLLBACK if the block raises. Cancellation closes the connection, and so ends the
        transaction."""
        self._counters.statements += 2
        await self._connection.execute("BEGIN" if self._opening is None else self._opening)
        self._in_transaction = True
        try:
            yield
            if self.confirms:
                await self.confirm()
        except BaseException as error:
            await self._roll_back(error)
            raise
        finally:
            self._in_transaction = False
        await self._commit()
        self._confirmed = self.confirms
        self._counters.transactions += 1

    async def _read_pooled(self, opening: str, name: str, arguments: Sequence[object]) -> Rows:
        self._counters.statements += 1
        if self._in_transaction:
            return await self._connection.fetch(STATEMENTS[name], *arguments)
        await self._connection.execute(opening)
        try:
            rows = await self._connection.fetch(STATEMENTS[name], *arguments)
        except BaseException as error:
            await self._roll_back(error)
            raise
        await self._commit()
        return rows

    async def _roll_back(self, error: BaseException) -> None:
        if not isinstance(error, Exception):
            self._connection.terminate()
        elif not self._connection.is_closed():
            await self._connection.execute("ROLLBACK")

    async def _commit(self) -> None:
        await self._connection.execute("COMMIT")
        self._connection.check()


class Link:
    """One connection for one kind of work. A loss is reported as Unavailable, and the next user reconnects."""

    def __init__(self, target: Target, counters: Counters, settings: Mapping[str, str]) -> None:
        self._target = target
        self._counters = counters
        self._settings = target.settings(settings)
        self._turn = asyncio.Lock()
        self._connection: Connection | None = None
        self._session: Session | None = None
        self._opening: asyncio.Task[Session] | None = None

    @property
    def state(self) -> str:
        if self._turn.locked():
            return "used"
        return "closed" if self._connection is None else "idle"

    @asynccontextmanager
    async def use(self, *, confirm: bool = True) -> AsyncGenerator[Session]:
        """Exclusive use of the connection. Errors of the driver become Unavailable, or StatementFailed or
        InvalidArgument if the statement is at fault.

        `confirm`: what is read may be acknowledged; at the end of the block the standby, if there is one, has it. False
        is for reads whose result is not acknowledged, and for chores.
        """
        async with self._turn:
            session = await self._open_session()
            session.confirms = confirm
            try:
                yield session
                if confirm:
                    await session.confirm()
            except asyncio.CancelledError:
                # The statement may be in any state, even committing: nobody else may use this connection.
                self._drop()
                raise
            except (*LOSSES, asyncpg.PostgresError) as error:
                raise self._classified(error) from error
            if session.suspect:
                self._drop()

    def _classified(self, error: BaseException) -> KagziError:
        match failure_of(error):
            case Failure.FAULT:
                return fault(error)
            case Failure.CONTENDED:
                return Contended(f"{self._target.place}: locked by another session: {describe(error)}")
            case Failure.BROKEN:
                self._drop()
                return StoreBroken(f"{self._target.place} failed: {describe(error)}")
            case Failure.LOST:
                connection = self._connection
                self._drop()
                return self._target.lost(error, connection)

    async def close(self) -> None:
        async with self._turn:
            if self._opening is not None:
                self._opening.cancel()
                await asyncio.wait((self._opening,))
            connection, self._connection, self._session = self._connection, None, None
            if connection is not None:
                await _close(connection)

    async def _open_session(self) -> Session:
        if self._session is not None and not self._session.lost:
            return self._session
        if self._opening is None:
            self._opening = asyncio.create_task(self._open())
            self._opening.add_done_callback(self._opened)
        # If the caller is cancelled, the next one gets this connection: otherwise each would leave a backend that waits
        # for a standby.
        return await asyncio.shield(self._opening)

    def _opened(self, task: asyncio.Task[Session]) -> None:
        self._opening = None
        if not task.cancelled():
            task.exception()  # marks the exception as retrieved, even if the caller is gone

    async def _open(self) -> Session:
        try:
            self._target.barrier.check_open()
        except ConnectionError as error:
            raise self._target.lost(error) from error
        tried: list[Host | None] = []
        while True:
            connection = await self._target.connect(self._settings)
            opening = _opening(self._settings) if self._target.pooled else None
            try:
                await self._target.barrier.cross(connection, opening)
            except BaseException as error:
                await _close(connection)
                if not isinstance(error, (*LOSSES, asyncpg.PostgresError)):
                    raise
                lost = self._target.lost(error, connection)
                tried.append(connection.host)
                if self._target.hosts.order[0] in tried:
                    raise lost from error
            else:
                self._connection = connection
                self._session = Session(connection, self._counters, opening, self._target.barrier)
                return self._session

    def _drop(self) -> None:
        connection, self._connection, self._session = self._connection, None, None
        if connection is not None:
            connection.terminate()


async def _close(connection: Connection) -> None:
    if connection.is_closed():
        return
    try:
        await connection.close(timeout=CLOSE_TIMEOUT_S)
    except (*LOSSES, asyncpg.PostgresError):
        connection.terminate()

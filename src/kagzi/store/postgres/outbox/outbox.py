"""Drains an outbox in PostgreSQL: rows are locked, started and deleted in one transaction.

A row that is not deleted, for whatever reason, is started again under its request id, which returns the existing run.
So a server may die at any moment, and two may process the same row: only one run starts.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import cache

import asyncpg

from ....core.errors import KagziError
from ....core.limits import MESSAGE_HARD_BYTES
from ...protocol.outbox import Fate, OutboxCounts, OutboxRow, Postponed, Refused, Start, Taken
from ...sql_files import load_statements
from ..connection.barrier import Connection
from ..connection.connection import CLOSE_TIMEOUT_S, Row
from ..connection.failures import LOSSES, Failure, failure_of, fault
from ..connection.target import Target

CHANNEL = "kagzi_outbox"
START_TIMEOUT_S = 20.0
_PROBE_INTERVAL_S = 30.0
_PROBE_TIMEOUT_S = 10.0
# A server that hangs keeps rows from the others for no longer than this.
_SETTINGS = {"jit": "off", "idle_in_transaction_session_timeout": "30s"}
_ABSENT = -1


@cache
def _statements() -> dict[str, str]:
    return load_statements(__package__ or "")


class PostgresOutbox:
    """Implements `store.protocol.outbox.Outbox`, with a connection to drain, opened when needed, and one to listen."""

    def __init__(self, url: str) -> None:
        """Raises InvalidArgument."""
        self._target = Target(url)
        self._connection: Connection | None = None
        self._turn = asyncio.Lock()
        self.listens = False

    @property
    def place(self) -> str:
        return self._target.place

    async def listen(self, on_change: Callable[[], None]) -> None:
        connection = await self._target.connect(self._target.settings(_SETTINGS))
        try:
            if self._target.pooled:
                return  # a session behind a pooler gets no notifications
            lost = asyncio.Event()
            connection.add_termination_listener(lambda _: lost.set())

            def notified(_connection: object, _pid: int, _channel: str, _payload: object) -> None:
                on_change()

            await connection.add_listener(CHANNEL, notified)
            self.listens = True
            on_change()  # for rows written before
            while not lost.is_set():
                try:
                    await asyncio.wait_for(lost.wait(), _PROBE_INTERVAL_S)
                except TimeoutError:  # a dead network gives no sign
                    await connection.execute("SELECT 1", timeout=_PROBE_TIMEOUT_S)
        except (*LOSSES, asyncpg.PostgresError) as error:
            raise self._target.lost(error, connection) from error
        finally:
            self.listens = False
            connection.terminate()

    async def drain(self, limit: int, start: Start) -> int:
        async with self._use() as connection:
            try:
                async with connection.transaction():
                    rows = await connection.fetch(_statements()["take_outbox"], limit, MESSAGE_HARD_BYTES)
                    if rows:
                        await self._settle(connection, rows, start)
                return len(rows)
            except asyncpg.UndefinedTableError:
                return _ABSENT

    async def _settle(self, connection: Connection, rows: Sequence[Row], start: Start) -> None:
        async with asyncio.timeout(START_TIMEOUT_S):
            fates = await start([_read(row) for row in rows])
        taken = [row["id"] for row, fate in zip(rows, fates, strict=True) if isinstance(fate, Taken)]
        kept = [(row["id"], *_kept(fate)) for row, fate in zip(rows, fates, strict=True) if not isinstance(fate, Taken)]
        if taken:
            await connection.execute(_statements()["delete_outbox"], taken)
        if kept:
            await connection.execute(_statements()["keep_outbox"], *map(list, zip(*kept, strict=True)))

    async def counts(self) -> OutboxCounts:
        async with self._use() as connection:
            try:
                row = await connection.fetchrow(_statements()["count_outbox"])
            except asyncpg.UndefinedTableError:
                row = None
            return OutboxCounts(0, 0) if row is None else OutboxCounts(row["waiting"], row["refused"])

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None and not connection.is_closed():
            try:
                await connection.close(timeout=CLOSE_TIMEOUT_S)
            except (*LOSSES, asyncpg.PostgresError):
                connection.terminate()

    # --- for operators ------------------------------------------------------------------------------------------------

    async def rows(self, *, refused: bool, limit: int) -> Sequence[Row]:
        """The refused rows, or all. Raises Unavailable, StatementFailed; an absent table has no rows."""
        async with self._use() as connection:
            try:
                return await connection.fetch(_statements()["list_outbox"], refused, limit)
            except asyncpg.UndefinedTableError:
                return ()

    async def retry(self, ids: Sequence[int], *, every: bool) -> int:
        """Make refused rows due again. Returns how many."""
        async with self._use() as connection:
            return len(await connection.fetch(_statements()["retry_outbox"], list(ids), every))

    async def drop(self, ids: Sequence[int], *, every: bool) -> int:
        """Delete refused rows. Returns how many."""
        async with self._use() as connection:
            return len(await connection.fetch(_statements()["drop_outbox"], list(ids), every))

    @asynccontextmanager
    async def _use(self) -> AsyncGenerator[Connection]:
        """Errors of the driver become Unavailable or StatementFailed. Cancellation closes the connection, and so ends
        the transaction."""
        async with self._turn:
            if self._connection is None or self._connection.is_closed():
                self._connection = await self._target.connect(self._target.settings(_SETTINGS))
            try:
                yield self._connection
            except asyncio.CancelledError:
                self._drop()
                raise
            except KagziError:
                raise
            except (*LOSSES, asyncpg.PostgresError) as error:
                task = asyncio.current_task()
                if task is not None and task.cancelling():  # the rollback of a cancelled task may fail, too
                    self._drop()
                    raise asyncio.CancelledError from error
                if failure_of(error) is Failure.FAULT:
                    raise fault(error) from error
                connection = self._connection
                self._drop()
                raise self._target.lost(error, connection) from error

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.terminate()


def _read(row: Row) -> OutboxRow:
    return OutboxRow(
        namespace=row["namespace"],
        workflow_type=row["workflow_type"],
        workflow_id=row["workflow_id"],
        request=row["request"],
        request_bytes=row["request_bytes"],
        age_us=row["age_us"],
        attempts=row["attempts"],
    )


def _kept(fate: Fate) -> tuple[str, float, bool]:
    if isinstance(fate, Postponed):
        return fate.error, fate.delay_s, False
    assert isinstance(fate, Refused)
    return fate.error, 0.0, True

"""The replication barrier: nothing is acknowledged from a read that may show data which no standby has (ADR 0015).

PostgreSQL shows a commit to others when its wait for the synchronous standby ends, however it ends: confirmed,
cancelled, by a terminated backend, or by crash recovery after a restart in place. Only a commit that wrote something
and was not interrupted while it waited proves that a standby has all that was visible before it. Such a commit,
containing nothing but its own record, is the barrier.
"""

import asyncio

import asyncpg

from ..statements import STATEMENTS
from .hosts import Host

CROSSING_TIMEOUT_S = 10.0
"""How long a new connection waits for the standby before the database is reported as unavailable."""
PAUSE_S = 1.0
"""After a failed crossing, waiting callers fail at once instead of each waiting in turn."""


class UnreplicatedError(ConnectionError):
    """A commit may be on this server only. It counts as a lost connection: the outcome of the commit is unknown."""


class Connection(asyncpg.Connection):
    """A connection that never sends a cancel request: a commit whose wait for the standby is cancelled becomes visible
    without being replicated. The socket is closed instead, which a waiting commit does not notice.

    `may_cancel`: a barrier is running, which carries no data; cancelling it leaves no backend behind.
    """

    may_cancel: bool = False
    host: Host | None = None
    unreplicated: bool = False

    def _cancel_current_command(self, *waiters: asyncio.Future[None]) -> None:
        """The driver's only path to a cancel request, both for timeouts and for cancelled tasks."""
        if self.may_cancel:
            super()._cancel_current_command(*waiters)  # type: ignore[misc]  # the stubs leave private names out
        else:
            # Not within this call: the driver has not yet notified those who wait for the command.
            asyncio.get_running_loop().call_soon(self.terminate)

    def notice(self, _connection: object, message: asyncpg.PostgresLogMessage) -> None:
        """The server's warning precedes the end of the commit. Its text may be in any language, but not its origin."""
        if getattr(message, "server_source_function", None) == "SyncRepWaitForLSN":
            self.unreplicated = True

    def check(self) -> None:
        """Called after every statement, since any may have been a commit."""
        if self.unreplicated:
            raise UnreplicatedError(
                "a commit stopped waiting for the synchronous standby: it may be on this server only"
            )


class Barrier:
    """What all connections to one database know about its synchronous standbys; new connections cross it."""

    def __init__(self) -> None:
        self._standby_names = ""
        self._closed_until = 0.0

    @property
    def needed(self) -> bool:
        """Without synchronous standbys a commit does not wait, and a barrier would prove nothing."""
        return bool(self._standby_names)

    def note_standbys(self, names: str) -> None:
        """The current `synchronous_standby_names`: an operator or a failover manager may change it at any time."""
        self._standby_names = names.strip()

    def check_open(self) -> None:
        """Raises UnreplicatedError shortly after a failed crossing."""
        if asyncio.get_running_loop().time() < self._closed_until:
            raise self._absent()

    async def cross(self, connection: Connection, opening: str | None) -> None:
        """Make a new connection commit synchronously, and cross the barrier before it is used: the server may have been
        restarted in place, and show data that no standby has.

        `opening` begins each transaction on a pooled connection. Raises UnreplicatedError if no standby confirmed in
        time; the connection must then be closed, not terminated: a cancel request is in flight.
        """
        # Acknowledged means durable: sessions commit synchronously whatever their role says. Stricter modes are kept.
        if opening is not None:
            async with connection.transaction():
                row = await connection.fetchrow(STATEMENTS["commit_settings"])
        else:
            row = await connection.fetchrow(STATEMENTS["commit_settings"])
            if row is not None and row["synchronous_commit"] not in ("on", "remote_apply"):
                await connection.execute("SET synchronous_commit = on")
        self.note_standbys("" if row is None else row["standby_names"])
        if self.needed:
            await self._cross(connection, opening)

    async def _cross(self, connection: Connection, opening: str | None) -> None:
        barrier = STATEMENTS["barrier"].rstrip().rstrip(";")
        text = barrier if opening is None else f"{opening}; {barrier}; COMMIT"
        connection.may_cancel = True
        try:
            await connection.execute(text, timeout=CROSSING_TIMEOUT_S)
            connection.check()
        except (TimeoutError, UnreplicatedError):
            self._closed_until = asyncio.get_running_loop().time() + PAUSE_S
            raise self._absent() from None
        finally:
            connection.may_cancel = False

    def _absent(self) -> UnreplicatedError:
        return UnreplicatedError(
            f"no synchronous standby confirmed a commit within {CROSSING_TIMEOUT_S:g} s "
            f"(synchronous_standby_names = '{self._standby_names}'). Attach one, or change that setting"
        )

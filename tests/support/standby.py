"""A PostgreSQL and its synchronous standby, made with PostgreSQL's own means, and what can befall them.

    with Pair() as pair:
        url = pair.url               # of a database on the primary
        await pair.detach()          # from now on commits wait
        pair.primary.kill()          # ... and are visible after a restart in place, although the standby has none of
        them pair.primary.start()
        await pair.promote()         # the standby is the primary now

What a commit waits for is what the standby has on its disk. It follows, and can be asked, all the time (`standby_url`).
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit, urlunsplit

import asyncpg

from tests.support.polling import until
from tests.support.postgres import PostgresServer
from tests.support.timeouts import LOADED_MACHINE_S

TIMEOUT_S = LOADED_MACHINE_S
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND application_name = 'kagzi'"


class Pair:
    """Runs from `__enter__` to `__exit__`. The standby is attached, and commits wait for it, from `attach` on."""

    def __init__(self) -> None:
        # Short: a test waits for it whenever a standby comes back.
        settings = {"max_connections": "60", "wal_retrieve_retry_interval": "100ms", "max_wal_size": "256MB"}
        self.primary = PostgresServer(settings=settings)
        try:
            self.primary.start()
            self.standby = PostgresServer(copy_of=self.primary)
        except BaseException:
            self.primary.close()
            raise

    @property
    def url(self) -> str:
        return self.primary.url

    @property
    def standby_url(self) -> str:
        return self.standby.url

    def on_standby(self, url: str) -> str:
        """The same database as `url`, on the standby."""
        return urlunsplit(urlsplit(url)._replace(query=urlsplit(self.standby_url).query))

    def __enter__(self) -> Self:
        self.standby.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.standby.close()
        self.primary.close()

    async def attach(self) -> None:
        """The standby follows again, has everything, and commits wait for it."""
        self.primary.start()  # a fault that failed half-way fails its own test only
        async with connected(self.standby_url) as standby:
            await standby.execute(f"ALTER SYSTEM SET primary_conninfo = '{self.primary.conninfo}'")
            await standby.execute("SELECT pg_reload_conf()")
        async with connected(self.url) as primary:
            await primary.execute("ALTER SYSTEM SET synchronous_standby_names = 'FIRST 1 (standby)'")
            await primary.execute("SELECT pg_reload_conf()")
            await until(lambda: primary.fetchval("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"))
            await primary.execute("SET synchronous_commit = on")
            await primary.execute("SELECT pg_logical_emit_message(true, 'test', '')")

    async def detach(self) -> None:
        """The standby goes on by itself: commits of the primary wait."""
        async with connected(self.standby_url) as standby:
            await standby.execute("ALTER SYSTEM SET primary_conninfo = ''")
            await standby.execute("SELECT pg_reload_conf()")
            await until(lambda: standby.fetchval("SELECT NOT EXISTS (SELECT FROM pg_stat_wal_receiver)"))
        async with connected(self.url) as primary:
            await until(lambda: primary.fetchval("SELECT NOT EXISTS (SELECT FROM pg_stat_replication)"))

    async def waiting(self, least: int = 1) -> int:
        """How many of Kagzi's commits wait for the standby, as soon as there are so many."""
        async with connected(self.url) as primary:

            async def enough() -> bool:
                return int(await primary.fetchval(WAITING)) >= least

            await until(enough)
            return int(await primary.fetchval(WAITING))

    async def replayed(self) -> None:
        """The detached standby shows all that it has: a commit waits for its disk, and what is there is seen a little
        later."""
        async with connected(self.standby_url) as standby:
            await until(lambda: standby.fetchval("SELECT pg_last_wal_receive_lsn() <= pg_last_wal_replay_lsn()"))

    def restart_in_place(self) -> None:
        """kill -9, and start again from the same files: crash recovery makes visible what was in the log.

        In this thread, since a server ends with the thread that started it."""
        self.primary.kill()
        self.primary.start()

    async def promote(self) -> None:
        """The primary is gone for good, and the standby takes its place. It waits for nobody."""
        self.primary.kill()
        await self.promote_beside()

    async def promote_beside(self) -> None:
        """The detached standby becomes a primary, and the other one stays what it is: nobody has told it."""
        async with connected(self.standby_url) as standby:
            await standby.execute("SELECT pg_promote()")
            await until(lambda: standby.fetchval("SELECT NOT pg_is_in_recovery()"))


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[asyncpg.Connection]:
    """A stranger's connection that waits for no standby itself."""
    connection = await asyncpg.connect(url, server_settings={"application_name": "test", "synchronous_commit": "local"})
    try:
        yield connection
    finally:
        connection.terminate()

"""Where the database is, and how connections to it are opened and reported as lost."""

from collections.abc import Mapping
from urllib.parse import urlsplit

import asyncpg

from ....core.errors import Unavailable
from ....core.text.database_options import DatabaseOptions, read_options
from ....core.text.database_urls import check_database_url
from .barrier import Barrier, Connection
from .failures import LOSSES
from .hosts import Host, Hosts

_SILENCE_S = 5.0


def call_timeout_s(options: DatabaseOptions) -> float:
    """When a call gives up if the server does not respond; the server's own timeout is shorter."""
    return options.statement_timeout_ms / 1_000 + _SILENCE_S


class Target:
    """Where the database is.

    `pooled`: through a pooler in transaction mode, which keeps no session state. Set by `?pgbouncer=true`; otherwise
    detected when the first connection refuses, or does not keep, the settings it is opened with.
    """

    def __init__(self, url: str) -> None:
        """Raises InvalidArgument."""
        check_database_url(url)
        dsn, self.options = read_options(url)
        self.pooled = self.options.pooled
        self.hosts = Hosts(dsn)
        schema = f", schema {self.options.schema}" if self.options.schema else ""
        self._where = f"{urlsplit(dsn).path}{schema}"
        self.place = self.place_at(self.hosts.name)
        self.barrier = Barrier()

    def place_at(self, host: str) -> str:
        return f"PostgreSQL at {host}{self._where}"

    def settings(self, settings: Mapping[str, str]) -> Mapping[str, str]:
        """The session settings for one kind of work, with those of the URL."""
        options = self.options
        chosen = {
            "statement_timeout": _in_ms(options.statement_timeout_ms),
            "lock_timeout": _in_ms(options.lock_timeout_ms),
            **settings,
        }
        if options.schema:
            chosen["search_path"] = options.schema
        return chosen

    async def connect(self, settings: Mapping[str, str]) -> Connection:
        """A new connection, to the first host that accepts one. Raises Unavailable, which names each host and what it
        said. A pooled connection has no settings: each transaction begins with them."""
        problems: list[tuple[Host, Exception]] = []
        for host in self.hosts.order:
            try:
                return await self._connect(host, settings)
            except ValueError as error:  # the URL is invalid
                raise Unavailable(f"{self.place}: the URL cannot be used: {error}") from error
            except (*LOSSES, asyncpg.PostgresError) as error:
                self.hosts.note_failure(host, error)
                problems.append((host, error))
        [*_, (_, last)] = problems
        if len(problems) == 1:
            raise self.lost(last) from last
        reasons = "; ".join(f"{host.name}: {_reason(error)}" for host, error in problems)
        raise Unavailable(f"{self.place} is unavailable: {reasons}") from last

    async def _connect(self, host: Host, settings: Mapping[str, str]) -> Connection:
        try:
            connection = await self._connect_with(host, {} if self.pooled else settings)
        except asyncpg.ProtocolViolationError as error:
            if not _is_refused_setting(error) or not settings or self.pooled:
                raise
            self.pooled = True
            return await self._connect_with(host, {})
        if settings and not self.pooled:
            self.pooled = not await _has_settings(connection, settings)
        return connection

    async def _connect_with(self, host: Host, settings: Mapping[str, str]) -> Connection:
        connection = await asyncpg.connect(
            host.url,
            connection_class=Connection,
            timeout=host.timeout_s,
            command_timeout=call_timeout_s(self.options),
            statement_cache_size=0,  # Session caches statements; behind a pooler, names are shared with other clients
            server_settings={"application_name": "kagzi", **settings},
        )
        connection.host = host
        connection.add_log_listener(connection.notice)
        return connection

    def lost(self, error: BaseException, connection: Connection | None = None) -> Unavailable:
        """The driver's error as ours; it contains neither user nor password. It names the host of the connection, which
        is tried last from now on."""
        host = None if connection is None else connection.host
        if host is not None:
            self.hosts.note_failure(host, error)
        place = self.place if host is None else self.place_at(host.name)
        return Unavailable(f"{place} is unavailable: {_reason(error)}")


def _reason(error: BaseException) -> str:
    if isinstance(error, TimeoutError) and not str(error):
        return "no response in time"
    if isinstance(error, asyncpg.exceptions.TargetServerAttributeNotMatched):
        return "it is a standby"
    return str(error) or type(error).__name__


def _in_ms(milliseconds: int) -> str:
    """Formatted as PostgreSQL shows it, for the comparison in `_has_settings`."""
    for size, unit in ((60_000, "min"), (1_000, "s")):
        if milliseconds % size == 0:
            return f"{milliseconds // size}{unit}"
    return f"{milliseconds}ms"


def _is_refused_setting(error: BaseException) -> bool:
    """PgBouncer accepts the few settings that it tracks, and reports the first other one."""
    return "startup parameter" in str(error)


async def _has_settings(connection: asyncpg.Connection, settings: Mapping[str, str]) -> bool:
    """Whether the settings took effect: a pooler may be configured to ignore them."""
    try:
        async with connection.transaction():
            rows = await connection.fetch(
                "SELECT name, current_setting(name) AS value FROM unnest($1::text[]) AS name", list(settings)
            )
    except BaseException:
        connection.terminate()
        raise
    return {row["name"]: row["value"] for row in rows} == dict(settings)

"""Servers in this process that drain an outbox, and a look into its table."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import msgspec

from kagzi import Context, Kagzi, NotFound, workflow
from kagzi.core.limits import Settings
from kagzi.server.app import Server
from kagzi.server.config import ServerConfig
from kagzi.server.listen import ListenAddress
from tests.support.polling import until

QUICK = Settings(poll_interval_ms=200)


@workflow("greet")
async def greet(ctx: Context, name: str) -> str:
    return f"Hello, {name}"


@asynccontextmanager
async def serving(
    outbox: str, *, db: str = ":memory:", settings: Settings = QUICK, **more: Any
) -> AsyncIterator[Server]:
    """`outbox`: empty for none."""
    config = ServerConfig(db=db, listen=ListenAddress("127.0.0.1", 0), http=None, settings=settings, outbox=outbox)
    server = Server(msgspec.structs.replace(config, **more))
    await server.start()
    try:
        yield server
    finally:
        await server.stop(0)


async def rows(url: str) -> list[asyncpg.Record]:
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetch("select * from kagzi_outbox order by id")
    except asyncpg.UndefinedTableError:
        return []
    finally:
        await connection.close()


async def until_drained(url: str) -> None:
    async def is_empty() -> bool:
        return not [row for row in await rows(url) if row["refused_at"] is None]

    await until(is_empty, what="the outbox is drained")


async def until_refused(url: str, count: int = 1) -> list[asyncpg.Record]:
    async def refused() -> list[asyncpg.Record] | None:
        kept = [row for row in await rows(url) if row["refused_at"] is not None]
        return kept if len(kept) >= count else None

    return await until(refused, what="a start is refused")


async def exists(client: Kagzi, workflow_id: str) -> bool:
    try:
        await client.get(workflow_id).status()
    except NotFound:
        return False
    return True


def outcomes(server: Server) -> dict[str, int]:
    """Of the starts that this server read."""
    return {labels[0]: int(count) for labels, count in server.samples()["kagzi_outbox_starts_total"]}

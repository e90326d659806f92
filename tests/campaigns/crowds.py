"""Crowds in new databases of each kind."""

import asyncio
import os
from pathlib import Path

from kagzi.core.providers import Rng

from . import crowd


def crowd_directory(temporary: Path) -> Path:
    """KAGZI_CAMPAIGN_DIRECTORY, where crowds are kept from one campaign to the next; or one that is not kept."""
    return Path(os.environ.get("KAGZI_CAMPAIGN_DIRECTORY") or temporary)


async def kept_sqlite_store(directory: Path, runs: int, rng: Rng) -> Path:
    """As an earlier campaign left it, or a new one."""
    path = directory / f"crowd-{runs}.db"
    if not path.exists():
        filling = directory / f"filling-{runs}.db"
        await fill_sqlite_store(filling, runs, rng)
        filling.rename(path)
    return path


async def fill_sqlite_store(path: Path, runs: int, rng: Rng) -> None:
    """A new file; what an earlier attempt left is removed."""
    from kagzi.store.sqlite import SqliteMigrator, SqliteStore

    for tail in ("", "-wal", "-shm"):
        path.with_name(path.name + tail).unlink(missing_ok=True)
    await SqliteMigrator(str(path)).migrate()
    store = SqliteStore(str(path), rng=rng)
    await store.open()
    try:
        models = await crowd.make_models(store)
    finally:
        await store.close()
    await asyncio.to_thread(crowd.fill_sqlite, str(path), models, runs, print)


async def fill_postgres_store(url: str, runs: int, rng: Rng) -> None:
    """An empty database."""
    from kagzi.store.postgres import PostgresMigrator, PostgresStore

    await PostgresMigrator(url).migrate()
    store = PostgresStore(url, rng=rng)
    await store.open()
    try:
        models = await crowd.make_models(store)
    finally:
        await store.close()
    await crowd.fill_postgres(url, models, runs, print)

"""A real PgBouncer in transaction mode, as another user than root: what strangers leave in its sessions does not reach
us."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import asyncpg
import pytest

from kagzi.core.run.outcomes import Begun, Recorded
from kagzi.store.postgres import PostgresMigrator, PostgresStore
from kagzi.system import SystemRng
from tests.store.postgres.test_pooler import LEFT_BEHIND, watch
from tests.store.postgres.verbs import NOW, begin, complete, running, write
from tests.support.pgbouncer import PgBouncer
from tests.support.postgres import Databases

SESSIONS = 2


@pytest.fixture
def pooler(postgres: Databases) -> Iterator[PgBouncer]:
    """Few sessions, so that everybody meets everybody."""
    with PgBouncer(postgres.url, pool_size=SESSIONS) as pooler:
        yield pooler


@pytest.fixture
async def store(pooler: PgBouncer, postgres_url: str) -> AsyncIterator[PostgresStore]:
    url = pooler.through(postgres_url)
    await PostgresMigrator(url).migrate()
    store = PostgresStore(url, rng=SystemRng())
    await store.open()
    yield store
    await store.close()


async def leave_settings_behind(url: str) -> None:
    """In every session of the pool: all of them are held at once by transactions."""
    strangers = [await asyncpg.connect(url, statement_cache_size=0) for _ in range(SESSIONS)]
    for stranger in strangers:
        await stranger.execute("BEGIN")
        await stranger.execute(LEFT_BEHIND)
    for stranger in strangers:
        await stranger.execute("COMMIT")
        await stranger.close()


async def test_every_transaction_commits_synchronously(
    pooler: PgBouncer, store: PostgresStore, postgres_url: str
) -> None:
    direct = await asyncpg.connect(postgres_url)
    await watch(direct)
    await leave_settings_behind(pooler.through(postgres_url))
    plain = await asyncpg.connect(pooler.through(postgres_url), statement_cache_size=0)
    async with plain.transaction():
        assert await plain.fetchval("SHOW synchronous_commit") == "off", "this test shows nothing"
    await plain.close()

    leased = await running(store, 5)
    answers = await asyncio.gather(*(write(store, begin(each, "a"), complete(each, "a")) for each in leased))
    assert answers == [[Begun(1, NOW, 1), Recorded(2, NOW)]] * 5
    await asyncio.gather(*(store.cancel_run(each.run, "enough", NOW, NOW + 1) for each in leased))
    await store.fire(NOW + 20_000_000, end_leases=True, limit=10)
    seen = await direct.fetch("SELECT DISTINCT synchronous_commit, at_table FROM seen")
    assert {row["synchronous_commit"] for row in seen} == {"on"}
    assert {row["at_table"] for row in seen} >= {"runs", "steps"}
    await direct.close()


async def test_many_callers_share_few_sessions(store: PostgresStore, postgres_url: str) -> None:
    """More connections of ours than sessions of the pool: statements never meet the half of another's."""
    leased = await running(store, 20)

    async def caller(number: int) -> None:
        for round_ in range(10):
            await write(store, begin(leased[number], f"s{round_}"), complete(leased[number], f"s{round_}"))
            run = await store.get_run("default", run_id=leased[number].run.run_id)
            assert run is not None
            assert run.run == leased[number].run

    await asyncio.gather(*(caller(number) for number in range(20)))
    direct = await asyncpg.connect(postgres_url)
    assert await direct.fetchval("SELECT count(*) FROM steps WHERE kind = 1") == 200
    await direct.close()


def test_it_does_not_run_as_root(pooler: PgBouncer) -> None:
    status = Path(f"/proc/{pooler.pid}/status")
    if not status.exists():
        return  # elsewhere than on Linux nobody runs tests as root
    uids = next(line for line in status.read_text().splitlines() if line.startswith("Uid:")).split()[1:]
    assert "0" not in uids
    assert os.geteuid() != 0 or set(uids) != {str(os.geteuid())}

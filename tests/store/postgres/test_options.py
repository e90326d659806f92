"""What a URL says to Kagzi: the schema of its tables, how many connections, and how long statements may take."""

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest

from kagzi.core.errors import InvalidArgument
from kagzi.core.run.outcomes import Begun
from kagzi.core.text.database_options import read_options, with_options
from kagzi.store.postgres import PostgresBus, PostgresMigrator, PostgresStore
from kagzi.store.postgres.connection.connection import HOT_SETTINGS, QUERY_SETTINGS
from kagzi.store.postgres.connection.target import Target
from kagzi.store.postgres.partition import PostgresPartitioner
from kagzi.store.protocol import TypeKey, Wake
from kagzi.system import SystemRng
from tests.support.timeouts import LOADED_MACHINE_S

from .verbs import begin, running, write

TABLES = (
    "SELECT schemaname, count(*) FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema') GROUP BY 1"
)


@pytest.fixture
async def plain(postgres_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(postgres_url)
    yield connection
    await connection.close()


async def opened(url: str) -> PostgresStore:
    await PostgresMigrator(url).migrate()
    store = PostgresStore(url, rng=SystemRng())
    await store.open()
    return store


@pytest.mark.parametrize("pooler", ["", "&pgbouncer=true"])
async def test_two_schemas_of_a_database_know_nothing_of_each_other(
    postgres_url: str, plain: asyncpg.Connection, pooler: str
) -> None:
    one, two = [await opened(f"{postgres_url}&schema={name}{pooler}") for name in ("kagzi", "second")]
    try:
        [lease] = await running(one, 1)
        [outcome] = await write(one, begin(lease, "a"))
        assert isinstance(outcome, Begun)
        assert await plain.fetchval("SELECT count(*) FROM kagzi.runs") == 1
        assert await plain.fetchval("SELECT count(*) FROM second.runs") == 0
    finally:
        await one.close()
        await two.close()
    tables = dict(await plain.fetch(TABLES))
    assert set(tables) == {"kagzi", "second"}
    assert tables["kagzi"] == tables["second"] > 20


async def test_migrating_is_repeated_and_raced_in_a_schema(postgres_url: str) -> None:
    url = f"{postgres_url}&schema=kagzi"
    states = await asyncio.gather(*(PostgresMigrator(url).migrate() for _ in range(4)))
    assert len(set(states)) == 1
    assert not (await PostgresMigrator(url).status()).pending
    assert (await PostgresMigrator(postgres_url).status()).current == 0


async def test_histories_in_a_schema_are_partitioned(postgres_url: str) -> None:
    url = f"{postgres_url}&schema=kagzi"
    await (await opened(url)).close()
    assert await PostgresPartitioner(url).partition(2)
    assert not await PostgresPartitioner(url).partition(2)
    store = await opened(url)
    try:
        [outcome] = await write(store, begin((await running(store, 1))[0], "a"))
        assert isinstance(outcome, Begun)
    finally:
        await store.close()


async def test_wakes_stay_within_a_schema(postgres_url: str) -> None:
    names = ("kagzi", "second", "kagzi")
    one, two, three = [
        PostgresBus(f"{postgres_url}&schema={name}", server_id=f"server-{n}") for n, name in enumerate(names)
    ]
    foreign: list[Wake] = []
    woken = asyncio.Event()
    await two.open(foreign.append)
    await three.open(lambda _: woken.set())
    try:
        await one.publish(Wake(pending=frozenset({TypeKey("default", "hello")})))
        await asyncio.wait_for(woken.wait(), LOADED_MACHINE_S)
        assert not foreign
    finally:
        for bus in (one, two, three):
            await bus.close()


async def test_timeouts_are_those_of_the_url(postgres_url: str) -> None:
    target = Target(f"{postgres_url}&statement_timeout=2m&lock_timeout=700ms")
    for settings, lock in ((HOT_SETTINGS, "50ms"), (QUERY_SETTINGS, "700ms")):
        connection = await target.connect(target.settings(settings))
        try:
            assert not target.pooled
            assert await connection.fetchval("SHOW statement_timeout") == "2min"
            assert await connection.fetchval("SHOW lock_timeout") == lock
        finally:
            await connection.close()


@pytest.mark.parametrize("size", [8, 14])
async def test_a_server_has_no_more_connections_than_the_url_allows(
    postgres_url: str, plain: asyncpg.Connection, size: int
) -> None:
    store = await opened(f"{postgres_url}&pool_size={size}")
    try:
        links = [store._hot, store._duty, *store._questions.links, *store._readers.links]
        for link in links:
            async with link.use():
                pass
        used = await plain.fetchval("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'kagzi'")
        assert used == len(links) == size - 2  # the other two are those of the bus
    finally:
        await store.close()


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("schema=Kagzi", "schema='Kagzi'"),
        ("schema=a;drop", "schema='a;drop'"),
        ("schema=pg_mine", "begin with"),
        (f"schema={'a' * 41}", "40"),
        ("pool_size=7", "from 8 to 200"),
        ("pool_size=many", "pool_size='many'"),
        ("statement_timeout=15", "statement_timeout='15'"),
        ("lock_timeout=0s", "100 ms"),
        ("pgbouncer=maybe", "true or false"),
    ],
)
def test_a_bad_option_is_refused_by_name_and_nothing_else_is_shown(option: str, words: str) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        Target(f"postgresql://user:word@host/db?{option}")
    assert words in refusal.value.message
    assert "word" not in refusal.value.message.replace(words, "")


def test_options_of_ours_do_not_reach_the_driver() -> None:
    url, options = read_options("postgresql://u@h/db?schema=a&pool_size=9&lock_timeout=1s&sslmode=require")
    assert url == "postgresql://u@h/db?sslmode=require"
    assert (options.schema, options.pool_size, options.lock_timeout_ms) == ("a", 9, 1_000)


def test_an_option_given_twice_must_say_the_same() -> None:
    url = with_options("postgresql://u@h/db?schema=a", {"schema": "a", "pool_size": "9"})
    assert url == "postgresql://u@h/db?schema=a&pool_size=9"
    with pytest.raises(InvalidArgument, match="contradicts"):
        with_options(url, {"schema": "b"})

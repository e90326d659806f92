"""Whose transaction it is: the effect's own, one that it joins, one that it refuses; and two attempts at once."""

import asyncio
from pathlib import Path

import asyncpg
import psycopg
import pytest
import sqlalchemy
from sqlalchemy.orm import Session

import kagzi
from kagzi import InvalidArgument, NonRetryable, PreconditionFailed
from kagzi.crypto import AesGcm
from kagzi.sdk.transactions.tables import EFFECTS, ddl
from kagzi.sdk.transport.payload_codec import MessageCodec
from tests.support.polling import until

from .databases import BEGIN_BY_THEMSELVES, POSTGRES, SQLITE, Database, both, made, opened, payments, step

ASYNC = ("asyncpg", "psycopg-async", "sqlalchemy-async-session")


@pytest.mark.parametrize("kind", POSTGRES)
async def test_it_joins_the_block_of_a_transaction(kind: str, url: str) -> None:
    async def body(*, fails: bool) -> None:
        async with opened(kind, url) as database, database.block():
            await database.pay("before")
            async with database.effect() as effect:
                assert not effect.done, "its row was rolled back with the user's"
                await database.pay("a")
                effect.record(1)
            if fails:
                raise ValueError("after")

    with step(1):
        with pytest.raises(ValueError, match="after"):
            await body(fails=True)
        assert await payments(kind, url) == []
        await body(fails=False)
    assert await payments(kind, url) == ["a", "before"]
    with step(2):
        async with opened(kind, url) as database, database.block(), database.effect() as effect:
            assert effect.done


@pytest.mark.parametrize("kind", POSTGRES)
async def test_an_error_that_is_caught_within_the_transaction_takes_the_effect_back(kind: str, url: str) -> None:
    async def declined(database: Database) -> None:
        async with database.effect():
            await database.pay("a")
            raise ValueError("declined")

    with step(1):
        async with opened(kind, url) as database, database.block():
            await database.pay("before")
            with pytest.raises(ValueError, match="declined"):
                await declined(database)
            with pytest.raises(NonRetryable, match=r"without effect\.record"):
                async with database.effect():
                    await database.pay("a")
    assert await payments(kind, url) == ["before"]
    with step(2):
        async with opened(kind, url) as database, database.effect() as effect:
            assert not effect.done
            effect.record(1)


@pytest.mark.parametrize("kind", [kind for kind in BEGIN_BY_THEMSELVES if kind not in SQLITE])
async def test_a_transaction_that_began_by_itself_is_refused(kind: str, url: str) -> None:
    with step(1):
        async with opened(kind, url) as database:
            await database.execute("select 1")
            with pytest.raises(NonRetryable, match=r"began implicitly, .* Commit it first, or open it as a block: `"):
                async with database.effect():
                    await database.pay("a")
            await database.commit()
            async with database.effect() as effect:
                await database.pay("a")
                effect.record(1)
    assert await payments(kind, url) == ["a"]


@pytest.mark.parametrize("kind", SQLITE)
async def test_sqlite_joins_nothing(kind: str, tmp_path: Path) -> None:
    url = str(tmp_path / "shop.db")
    await made(kind, url)
    with step(1):
        async with opened(kind, url) as database, database.block():
            with pytest.raises(NonRetryable, match="SQLite through SQLAlchemy has no savepoints"):
                async with database.effect():
                    raise AssertionError


@pytest.mark.parametrize("kind", ASYNC)
async def test_of_two_attempts_at_once_the_second_reads_what_the_first_does(kind: str, url: str) -> None:
    """The first has lost its lease and does not know. The second waits at the row until the first has ended."""
    inside, released = asyncio.Event(), asyncio.Event()

    async def first() -> str:
        with step(1):
            async with opened(kind, url) as database, database.effect() as effect:
                inside.set()
                await released.wait()
                await database.pay("first")
                effect.record("first")
                return "first"

    async def second() -> str:
        with step(2):
            async with opened(kind, url) as database, database.effect() as effect:
                if effect.done:
                    return f"read {effect.result(str)}"
                await database.pay("second")
                effect.record("second")
                return "second"

    async def in_time() -> str:
        await inside.wait()
        working = asyncio.create_task(second())
        await until_waiting(url)
        assert not working.done()
        released.set()
        return await working

    with step(1):
        async with opened(kind, url) as database, database.effect("creates the table") as effect:
            effect.record()
    assert await both(first(), in_time()) == ["first", "read first"]
    assert await payments(kind, url) == ["first"]


@pytest.mark.parametrize("kind", ["asyncpg"])
async def test_a_second_attempt_works_when_the_first_one_fails(kind: str, url: str) -> None:
    inside, fail = asyncio.Event(), asyncio.Event()

    async def first() -> None:
        with step(1):
            async with opened(kind, url) as database, database.effect():
                await database.pay("first")
                inside.set()
                await fail.wait()
                raise ValueError("lost")

    async def second() -> bool:
        with step(2):
            await inside.wait()
            asyncio.get_running_loop().create_task(_fail_when_waited_for(url, fail))
            async with opened(kind, url) as database, database.effect() as effect:
                done = effect.done
                await database.pay("second")
                effect.record()
                return done

    with step(1):
        async with opened(kind, url) as database, database.effect("creates the table") as effect:
            effect.record()
    failed, done = await both(first(), second())
    assert isinstance(failed, ValueError)
    assert done is False
    assert await payments(kind, url) == ["second"]


async def _fail_when_waited_for(url: str, fail: asyncio.Event) -> None:
    await until_waiting(url)
    fail.set()


@pytest.mark.parametrize("isolation", ["repeatable_read", "serializable"])
async def test_no_isolation_level_lets_two_attempts_through(isolation: str, postgres_url: str) -> None:
    """The second has its snapshot from before the first's commit: PostgreSQL refuses it, and its next attempt reads."""
    await made("asyncpg", postgres_url)
    with step(1):
        async with opened("asyncpg", postgres_url) as database, database.effect("creates the table") as effect:
            effect.record()

    async def second(one: Database, two: Database) -> None:
        async with two.raw.transaction(isolation=isolation):
            await two.execute("select count(*) from payments")
            with step(1):
                async with one.effect() as effect:
                    await one.pay("first")
                    effect.record("first")
            with step(2):
                async with two.effect():
                    await two.pay("second")

    async with opened("asyncpg", postgres_url) as one, opened("asyncpg", postgres_url) as two:
        with pytest.raises(asyncpg.SerializationError):
            await second(one, two)
        with step(3):
            async with two.raw.transaction(isolation=isolation), two.effect() as effect:
                assert effect.done
    assert await payments("asyncpg", postgres_url) == ["first"]


async def test_a_commit_within_the_block_is_noticed_by_the_next_attempt(postgres_url: str) -> None:
    await made("asyncpg", postgres_url)

    async def commits_itself() -> None:
        async with opened("asyncpg", postgres_url) as database, database.effect():
            await database.pay("a")
            await database.raw.execute("COMMIT")
            raise AssertionError("the body goes wrong, and its work is committed")

    with step(1), pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError, AssertionError)):
        await commits_itself()
    with step(2):
        async with opened("asyncpg", postgres_url) as database:
            with pytest.raises(NonRetryable, match="was committed without a result"):
                async with database.effect() as effect:
                    effect.record()


async def until_waiting(url: str) -> None:
    """Somebody waits for another one's row."""
    watching = await asyncpg.connect(url)
    try:

        async def waits() -> bool:
            return await watching.fetchval(
                "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
            )

        await until(waits, what="an attempt waits for the other one's row")
    finally:
        await watching.close()


# --- the table --------------------------------------------------------------------------------------------------------


async def test_it_is_created_once_by_many_at_once(postgres_url: str) -> None:
    await made("asyncpg", postgres_url)

    async def body(number: int) -> None:
        with step(1, run=f"run-{number}"):
            async with opened("asyncpg", postgres_url) as database, database.effect() as effect:
                effect.record(number)

    async with asyncio.timeout(60):
        await asyncio.gather(*(body(number) for number in range(8)))
    async with opened("asyncpg", postgres_url) as database:
        assert await database.execute(f"select count(*) from {EFFECTS}") == [(8,)]


async def test_who_may_not_create_it_is_told_how(postgres_url: str) -> None:
    await made("asyncpg", postgres_url)
    async with opened("asyncpg", postgres_url) as owner:
        await owner.execute("create role clerk login")
        try:
            await owner.execute("revoke create on schema public from public")
            await owner.execute("grant insert on payments to clerk")
            clerk = postgres_url.replace("postgres@", "clerk@")
            with step(1):
                async with opened("asyncpg", clerk) as database:
                    with pytest.raises(NonRetryable, match="`kagzi effects sql` prints the statements"):
                        async with database.effect():
                            await database.pay("a")
                await owner.raw.execute(ddl(EFFECTS, "postgresql"))
                await owner.execute(f"grant select, insert, update on {EFFECTS} to clerk")
                async with opened("asyncpg", clerk) as database, database.effect() as effect:
                    await database.pay("a")
                    effect.record()
        finally:
            await owner.execute("drop owned by clerk")
            await owner.execute("drop role clerk")
    assert await payments("asyncpg", postgres_url) == ["a"]


# --- misuse -----------------------------------------------------------------------------------------------------------


async def test_it_belongs_into_a_step(tmp_path: Path) -> None:
    with pytest.raises(PreconditionFailed, match=r"works only in the body of a step.*client.start_in"):
        kagzi.effect(object())


def _sessions(path: Path) -> sqlalchemy.Engine:
    return sqlalchemy.create_engine(f"sqlite:///{path / 'x.db'}")


async def test_what_is_no_connection_is_refused(tmp_path: Path) -> None:
    engine = _sessions(tmp_path)
    with step(1):
        with pytest.raises(InvalidArgument, match=r"engine\.connect\(\)"):
            kagzi.effect(engine)
        with pytest.raises(InvalidArgument, match="asyncpg, psycopg 3, or SQLAlchemy"):
            kagzi.effect("postgresql://localhost")
        with pytest.raises(InvalidArgument, match=r"async with pool\.acquire"):
            kagzi.effect(asyncpg.create_pool("postgresql://localhost"))
    with Session(engine) as session, step(1):
        with pytest.raises(InvalidArgument, match="name=7"):
            kagzi.effect(session, 7)  # type: ignore[arg-type]
        with pytest.raises(NonRetryable, match="is used with `with kagzi"):
            async with kagzi.effect(session):
                raise AssertionError
        effect = kagzi.effect(session)
        with pytest.raises(NonRetryable, match=r"effect\.done: .* is not open"):
            assert effect.done
        with effect:
            effect.record()
        with pytest.raises(NonRetryable, match=r"effect\.record\(\): .* has ended"):
            effect.record()
        with pytest.raises(NonRetryable, match=r"has ended\. Call kagzi\.effect"), effect:
            raise AssertionError
    engine.dispose()


async def test_a_cursor_is_refused(postgres_url: str) -> None:
    refused = pytest.raises(InvalidArgument, match="Give the connection, not a cursor")
    with psycopg.connect(postgres_url) as connection, step(1), refused:
        kagzi.effect(connection.cursor())


# --- values -----------------------------------------------------------------------------------------------------------


async def test_the_codec_of_the_worker_encodes_results(tmp_path: Path) -> None:
    codec = MessageCodec(AesGcm(keys={"a": b"k" * 32}))
    engine = _sessions(tmp_path)
    with Session(engine) as session:
        with step(1, codec=codec), kagzi.effect(session) as effect:
            effect.record("secret")
        ((kept, namespace),) = session.execute(sqlalchemy.text(f"select result, namespace from {EFFECTS}")).all()
        assert "secret" not in kept
        assert namespace == "shop"
        session.commit()
        with step(2, codec=codec), kagzi.effect(session) as effect:
            assert effect.result(str) == "secret"
        with (
            step(3),
            pytest.raises(PreconditionFailed, match="there is no codec here"),
            kagzi.effect(session) as effect,
        ):
            effect.result()
    engine.dispose()

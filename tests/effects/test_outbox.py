"""client.start_in: a start that is committed with the user's rows, and becomes one run."""

import asyncio
import contextlib
import io
import json
import sqlite3
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import asyncpg
import psycopg
import pytest

import kagzi.sync
from kagzi import InvalidArgument, Kagzi, KagziError, PreconditionFailed, Worker
from kagzi.cli.exits import Exit
from kagzi.cli.main import run
from kagzi.core.limits import MESSAGE_HARD_BYTES, Settings
from kagzi.crypto import AesGcm
from kagzi.server.startup import CannotStart
from kagzi.store.postgres.outbox.outbox import PostgresOutbox
from tests.support.polling import until

from .databases import POSTGRES, opened, payments
from .outboxes import exists, greet, outcomes, rows, serving, until_drained, until_refused

HOURLY = Settings(poll_interval_ms=3_600_000)


@pytest.fixture
def kind() -> str:
    return "asyncpg"


async def committed(client: Kagzi, url: str, name: str, **options: Any) -> str:
    async with opened("asyncpg", url) as database, database.block():
        return await client.start_in(database.raw, greet, name, **options)


async def test_a_run_is_started_if_the_transaction_is_committed(url: str) -> None:
    async def order(client: Kagzi, kind: str, *, fails: bool) -> None:
        async with opened(kind, url) as database, database.block():
            await database.pay(kind)
            await client.start_in(database.raw, greet, kind, id=f"{kind} {fails}", labels={"kind": kind})
            if fails:
                raise ValueError("out of stock")

    async with serving(url) as server, Kagzi.connect(server.grpc_address) as client:
        for kind in POSTGRES:
            with pytest.raises(ValueError, match="out of stock"):
                await order(client, kind, fails=True)
            await order(client, kind, fails=False)
        await until_drained(url)
        assert await payments("asyncpg", url) == sorted(POSTGRES)
        assert {run.workflow_id async for run in client.list()} == {f"{kind} False" for kind in POSTGRES}
        async with Worker(server.grpc_address, workflows=[greet]):
            for kind in POSTGRES:
                run = client.get(f"{kind} False", greet)
                assert await run.result(timeout="60s") == f"Hello, {kind}"
                assert (await run).labels == {"kind": kind}
        assert outcomes(server)["started"] == len(POSTGRES)


async def test_a_server_is_told_at_once(url: str) -> None:
    """It would poll in an hour."""
    async with serving(url, settings=HOURLY) as server, Kagzi.connect(server.grpc_address) as client:
        await committed(client, url, "first")
        await until_drained(url)
        await committed(client, url, "second", id="second")
        await until_drained(url)
        assert await exists(client, "second")


async def test_without_an_id_the_run_gets_one(url: str) -> None:
    async with serving(url) as server, Kagzi.connect(server.grpc_address) as client:
        first, second = [await committed(client, url, "x") for _ in range(2)]
        await until_drained(url)
        assert first != second
        assert await exists(client, first)
        assert await exists(client, second)


async def test_it_wants_a_transaction(url: str, tmp_path: Any) -> None:
    async with serving("") as server, Kagzi.connect(server.grpc_address) as client:
        async with opened("asyncpg", url) as database:
            with pytest.raises(PreconditionFailed, match=r"Call it within `async with connection\.transaction\(\):`"):
                await client.start_in(database.raw, greet, "x")
        refused = pytest.raises(PreconditionFailed, match=r"`with connection\.transaction\(\):`")
        with psycopg.connect(url, autocommit=True) as connection, refused:
            await client.start_in(connection, greet, "x")
        with pytest.raises(InvalidArgument, match="is not a connection"):
            await client.start_in("postgresql://localhost", greet, "x")
        async with opened("sqlite-session", str(tmp_path / "shop.db")) as database:
            with pytest.raises(InvalidArgument, match="An outbox is in PostgreSQL"):
                await client.start_in(database.raw, greet, "x")
    assert await rows(url) == []


BAD: dict[str, dict[str, Any]] = {
    "id": {"id": "a\x00b"},
    "long id": {"id": "x" * 300},
    "namespace": {"namespace": "n" * 300},
    "labels": {"labels": {str(number): "x" for number in range(65)}},
    "label": {"labels": {"a": "x" * 300}},
    "priority": {"priority": 101},
    "deadline": {"deadline": datetime(2020, 1, 1, tzinfo=UTC)},
    "delay": {"delay": "1s", "start_at": datetime.now(UTC)},
    "long delay": {"delay": timedelta(days=365_000)},
    "late": {"delay": "2h", "deadline": datetime.now(UTC) + timedelta(hours=1)},
    "on_conflict": {"on_conflict": "maybe"},
    "key": {"concurrency_key": "k" * 300},
    "context": {"context": {"a": object()}},
    "version": {"version": "v" * 300},
    "input": {"input": 7},
    "large": {"input": "x" * 3_000_000},
}


async def test_what_start_refuses_is_refused_before_anything_is_written(url: str) -> None:
    async def refusal(start: Any) -> tuple[type, str]:
        with pytest.raises(KagziError) as refused:
            await start
        return type(refused.value), refused.value.message

    async with (
        serving("") as server,
        Kagzi.connect(server.grpc_address) as client,
        opened("asyncpg", url) as database,
        database.block(),
    ):
        for what, bad in BAD.items():
            options = {"input": "x", "id": "x", **bad}
            there = await refusal(client.start(greet, **options))
            assert await refusal(client.start_in(database.raw, greet, **options)) == there, what
    assert await rows(url) == []


async def test_what_only_a_server_can_refuse_stays_with_the_reason(url: str) -> None:
    strict = Settings(poll_interval_ms=200, strict_namespaces=True)
    more: dict[str, Any] = {"outbox_namespaces": ("default", "unknown"), "settings": strict}
    async with serving(url, **more) as server, Kagzi.connect(server.grpc_address) as client:
        for namespace in ("default", "billing"):
            await client.namespaces.create(namespace)
        await committed(client, url, "x", id="a", namespace="unknown")
        await committed(client, url, "x", id="b", namespace="billing")
        await committed(client, url, "x", id="c")
        async with opened("asyncpg", url) as database:
            await database.execute(
                "insert into kagzi_outbox (namespace, workflow_type, workflow_id, request_id, request) "
                "values ('default', 'greet', 'd', 'd', '\\xff'), ('default', 'greet', 'e', 'e', '')"
            )
        await committed(client, url, "x", id="f")
        await until_drained(url)
        refused = {row["workflow_id"]: row["error"] for row in await until_refused(url, 4)}
        assert refused.keys() == {"a", "b", "d", "e"}
        assert "namespace unknown not found" in refused["a"]
        assert "this outbox may start runs in default, unknown, not in billing" in refused["b"]
        assert "not a kagzi.v1.StartWorkflowRequest" in refused["d"]
        assert "request_id is empty" in refused["e"]
        assert await exists(client, "c")
        assert await exists(client, "f")
        assert outcomes(server) == {"started": 2, "existing": 0, "postponed": 0, "refused": 4}
        listed, text = await asyncio.to_thread(ask_outbox, "list", "--json", url=url)
        assert listed == Exit.OK
        starts = json.loads(text)
        assert [start["workflow_id"] for start in starts] == ["a", "b", "d", "e"]
        assert starts[0]["error"] == refused["a"]
        unknown = str(starts[0]["id"])
        assert await asyncio.to_thread(ask_outbox, "drop", "0", url=url) == (Exit.NOT_FOUND, "")
        assert await asyncio.to_thread(ask_outbox, "retry", url=url) == (2, ""), "neither ids nor --all"
        await client.namespaces.create("unknown")
        assert await asyncio.to_thread(ask_outbox, "retry", unknown, "--json", url=url) == (0, '{"retried": 1}')
        await until_drained(url)
        assert (await asyncio.to_thread(ask_outbox, "drop", "--all", "--json", url=url))[1] == '{"dropped": 3}'
        assert await client.get("a", namespace="unknown").status() == "pending"
    assert await rows(url) == []


async def test_rows_of_any_kind_keep_back_no_others(url: str) -> None:
    """Times without end, numbers at their end, requests that nobody wrote by `start_in`."""
    async with serving(url) as server, Kagzi.connect(server.grpc_address) as client:
        times = ["infinity", "-infinity", "294000-01-01", "4000-01-01 BC", "2000-01-01"]
        await committed(client, url, "x", id="first")
        async with opened("asyncpg", url) as database:
            for number, time in enumerate(times):
                await database.execute(
                    "insert into kagzi_outbox (namespace, workflow_type, workflow_id, request_id, request, created_at) "
                    f"values ('default', 'greet', 't{number}', 't{number}', '', '{time}')"
                )
            await database.execute(
                "insert into kagzi_outbox (namespace, workflow_type, workflow_id, request_id, request, attempts) "
                "values ('default', 'greet', 'tried', 'tried', '', 2147483647), "
                f"('default', 'greet', 'large', 'large', decode(repeat('ff', {MESSAGE_HARD_BYTES + 1}), 'hex'), 0)"
            )
        await committed(client, url, "x", id="good")
        await until(partial(exists, client, "good"), what="the good one is started")
        connection = await asyncpg.connect(url)

        async def refusals() -> dict[str, str] | None:
            kept = await connection.fetch("select workflow_id, error from kagzi_outbox where refused_at is not null")
            return dict(kept) if len(kept) == len(times) + 2 else None

        refused = await until(refusals, what="the others are refused")
        await connection.close()
        assert f"has {MESSAGE_HARD_BYTES + 1} bytes; the limit is {MESSAGE_HARD_BYTES}" in refused["large"]
        assert "request_id is empty" in refused["t0"]


def ask_outbox(*arguments: str, url: str) -> tuple[int, str]:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        code = run(["outbox", arguments[0], "--outbox", url, *arguments[1:]])
    return code, " ".join(out.getvalue().split())


@pytest.mark.parametrize(
    "arguments", [["effects", "sql", "--dialect", "sqlite"], ["effects", "sql"], ["outbox", "sql"]]
)
async def test_statements_for_migrations_can_be_executed_twice(
    arguments: list[str], postgres_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await asyncio.to_thread(run, arguments) == Exit.OK
    script = capsys.readouterr().out
    if "sqlite" in arguments:
        with contextlib.closing(sqlite3.connect(":memory:")) as file:
            file.executescript(script)
            file.executescript(script)
        return
    async with opened("asyncpg", postgres_url) as database:
        await database.raw.execute(script)
        await database.raw.execute(script)


async def test_a_namespace_that_is_full_delays_its_own_starts_only(url: str) -> None:
    async with serving(url) as server, Kagzi.connect(server.grpc_address) as client:
        await client.namespaces.create("small", max_open_runs=1)
        for number in range(3):
            await committed(client, url, "x", id=f"small-{number}", namespace="small")
        await committed(client, url, "x", id="other")
        await until(partial(exists, client, "other"), what="the neighbour's start took place")
        waiting = [row for row in await rows(url) if row["attempts"]]
        assert len(waiting) == 2
        assert all("open_runs_limit" in row["error"] and row["refused_at"] is None for row in waiting)
        await client.namespaces.update("small", max_open_runs=10)
        await until_drained(url)
        assert outcomes(server)["refused"] == 0


async def test_a_start_that_was_not_deleted_is_repeated_and_finds_its_run(url: str) -> None:
    """The database of the user refuses the first two deletes: as after a server that died before it."""
    on_conflicts = ("existing", "fail", "replace")
    async with serving("") as server, Kagzi.connect(server.grpc_address) as client:
        for on_conflict in on_conflicts:
            await committed(client, url, "x", id=on_conflict, on_conflict=on_conflict)
    async with opened("asyncpg", url) as database:
        await database.raw.execute(
            """
            create sequence deletes;
            create or replace function refuse() returns trigger language plpgsql as $$
            begin
                if nextval('deletes') <= 2 then raise 'not now' using errcode = '57P01'; end if;
                return old;
            end $$;
            create trigger refuse before delete on kagzi_outbox execute function refuse();
            """
        )
        try:
            async with serving(url) as server, Kagzi.connect(server.grpc_address) as client:
                await until_drained(url)
                runs = [run.workflow_id async for run in client.list()]
                assert sorted(runs) == sorted(on_conflicts)
                assert outcomes(server) == {"started": 3, "existing": 6, "postponed": 0, "refused": 0}
        finally:
            await database.raw.execute("drop sequence deletes; drop function refuse cascade")


async def test_two_servers_divide_an_outbox(url: str, migrated_postgres_url: str) -> None:
    async with (
        serving("") as server,
        Kagzi.connect(server.grpc_address) as client,
        opened("asyncpg", url) as database,
        database.block(),
    ):
        for number in range(250):
            await client.start_in(database.raw, greet, "x", id=str(number))
    db = migrated_postgres_url
    async with serving(url, db=db) as one, serving(url, db=db) as two, Kagzi.connect(one.grpc_address) as client:
        await until_drained(url)
        assert await client.count() == 250
        started = [outcomes(server) for server in (one, two)]
        assert sum(each["started"] for each in started) == 250
        assert sum(each["existing"] for each in started) == 0


async def test_a_delay_counts_from_the_call(url: str) -> None:
    async with serving("") as server, Kagzi.connect(server.grpc_address) as client:
        await committed(client, url, "x", id="soon", delay="1h")
        await committed(client, url, "x", id="over", delay="1h")
    async with opened("asyncpg", url) as database:
        await database.execute(
            "update kagzi_outbox set created_at = created_at - interval '59 min' where workflow_id = 'soon'"
        )
        await database.execute(
            "update kagzi_outbox set created_at = created_at - interval '2 h' where workflow_id = 'over'"
        )
    async with serving(url) as server, Kagzi.connect(server.grpc_address) as client:
        await until_drained(url)
        now = datetime.now(UTC)
        soon, over = [await client.get(each) for each in ("soon", "over")]
        assert over.status == "pending"
        assert soon.status == "sleeping"
        assert soon.wake_at is not None
        assert now < soon.wake_at < now + timedelta(minutes=2)


async def test_a_server_waits_for_a_database_and_a_table_that_are_not_there(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    nowhere = "postgresql://postgres@127.0.0.1:1/shop"
    async with serving(nowhere) as server, Kagzi.connect(server.grpc_address) as client:
        assert await client.count() == 0
    async with serving(url) as server, Kagzi.connect(server.grpc_address) as client:
        await until(lambda: "has no table kagzi_outbox yet" in caplog.text, what="the server says what is missing")
        await committed(client, url, "x", id="x")
        await until_drained(url)
        assert await exists(client, "x")


async def test_who_asks_for_keys_says_where_an_outbox_may_start_runs(url: str) -> None:
    with pytest.raises(CannotStart, match="--outbox-namespaces shop,billing"):
        async with serving(url, auth="keys"):
            raise AssertionError


def test_without_await(shared_url: str) -> None:
    with psycopg.connect(shared_url) as connection:
        connection.execute("drop table if exists kagzi_outbox")
        connection.commit()
        with kagzi.sync.Kagzi.connect(":memory:") as client:
            workflow_id = client.start_in(connection, greet, "x", labels={"a": "b"})
            connection.commit()
            assert connection.execute("select workflow_id from kagzi_outbox").fetchall() == [(workflow_id,)]

            async def opened_async() -> asyncpg.Connection:
                return await asyncpg.connect(shared_url)

            loop = asyncio.new_event_loop()
            raw = loop.run_until_complete(opened_async())
            with pytest.raises(InvalidArgument, match=r"Use kagzi\.Kagzi with it"):
                client.start_in(raw, greet, "x")
            loop.run_until_complete(raw.close())
            loop.close()


async def test_inputs_are_encoded_on_the_way(url: str) -> None:
    codec = AesGcm(keys={"a": b"k" * 32})
    async with serving(url) as server, Kagzi.connect(server.grpc_address, codec=codec) as client:
        async with opened("asyncpg", url) as database, database.block():
            await client.start_in(database.raw, greet, "secret name", id="x")
            ((request,),) = await database.execute("select request from kagzi_outbox")
            assert b"secret name" not in request
        await until_drained(url)
        async with Worker(server.grpc_address, workflows=[greet], codec=codec):
            assert await client.get("x", greet).result(timeout="60s") == "Hello, secret name"


async def test_a_drain_that_is_cancelled_ends_although_its_rollback_fails(url: str) -> None:
    """The failed rollback once took the place of the cancellation, and the server never stopped."""
    async with serving("") as server, Kagzi.connect(server.grpc_address) as client:
        await committed(client, url, "x")
    outbox, begun = PostgresOutbox(url), asyncio.Event()

    async def start(_rows: object) -> Any:
        begun.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            assert outbox._connection is not None
            outbox._connection.terminate()

    draining = asyncio.create_task(outbox.drain(1, start))
    await begun.wait()
    draining.cancel()
    with pytest.raises(asyncio.CancelledError):
        await draining

"""Client and worker against a real server: whole runs, restarts, failover, embedded addresses."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from kagzi import (
    AlreadyExists,
    Context,
    Kagzi,
    NotFound,
    Retry,
    RunError,
    RunStatus,
    StepStatus,
    Worker,
    current_step,
    workflow,
)
from kagzi.embedded import EmbeddedServer
from kagzi.sdk.transport.calls import CallChannel
from kagzi.server.app import Server
from kagzi.server.config import ServerConfig
from kagzi.server.listen import ListenAddress, parse_listen
from tests.sdk.net.test_connect import free_port
from tests.support.timeouts import LOADED_MACHINE_S

WAIT_S = LOADED_MACHINE_S


@workflow
async def greet(ctx: Context, name: str) -> str:
    first = await ctx.step("greet").run(lambda: f"Hello, {name}!")
    return await ctx.step("shout").run(first.upper)


@workflow
async def nap(ctx: Context, name: str) -> str:
    await ctx.sleep("nap", timedelta(milliseconds=20))
    return name


@workflow(retry=Retry.fixed(2, "10ms"))
async def flaky(ctx: Context, name: str) -> str:
    def body() -> str:
        if current_step().attempt == 1:
            raise ConnectionError("not yet")
        return name

    return await ctx.step("try").run(body)


@workflow
async def broken(ctx: Context, name: str) -> str:
    raise KeyError(name)


ALL = [greet, nap, flaky, broken]


@asynccontextmanager
async def serving(db: str, port: int = 0) -> AsyncIterator[str]:
    server = Server(
        ServerConfig(db=db, listen=ListenAddress("127.0.0.1", port), http=parse_listen("127.0.0.1:0", field="http"))
    )
    await server.start()
    try:
        yield server.grpc_address
    finally:
        await server.stop()


@pytest.fixture
async def address() -> AsyncIterator[str]:
    async with serving(":memory:") as where:
        yield where


async def test_whole_runs(address: str) -> None:
    async with asyncio.timeout(WAIT_S), Worker(address, workflows=ALL), Kagzi.connect(address) as client:
        assert await client.run(greet, "ada") == "HELLO, ADA!"
        assert await client.run(nap, "bob") == "bob"
        assert await client.run(flaky, "cy") == "cy"
        with pytest.raises(RunError, match="KeyError"):
            await client.run(broken, "dan")
        run = await client.start(greet, "eve", id="e1", labels={"team": "a"})
        assert run.created
        assert run.url.endswith(f"/runs/{run.id}")
        assert await run.result() == "HELLO, EVE!"
        assert [(step.id, step.status) for step in await run.steps()] == [
            ("greet", StepStatus.COMPLETED),
            ("shout", StepStatus.COMPLETED),
        ]
        assert await client.get("e1", greet).result() == "HELLO, EVE!"
        assert await client.get(run.id).status() is RunStatus.COMPLETED
        assert [each.id async for each in client.list(labels={"team": "a"})] == [run.id]
        assert len([each async for each in client.list(status="completed", workflow=greet)]) == 2
        with pytest.raises(NotFound, match="nowhere"):
            await client.get("nowhere").status()


async def test_many_at_once(address: str) -> None:
    async with (
        asyncio.timeout(WAIT_S),
        Worker(address, workflows=ALL, max_concurrent=50),
        Kagzi.connect(address) as client,
    ):
        results = await asyncio.gather(*(client.run(greet, f"n{n}") for n in range(300)))
        assert results == [f"HELLO, N{n}!" for n in range(300)]


async def test_one_run_for_one_id_and_namespaces_apart(address: str) -> None:
    async with (
        asyncio.timeout(WAIT_S),
        Kagzi.connect(address) as client,
        Kagzi.connect(address, namespace="b") as other,
    ):
        first = await client.start(greet, "x", id="same")
        again = await client.start(greet, "x", id="same")
        assert (again.id, again.created) == (first.id, False)
        with pytest.raises(AlreadyExists):
            await client.start(greet, "x", id="same", on_conflict="fail")
        foreign = await other.start(greet, "x", id="same")
        assert foreign.created
        with pytest.raises(NotFound):
            await other.get(first.id).status()
        delayed = await client.start(greet, "x", delay="1h")
        assert await delayed.status() is RunStatus.SLEEPING
        await first.cancel("enough")
        assert await first.status() is RunStatus.CANCELLED
        with pytest.raises(RunError, match="cancelled"):
            await first.result()


async def test_a_server_that_restarts_under_load_costs_nobody_an_error(tmp_path: Path) -> None:
    db, port = f"sqlite:///{tmp_path}/kagzi.db", free_port()
    where = f"127.0.0.1:{port}"
    async with asyncio.timeout(60), serving(db, port):
        worker, connecting = Worker(where, workflows=ALL), Kagzi.connect(where)
        await worker.__aenter__()
        client = await connecting
        runs = [await client.start(greet, f"n{n}") for n in range(20)]
    results = asyncio.gather(*(run.result() for run in runs), *(client.run(nap, f"m{n}") for n in range(20)))
    async with asyncio.timeout(60), serving(db, port):
        try:
            assert await results == [f"HELLO, N{n}!" for n in range(20)] + [f"m{n}" for n in range(20)]
        finally:
            await client.close()
            await worker.__aexit__(None, None, None)


@pytest.mark.parametrize(("kind", "transport"), [("memory", "in process"), ("file", "in process"), ("file", "gRPC")])
async def test_embedded(kind: str, transport: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    address = ":memory:" if kind == "memory" else f"sqlite:///{tmp_path}/kagzi.db"
    if transport == "gRPC":
        monkeypatch.setattr(EmbeddedServer, "open_call", None)  # as if another process had opened it
    async with asyncio.timeout(WAIT_S), Worker(address, workflows=ALL), Kagzi.connect(address) as client:
        assert isinstance(client._connection.link.channel, CallChannel) is (transport == "in process")
        assert await client.run(greet, "ada") == "HELLO, ADA!"
        assert await client.run(nap, "bob") == "bob"


async def test_an_embedded_file_remembers(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/kagzi.db"
    async with asyncio.timeout(WAIT_S):
        async with Kagzi.connect(address) as client:
            run = await client.start(greet, "ada", id="kept")
        async with Worker(address, workflows=ALL), Kagzi.connect(address) as client:
            assert await client.get("kept", greet).result() == "HELLO, ADA!"
            assert client.get(run.id).created is False

"""One of two servers has lost its database: workers and clients that name both go on at the other one."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from kagzi import Context, Kagzi, Worker, workflow
from kagzi.sdk.transport import leaving
from kagzi.server.app import Server
from tests.server.conftest import ANY_PORT, StartServer
from tests.support.polling import until
from tests.support.postgres_proxy import PostgresProxy
from tests.support.timeouts import LOADED_MACHINE_S


@workflow
async def double(ctx: Context, number: int) -> int:
    return await ctx.step("double").run(lambda: number * 2)


@pytest.fixture
async def proxy(migrated_postgres_url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[PostgresProxy]:
    proxy = PostgresProxy(migrated_postgres_url, tmp_path_factory.mktemp("p"))
    await proxy.start()
    yield proxy
    await proxy.stop()


@pytest.fixture
def haste(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaving, "CHECK_S", 0.2)
    monkeypatch.setattr(leaving, "AWAY_S", 0.5)


def _address(*servers: Server) -> str:
    return ",".join(server.grpc_address for server in servers)


@pytest.fixture(params=["grpc", "websocket"])
async def servers(
    request: pytest.FixtureRequest, proxy: PostgresProxy, migrated_postgres_url: str, start_server: StartServer
) -> AsyncIterator[tuple[Server, Server]]:
    """The first one goes through the proxy."""
    http = ANY_PORT if request.param == "websocket" else None
    yield await start_server(proxy.url, http=http), await start_server(migrated_postgres_url, http=http)
    proxy.thaw()  # so that it can stop


@pytest.mark.usefixtures("haste")
async def test_workers_and_clients_go_on_at_the_server_that_has_its_database(
    proxy: PostgresProxy, servers: tuple[Server, Server]
) -> None:
    lost, well = servers
    both = _address(lost, well)
    async with (
        Worker(both, workflows=[double]) as worker,
        Kagzi.connect(both) as client,
        Kagzi.connect(_address(well)) as other,
    ):
        assert await client.run(double, 1) == 2
        proxy.freeze()
        async with asyncio.timeout(LOADED_MACHINE_S):
            results = await asyncio.gather(*(client.run(double, number) for number in range(5)), other.run(double, 7))
        assert results == [0, 2, 4, 6, 8, 14]
        assert proxy.stopped
        connection = client._backend.connection
        assert connection.link.target == _address(well)
        assert worker.problem is None
        await connection.move(connection.link)  # a failure there does not lead back to the server that was left
        assert connection.link.target == _address(well)


@pytest.mark.usefixtures("haste")
async def test_with_no_other_server_they_wait(proxy: PostgresProxy, servers: tuple[Server, Server]) -> None:
    lost, well = servers
    await well.stop()
    async with Worker(_address(lost, well), workflows=[double]), Kagzi.connect(_address(lost, well)) as client:
        link = client._backend.connection.link
        assert await client.run(double, 1) == 2
        proxy.freeze()
        running = asyncio.create_task(client.run(double, 2))
        await until(lambda: proxy.stopped)

        async def is_lost() -> bool:
            return await link.is_ready() is False

        await until(is_lost)
        assert not await client._backend.connection.leave(link)
        assert client._backend.connection.link is link
        proxy.thaw()
        async with asyncio.timeout(LOADED_MACHINE_S):
            assert await running == 4

"""Namespaces through the client: made, limited, disabled, deleted; and the figures of what happens in them."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import grpc
import msgspec
import pytest

from kagzi import (
    AlreadyExists,
    Context,
    InvalidArgument,
    Kagzi,
    NotFound,
    PreconditionFailed,
    ResourceExhausted,
    Worker,
    workflow,
)
from kagzi.core.errors import KagziError
from kagzi.server.app import Server
from kagzi.v1 import namespace_pb2, namespace_pb2_grpc, worker_pb2, worker_pb2_grpc, workflow_pb2, workflow_pb2_grpc
from tests.server.conftest import QUICK, StartServer
from tests.server.stubs import TIMEOUT_S
from tests.support.polling import until
from tests.support.timeouts import LOADED_MACHINE


@workflow
async def greet(ctx: Context, name: str) -> str:
    return f"hello {name}"


@pytest.fixture
async def client(server: Server) -> AsyncIterator[Kagzi]:
    async with Kagzi.connect(server.grpc_address) as client:
        yield client


async def until_gone(client: Kagzi, name: str) -> None:
    async def gone() -> bool:
        try:
            await client.namespaces.get(name)
        except NotFound:
            return True
        return False

    await until(gone)


async def test_from_its_making_to_its_end(client: Kagzi, server: Server) -> None:
    made = await client.namespaces.create("shop", max_open_runs=5, retention={"failed": "90 days"})
    assert (made.name, made.enabled, made.max_open_runs, made.max_sessions) == ("shop", True, 5, None)
    assert made.retention == {"failed": timedelta(days=90)}
    with pytest.raises(AlreadyExists):
        await client.namespaces.create("shop")
    changed = await client.namespaces.update("shop", max_open_runs=None, max_sessions=3)
    assert (changed.max_open_runs, changed.max_sessions, changed.retention) == (None, 3, made.retention)
    assert [each.name async for each in client.namespaces.list()] == ["shop"]
    async with Kagzi.connect(server.grpc_address, namespace="shop") as shop:
        async with Worker(server.grpc_address, workflows=[greet], namespace="shop"):
            assert await shop.run(greet, "ada", timeout=LOADED_MACHINE) == "hello ada"
            await client.namespaces.disable("shop")
            with pytest.raises(PreconditionFailed, match="disabled"):
                await shop.start(greet, "bob")
            await client.namespaces.enable("shop")
            run = await shop.start(greet, "eve")
            await run.result(timeout=LOADED_MACHINE)
        waiting = await shop.start(greet, "nobody serves this")
        with pytest.raises(PreconditionFailed, match="1 open run") as refusal:
            await client.namespaces.delete("shop", confirm="shop")
        assert refusal.value.metadata["open_runs"] == "1"
        await waiting.terminate()
        with pytest.raises(InvalidArgument, match="confirm"):
            await client.namespaces.delete("shop", confirm="shup")
        await client.namespaces.delete("shop", confirm="shop")
        await until_gone(client, "shop")
        with pytest.raises(NotFound):
            await shop.get(run.id).status()
        assert (await client.namespaces.create("shop")).max_sessions is None
        await shop.start(greet, "again")


async def test_while_it_is_deleted_every_call_in_it_says_that_it_is_not_there(
    start_server: StartServer, database_url: str
) -> None:
    # Housekeeping comes once an hour, and is not asked to hurry: the namespace stays on its way out.
    server = await start_server(database_url, settings=msgspec.structs.replace(QUICK, housekeeping_ms=3_600_000))
    assert server._engine is not None
    server._engine.namespaces._on_deleted = lambda: None
    async with Kagzi.connect(server.grpc_address) as client, grpc.aio.insecure_channel(server.grpc_address) as channel:
        async with Kagzi.connect(server.grpc_address, namespace="shop") as shop:
            run = await shop.start(greet, "ada")
            await run.terminate()
            await client.namespaces.delete("shop", confirm="shop")
            assert (await client.namespaces.get("shop")).deleting
            await client.namespaces.delete("shop", confirm="shop")
            for call in (
                shop.start(greet, "bob"),
                run.status(),
                shop.count(),
                shop.stats(),
                client.namespaces.update("shop", max_sessions=1),
                client.namespaces.enable("shop"),
            ):
                with pytest.raises(NotFound, match="namespace shop not found"):
                    await call
        with pytest.raises(PreconditionFailed, match="being deleted"):
            await client.namespaces.create("shop")
        waits = workflow_pb2_grpc.WorkflowServiceStub(channel).WaitStream(timeout=TIMEOUT_S)
        await waits.write(workflow_pb2.WaitStreamRequest(namespace_id="shop", run_ids=[run.id]))
        session = worker_pb2_grpc.WorkerServiceStub(channel).Session(timeout=TIMEOUT_S)
        register = worker_pb2.RegisterRequest(namespace_id="shop", workflow_types=["greet"])
        await session.write(worker_pb2.SessionRequest(hello=worker_pb2.SessionHello(register=register)))
        for stream in (waits, session):
            with pytest.raises(grpc.aio.AioRpcError) as refusal:
                await stream.read()
            assert refusal.value.code() is grpc.StatusCode.NOT_FOUND
            assert "namespace shop not found" in (refusal.value.details() or "")


async def test_a_server_that_stops_in_between_leaves_the_rest_to_the_next(
    start_server: StartServer, postgres_url: str
) -> None:
    idle = msgspec.structs.replace(QUICK, housekeeping_ms=3_600_000)
    first = await start_server(postgres_url, settings=idle)
    assert first._engine is not None
    first._engine.namespaces._on_deleted = lambda: None
    async with Kagzi.connect(first.grpc_address, namespace="shop") as shop:
        for run in [await shop.start(greet, str(n)) for n in range(30)]:
            await run.terminate()
        await shop.namespaces.delete("shop", confirm="shop")
    await first.stop(0)
    second = await start_server(postgres_url, settings=msgspec.structs.replace(QUICK, housekeeping_ms=50))
    async with Kagzi.connect(second.grpc_address) as client:
        await until_gone(client, "shop")


async def test_the_default_one_can_be_limited_and_not_deleted(client: Kagzi) -> None:
    changed = await client.namespaces.update("default", max_starts_per_second=0.001)
    assert changed.max_starts_per_second == 0.001
    await client.start(greet, "ada")
    with pytest.raises(ResourceExhausted, match="starts_per_second_limit") as refusal:
        await client.start(greet, "bob")
    assert refusal.value.retry_after is not None
    assert refusal.value.retry_after > timedelta(minutes=10)
    with pytest.raises(InvalidArgument, match="cannot be deleted"):
        await client.namespaces.delete("default", confirm="default")


async def test_no_more_workers_than_it_allows(client: Kagzi, server: Server) -> None:
    await client.namespaces.create("shop", max_sessions=1)
    async with Worker(server.grpc_address, workflows=[greet], namespace="shop"):
        with pytest.raises(KagziError, match="sessions_limit"):
            async with asyncio.timeout(TIMEOUT_S):
                await Worker(server.grpc_address, workflows=[greet], namespace="shop").run()


async def test_what_nobody_would_honour_is_refused(server: Server) -> None:
    async with grpc.aio.insecure_channel(server.grpc_address) as channel:
        stub = namespace_pb2_grpc.NamespaceServiceStub(channel)
        for namespace, fields, word in (
            (namespace_pb2.Namespace(namespace_id="a"), [], "fields is empty"),
            (namespace_pb2.Namespace(namespace_id="a"), ["created_at"], "cannot be changed"),
            (namespace_pb2.Namespace(), ["enabled"], "namespace_id is empty"),
            (namespace_pb2.Namespace(namespace_id="a", deleting=True), ["enabled"], "DeleteNamespace"),
            (namespace_pb2.Namespace(namespace_id="a", stored_bytes=1), ["enabled"], "stored_bytes"),
            (
                namespace_pb2.Namespace(namespace_id="a", retention_seconds={"running": 60}),
                ["retention_seconds"],
                "completed, failed",
            ),
            (
                namespace_pb2.Namespace(namespace_id="a", retention_seconds={"failed": 1}),
                ["retention_seconds"],
                "outside 60",
            ),
            (
                namespace_pb2.Namespace(namespace_id="a", limits=namespace_pb2.NamespaceLimits(open_runs=-1)),
                ["limits.open_runs"],
                "limits.open_runs=-1",
            ),
            (
                namespace_pb2.Namespace(namespace_id="a", limits=namespace_pb2.NamespaceLimits(starts_per_second=0)),
                ["limits"],
                "starts_per_second=0",
            ),
        ):
            with pytest.raises(grpc.aio.AioRpcError) as refusal:
                await stub.UpdateNamespace(
                    namespace_pb2.UpdateNamespaceRequest(namespace=namespace, fields=fields), timeout=TIMEOUT_S
                )
            assert refusal.value.code() is grpc.StatusCode.INVALID_ARGUMENT, namespace
            assert word in (refusal.value.details() or ""), refusal.value.details()


async def test_strict_servers_know_only_what_was_created(start_server: StartServer) -> None:
    server = await start_server(settings=msgspec.structs.replace(QUICK, strict_namespaces=True))
    async with Kagzi.connect(server.grpc_address, namespace="shop") as shop:
        with pytest.raises(NotFound, match="--strict-namespaces"):
            await shop.start(greet, "ada")
        await shop.namespaces.create("shop")
        await shop.start(greet, "ada")


async def test_runs_are_listed_by_what_is_known_of_them(client: Kagzi) -> None:
    await client.start(greet, "ada", version="1", labels={"team": "x"})
    wanted = await client.start(greet, "bob", version="2", labels={"team": "x"})
    listed = [run.id async for run in client.list(version=2, labels={"team": "x"}, problem=False)]
    assert listed == [wanted.id]
    assert await client.count(problem=True) == 0
    assert await client.count(schedule="nightly") == 0
    assert await client.count(concurrency_key="tenant-1") == 0


async def test_the_figures_of_the_last_minutes(client: Kagzi, server: Server) -> None:
    async with Worker(server.grpc_address, workflows=[greet]):
        for name in ("ada", "bob"):
            await client.run(greet, name, timeout=LOADED_MACHINE)
    await client.start("nobody-serves-it", None)
    stats = await client.stats()
    greeted = [each for each in stats.minutes if each.workflow == "greet"]
    assert sum(each.started for each in greeted) == sum(each.completed for each in greeted) == 2
    assert all(each.p95 is None or each.p95 < timedelta(seconds=20) for each in greeted)
    assert any(each.p50 is not None for each in greeted)
    assert (stats.open["pending"], stats.open["running"], stats.open_is_capped) == (1, 0, False)
    only = await client.stats(workflow=greet, since="5m")
    assert {each.workflow for each in only.minutes} == {"greet"}
    assert only.open["pending"] == 0
    assert (await client.stats(since="3h", until="2h")).minutes == ()
    with pytest.raises(InvalidArgument, match="since"):
        await client.stats(since="1h", until="2h")

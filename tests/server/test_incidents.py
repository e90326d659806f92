"""What clients are told when the server or its store is in trouble: a number that is in the log, or that the store is
busy. Never what the store said, nor where it is."""

import logging
import re

import asyncpg
import grpc
import httpx
import pytest

from kagzi.core.errors import StatementFailed
from kagzi.core.raised.incidents import incident_error
from kagzi.server.listen import ListenAddress
from kagzi.v1 import common_pb2, workflow_pb2
from kagzi.wire.status import from_rpc_error
from tests.server.conftest import StartServer
from tests.server.stubs import TIMEOUT_S, Stubs

INSIDE = 'UniqueViolationError (23505): duplicate key value violates "runs_pkey" at primary.internal'
NUMBER = re.compile(r"internal error, incident ([0-9a-f-]{36})\.")


def number_in(text: str) -> str:
    match = NUMBER.search(text)
    assert match is not None, text
    return match[1]


async def test_every_reported_number_is_in_the_log(
    start_server: StartServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    server = await start_server(http=ListenAddress("127.0.0.1", 0))
    runs = server._engine.runs  # type: ignore[union-attr]

    async def fails(*_args: object, **_options: object) -> object:
        raise StatementFailed(INSIDE)

    async def fail_each(requests: list[object]) -> list[object]:
        return [StatementFailed(INSIDE) for _ in requests]

    monkeypatch.setattr(runs, "get", fails)
    monkeypatch.setattr(runs, "start", fails)
    monkeypatch.setattr(runs, "start_many", fail_each)
    messages: list[str] = []
    async with grpc.aio.insecure_channel(server.grpc_address) as channel:
        stubs = Stubs(channel)
        start = workflow_pb2.StartWorkflowRequest(workflow_type="hello")
        for call in (
            stubs.workflows.GetWorkflow(workflow_pb2.GetWorkflowRequest(run_id="x"), timeout=TIMEOUT_S),
            stubs.workflows.StartWorkflow(start, timeout=TIMEOUT_S),
        ):
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await call
            assert refused.value.code() is grpc.StatusCode.INTERNAL
            messages.append(from_rpc_error(refused.value).message)
        batch = await stubs.workflows.StartBatch(
            workflow_pb2.StartBatchRequest(namespace_id="default", starts=[start, start]), timeout=TIMEOUT_S
        )
        assert {item.error.code for item in batch.items} == {common_pb2.ERROR_CODE_INTERNAL}
        messages += [item.error.message for item in batch.items]
    async with httpx.AsyncClient(base_url=server.http_url, timeout=TIMEOUT_S) as web:
        page = await web.get("/plain/runs/x")
        messages.append(page.text)
    numbers = [number_in(text) for text in messages]
    assert len(set(numbers)) == len(messages) == 5
    for text, number in zip(messages, numbers, strict=True):
        assert "23505" not in text
        assert "primary" not in text
        assert f"incident {number} in " in caplog.text
    assert INSIDE in caplog.text


async def test_what_was_logged_under_a_number_keeps_it(
    start_server: StartServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    server = await start_server()

    async def fails(*_args: object, **_options: object) -> object:
        raise incident_error("4711")

    monkeypatch.setattr(server._engine.runs, "get", fails)  # type: ignore[union-attr]
    async with grpc.aio.insecure_channel(server.grpc_address) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await Stubs(channel).workflows.GetWorkflow(workflow_pb2.GetWorkflowRequest(run_id="x"), timeout=TIMEOUT_S)
    assert from_rpc_error(refused.value).metadata == {"incident": "4711"}
    assert "incident" not in caplog.text


async def test_a_read_only_database_is_an_outage_that_passes(
    start_server: StartServer, postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    server = await start_server(postgres_url)
    server._engine._journal._outage_limit_s = 0.2  # type: ignore[union-attr]
    other = await asyncpg.connect(postgres_url)
    database = await other.fetchval("SELECT current_database()")
    terminate = (
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = $1 AND pid <> pg_backend_pid()"
    )
    await other.execute(f'ALTER DATABASE "{database}" SET default_transaction_read_only = on')
    await other.fetch(terminate, database)
    request = workflow_pb2.StartBatchRequest(
        namespace_id="default", starts=[workflow_pb2.StartWorkflowRequest(workflow_type="hello")]
    )
    async with grpc.aio.insecure_channel(server.grpc_address) as channel:
        stubs = Stubs(channel)
        with caplog.at_level(logging.WARNING):
            [item] = (await stubs.workflows.StartBatch(request, timeout=TIMEOUT_S)).items
        assert item.error.code == common_pb2.ERROR_CODE_UNAVAILABLE
        assert "read-only" not in item.error.message
        assert "read-only" in caplog.text
        await other.execute(f'ALTER DATABASE "{database}" RESET default_transaction_read_only')
        await other.close()
        server._engine._journal._outage_limit_s = 30.0  # type: ignore[union-attr]
        [item] = (await stubs.workflows.StartBatch(request, timeout=TIMEOUT_S)).items
        assert item.started.run_id

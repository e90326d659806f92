"""Callers that give up waiting, in the moment in which the stream of their waits would be closed because nobody waits:
later waits of the client are answered, on every way to a server."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kagzi import Context, Kagzi, Signal, Worker, sync, workflow
from kagzi.sdk.client import waits
from kagzi.v1 import common_pb2
from kagzi.v1 import workflow_pb2 as wf
from tests.sdk.net.fake_server import WAIT_S, FakeServer

IDLE_S = 0.05
ROUNDS = 20
never = Signal("never", int)


@pytest.fixture(autouse=True)
def idle_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waits, "IDLE_S", IDLE_S)


@workflow
async def waiting(ctx: Context) -> int:
    return await ctx.wait_for(never)


@workflow
async def double(ctx: Context, number: int) -> int:
    return number * 2


@pytest.fixture
async def address(tmp_path: Path) -> AsyncIterator[str]:
    address = f"sqlite:///{tmp_path / 'waits.db'}"
    async with Worker(address, workflows=[waiting, double]):
        yield address


@pytest.mark.parametrize("websocket", [False, True], ids=["grpc", "websocket"])
async def test_later_waits_of_a_client_are_answered(server: FakeServer, websocket: bool) -> None:
    if websocket:
        await server.offer_websocket()
    done = common_pb2.Payload(data=b"1")
    async with Kagzi.connect(server.address) as client:
        for number in range(ROUNDS):
            open_run = await client.start("waits", id=f"never-{number}")
            with pytest.raises(TimeoutError):
                await open_run.result(timeout=f"{int(IDLE_S * 1_000)}ms")
            run = await client.start("quick", id=f"quick-{number}")
            await server.end(run.id, status=wf.WORKFLOW_STATUS_COMPLETED, output=done)
            assert await asyncio.wait_for(run.result(), WAIT_S) == 1
    assert ("/kagzi.v1.WorkflowService/WaitStream" in server.by_websocket) is websocket


async def test_later_waits_of_an_embedded_client_are_answered(address: str) -> None:
    async with Kagzi.connect(address) as client:
        run = await client.start(waiting)
        for number in range(ROUNDS):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(IDLE_S):
                    await run.result()
            assert await asyncio.wait_for(client.run(double, number), WAIT_S) == number * 2


async def test_later_waits_without_await_are_answered(address: str) -> None:
    def use() -> None:
        with sync.Kagzi.connect(address) as client:
            run = client.start(waiting)
            for number in range(ROUNDS):
                with pytest.raises(TimeoutError):
                    run.result(timeout=f"{int(IDLE_S * 1_000)}ms")
                assert client.start(double, number).result(timeout=f"{int(WAIT_S)}s") == number * 2

    await asyncio.to_thread(use)

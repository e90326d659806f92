"""One connection, several namespaces: every operation of a client made by `in_namespace` is in its namespace."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

import kagzi.sync
from kagzi import Context, InternalError, Kagzi, Signal, Worker, workflow
from kagzi.testing import TestEnv
from tests.server.conftest import StartServer, database_url, start_server

__all__ = ["database_url", "start_server"]
APPROVED = Signal("approved", int)
WAIT = "60s"


@workflow
async def waits(ctx: Context, number: int) -> str:
    return f"{ctx.namespace} {number + await ctx.wait_for(APPROVED)}"


@workflow
async def echo(ctx: Context, number: int) -> str:
    return f"{ctx.namespace} {number}"


async def test_every_operation_is_in_its_namespace(start_server: StartServer, database_url: str) -> None:
    address = (await start_server(database_url)).grpc_address
    async with Kagzi.connect(address) as client, Worker(address, workflows=[waits, echo], namespace="shop"):
        shop = client.in_namespace("shop")
        assert await shop.run(echo, 1, timeout=WAIT) == "shop 1"
        started = await shop.start(waits, 1, id="w", labels={"a": "b"})
        await shop.signal("w", APPROVED, 1)
        assert await started.result(timeout=WAIT) == "shop 2"
        other = await shop.signal_with_start(waits, 2, APPROVED, 3, id="s")
        assert await other.result(timeout=WAIT) == "shop 5"
        assert [run.id async for run in shop.list(labels={"a": "b"})] == [started.id]
        assert (await shop.count(), await client.count()) == (3, 0)
        assert [each.id async for each in shop.workers.list()]
        assert not [each async for each in client.workers.list()]
        assert {each.version async for each in shop.versions.list(echo)} == {"1"}
        assert not [each async for each in client.versions.list(echo)]
        await shop.schedule("daily").workflow(echo).cron("0 6 * * *").input(1).context({"team": "a"})
        listed = [each async for each in shop.schedules.list()]
        assert [(each.id, each.namespace, each.context) for each in listed] == [("daily", "shop", {"team": "a"})]
        assert not [each async for each in client.schedules.list()]
        assert (await shop.schedules.get("daily")).input_data == 1
        operation = await shop.bulk.delete(status="completed")
        assert (await operation.wait(timeout=WAIT)).done == 3
        wrong: Any = {"namespace": "shop"}
        with pytest.raises(TypeError, match="in_namespace"):
            await anext(client.list(**wrong))
        await shop.close()  # the connection is the other client's
        assert await client.count() == 0

    def without_await() -> list[Any]:
        with kagzi.sync.Kagzi.connect(address) as waiting:
            with waiting.in_namespace("shop") as there:
                assert there.schedules.get("daily").namespace == "shop"
            return [waiting.in_namespace("shop").count() >= 0, waiting.count()]

    assert await asyncio.to_thread(without_await) == [True, 0]


async def test_the_test_environment_serves_other_namespaces() -> None:
    async with TestEnv.open(start_at=datetime(2026, 1, 1, tzinfo=UTC)) as env:
        assert await env.in_namespace("shop").run(echo, 1) == "shop 1"
        assert await env.run(echo, 1) == "default 1"


def test_an_internal_error_says_that_it_may_be_tried_again() -> None:
    assert not InternalError("a bug").non_retryable

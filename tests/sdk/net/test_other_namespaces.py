"""A client reaches runs of another namespace than its own: where to look is said with the id."""

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest

from kagzi.core.errors import InvalidArgument, PreconditionFailed
from kagzi.core.states import RunStatus
from kagzi.sdk.client.client import Kagzi
from kagzi.sdk.workflow.codec import ANY
from kagzi.v1 import workflow_pb2 as wf
from tests.sdk.net.fake_server import FakeServer
from tests.sdk.net.test_runs import RUN_ID, known_as


@pytest.fixture
async def client(server: FakeServer) -> AsyncIterator[Kagzi]:
    known_as(server, run_id=RUN_ID, workflow_id="order-1")
    server.answers["CancelWorkflow"] = lambda request: wf.CancelWorkflowResponse(status=wf.WORKFLOW_STATUS_CANCELLED)
    async with Kagzi.connect(server.address) as connected:
        yield connected


async def test_get_looks_where_it_is_told(server: FakeServer, client: Kagzi) -> None:
    status = await client.get(RUN_ID).namespace("production")
    assert (status.id, status.status) == (RUN_ID, RunStatus.RUNNING)
    assert (await client.get("order-1", namespace="production")).workflow_id == "order-1"
    assert (await client.get("order-1")).workflow_id == "order-1"
    assert [each.namespace_id for each in server.requests("GetWorkflow")] == ["production", "production", "default"]


async def test_cancel_looks_where_it_is_told(server: FakeServer, client: Kagzi) -> None:
    await client.cancel(RUN_ID).namespace("production")
    await client.cancel(RUN_ID, "late", namespace="production")
    await asyncio.create_task(client.cancel(RUN_ID).reason("late"))
    cancelled = [(each.namespace_id, each.reason) for each in server.requests("CancelWorkflow")]
    assert cancelled == [("production", ""), ("production", "late"), ("default", "late")]


async def test_a_run_started_elsewhere_is_reached_there(server: FakeServer, client: Kagzi) -> None:
    run = await client.start("buy").namespace("production").id("order-1").input(1)
    assert run.namespace == "production"
    assert await client.get("order-1").namespace(run.namespace).status() is RunStatus.RUNNING
    assert server.requests("GetWorkflow")[-1].namespace_id == "production"
    assert ANY.encode({"where": run.namespace}, what="input") == msgspec.json.encode({"where": "production"})


async def test_a_run_that_is_known_stays_where_it_is(client: Kagzi) -> None:
    run = await client.start("buy", 1)
    with pytest.raises(PreconditionFailed, match=r"is in namespace 'default'. To look in another one, use client.get"):
        run.namespace("production")
    with pytest.raises(InvalidArgument, match="must be the name of a namespace"):
        client.get(RUN_ID).namespace("")


async def test_a_cancellation_that_nobody_awaits_is_told(server: FakeServer, client: Kagzi) -> None:
    with pytest.warns(RuntimeWarning, match=r"client.cancel\('order-1'\) was never awaited: nothing was cancelled"):
        client.cancel("order-1")
    assert not server.requests("CancelWorkflow")

"""Handles: asking about runs, and waits that share one stream."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kagzi.core.error_details import ErrorDetail, ErrorKind
from kagzi.core.errors import InvalidArgument, NotFound, PreconditionFailed, RunError, Unimplemented
from kagzi.core.states import RunStatus, StepStatus
from kagzi.sdk.client.client import Kagzi
from kagzi.sdk.workflow.workflow import Workflow
from kagzi.v1 import admin_pb2, common_pb2
from kagzi.v1 import worker_pb2 as pb
from kagzi.v1 import workflow_pb2 as wf
from kagzi.wire.common import write_error
from tests.sdk.net.fake_server import WAIT_S, FakeServer

RUN_ID = "0198c1de-0000-7000-8000-000000000001"
DONE = wf.WORKFLOW_STATUS_COMPLETED
FAILED = wf.WORKFLOW_STATUS_FAILED


@dataclass
class Order:
    id: int


async def _buy(ctx: Any, id: int) -> Order:
    return Order(id)


buy: Workflow[int, Order] = Workflow(_buy, name="buy")


@pytest.fixture
async def client(server: FakeServer) -> AsyncIterator[Kagzi]:
    async with Kagzi.connect(server.address) as connected:
        yield connected


def known_as(server: FakeServer, *, run_id: str, workflow_id: str, status: int = wf.WORKFLOW_STATUS_RUNNING) -> None:
    def answer(request: wf.GetWorkflowRequest) -> wf.GetWorkflowResponse:
        if run_id not in (request.run_id, "") and workflow_id != request.workflow_id:
            raise NotFound(f"run {request.run_id or request.workflow_id} not found")
        workflow = wf.Workflow(run_id=run_id, workflow_id=workflow_id, status=status, workflow_type="buy")
        workflow.created_at.FromDatetime(datetime(2026, 1, 1, tzinfo=UTC))
        return wf.GetWorkflowResponse(workflow=workflow)

    server.answers["GetWorkflow"] = answer


async def test_a_result_is_decoded_by_the_output_type(server: FakeServer, client: Kagzi) -> None:
    run = await client.start(buy, 3, id="o3")
    await server.end(run.id, status=DONE, output=common_pb2.Payload(data=b'{"id":3}'))
    assert await run.result() == Order(3)
    assert run.last_status is RunStatus.COMPLETED


async def test_a_result_that_is_none(server: FakeServer, client: Kagzi) -> None:
    run = await client.start("tick", None)
    await server.end(run.id, status=DONE)
    assert await run.result() is None


async def test_a_failed_run_raises_with_type_and_message(server: FakeServer, client: Kagzi) -> None:
    error = ErrorDetail(type="shop.CardDeclined", message="no funds", kind=ErrorKind.PERMANENT)
    run = await client.start(buy, 3)
    await server.end(run.id, status=FAILED, error=write_error(error))
    with pytest.raises(RunError, match="CardDeclined: no funds") as caught:
        await run.result()
    assert (caught.value.run_id, caught.value.status, caught.value.kind) == (run.id, "failed", ErrorKind.PERMANENT)


async def test_many_waits_share_one_stream(server: FakeServer, client: Kagzi) -> None:
    runs = await asyncio.gather(*(client.start("buy", n, id=f"o{n}") for n in range(50)))
    results = [asyncio.create_task(run.result()) for run in (*runs, *runs)]
    await server.until_waited_for(*(run.id for run in runs))
    for n, run in enumerate(runs):
        await server.end(run.id, status=DONE, output=common_pb2.Payload(data=str(n).encode()))
    async with asyncio.timeout(WAIT_S):
        assert await asyncio.gather(*results) == [*range(50), *range(50)]
    assert server.wait_streams == 1
    assert len(server.waits) == 50


async def test_waits_survive_a_server_that_dies(server: FakeServer, client: Kagzi) -> None:
    run = await client.start("buy", 1, id="o1")
    result = asyncio.create_task(run.result())
    await server.until_waited_for(run.id)
    await server.stop()
    server.waits.clear()
    await server.start()
    await server.until_waited_for(run.id)
    await server.end(run.id, status=DONE, output=common_pb2.Payload(data=b"1"))
    async with asyncio.timeout(WAIT_S):
        assert await result == 1


async def test_a_timeout_is_the_builtin_one_and_the_run_is_forgotten(server: FakeServer, client: Kagzi) -> None:
    run = await client.start("buy", 1, id="o1")
    with pytest.raises(TimeoutError, match="within 50ms"):
        await run.result(timeout="50ms")
    with pytest.raises(TimeoutError, match="buy has not ended"):
        await client.run("buy", 1, timeout="50ms")
    with pytest.raises(InvalidArgument, match="no unit"):
        await run.result(timeout="5")


async def test_closing_the_client_ends_its_waits(server: FakeServer, client: Kagzi) -> None:
    run = await client.start("buy", 1, id="o1")
    result = asyncio.create_task(run.result())
    await server.until_waited_for(run.id)
    await client.close()
    with pytest.raises(PreconditionFailed, match="closed"):
        await result


async def test_run_starts_and_waits(server: FakeServer, client: Kagzi) -> None:
    result = asyncio.create_task(client.run(buy, 3, id="o3"))
    await server.until_waited_for("run-of-o3")
    await server.end("run-of-o3", status=DONE, output=common_pb2.Payload(data=b'{"id":3}'))
    assert await result == Order(3)


async def test_a_handle_costs_no_call_until_it_is_asked(server: FakeServer, client: Kagzi) -> None:
    known_as(server, run_id=RUN_ID, workflow_id="order-1")
    run = client.get("order-1", buy)
    assert not server.requests("GetWorkflow")
    with pytest.raises(PreconditionFailed, match=r"await run.status"):
        _ = run.id
    assert await run.status() is RunStatus.RUNNING
    assert (run.id, run.workflow_id, run.created) == (RUN_ID, "order-1", False)
    assert run.url == f"http://127.0.0.1:8420/runs/{RUN_ID}"
    await server.end(RUN_ID, status=DONE, output=common_pb2.Payload(data=b'{"id":1}'))
    assert await run.result() == Order(1)


async def test_a_uuid_is_a_run_id_first_and_then_a_workflow_id(server: FakeServer, client: Kagzi) -> None:
    known_as(server, run_id=RUN_ID, workflow_id="order-1")
    assert await client.get(RUN_ID).status() is RunStatus.RUNNING
    other = "0198c1de-0000-7000-8000-000000000002"
    known_as(server, run_id=RUN_ID, workflow_id=other)
    run = client.get(other)
    await run.status()
    assert run.id == RUN_ID
    known_as(server, run_id=RUN_ID, workflow_id="x")
    with pytest.raises(NotFound, match=f"run {other} not found"):
        await client.get(other).status()


async def test_cancel_by_either_id(server: FakeServer, client: Kagzi) -> None:
    known_as(server, run_id=RUN_ID, workflow_id="order-1")
    await client.cancel("order-1", "changed my mind")
    (request,) = server.requests("CancelWorkflow")
    assert (request.run_id, request.reason) == (RUN_ID, "changed my mind")


async def test_a_list_is_read_page_by_page(server: FakeServer, client: Kagzi) -> None:
    ids = [f"0198c1de-0000-7000-8000-{n:012d}" for n in range(450)]

    def answer(request: wf.ListWorkflowsRequest) -> wf.ListWorkflowsResponse:
        first = int(request.page.page_token or 0)
        after = first + request.page.page_size
        response = wf.ListWorkflowsResponse(page=common_pb2.PageInfo(next_page_token=str(after), has_more=after < 450))
        for run_id in ids[first:after]:
            workflow = response.workflows.add(run_id=run_id, workflow_id=f"w-{run_id}", status=DONE)
            workflow.created_at.FromDatetime(datetime(2026, 1, 1, tzinfo=UTC))
        return response

    server.answers["ListWorkflows"] = answer
    since = datetime(2026, 1, 1, tzinfo=UTC)
    listed = [run async for run in client.list(status="completed", workflow=[buy, "x"], labels={"a": "b"}, since=since)]
    assert [run.id for run in listed] == ids
    assert (listed[0].workflow_id, listed[0].last_status) == (f"w-{ids[0]}", RunStatus.COMPLETED)
    info = listed[0].last_info  # as the list has it, without a call
    assert info is not None
    assert (info.id, info.namespace, info.url) == (ids[0], "default", listed[0].url)
    assert client.get(ids[0]).last_info is None
    sent = server.requests("ListWorkflows")
    assert len(sent) == 3
    where = sent[0].filter
    assert (list(where.statuses), list(where.workflow_types), dict(where.labels)) == ([DONE], ["buy", "x"], {"a": "b"})
    assert where.created_after.ToDatetime(UTC) == since
    assert len([run async for run in client.list(limit=7)]) == 7
    assert len([run async for run in client.list(limit=440)]) == 440
    assert len(server.requests("ListWorkflows")) == 5  # who wants that many gets them in one page
    with pytest.raises(InvalidArgument, match="Known are: pending"):
        [run async for run in client.list(status="done")]


async def test_since_may_be_how_long_ago(server: FakeServer, client: Kagzi) -> None:
    server.answers["ListWorkflows"] = lambda request: wf.ListWorkflowsResponse()
    [run async for run in client.list(since="2h")]
    (sent,) = server.requests("ListWorkflows")
    ago = datetime.now(UTC) - sent.filter.created_after.ToDatetime(UTC)
    assert timedelta(hours=1, minutes=59) < ago < timedelta(hours=2, minutes=1)
    seconds: Any = 5
    with pytest.raises(InvalidArgument, match=r'since=5 is neither a duration nor a datetime\. Write "2h"'):
        [run async for run in client.list(since=seconds)]


async def test_a_server_that_does_not_keep_discarded_steps_says_so(server: FakeServer, client: Kagzi) -> None:
    def answer(request: admin_pb2.ListStepsRequest) -> admin_pb2.ListStepsResponse:
        assert request.forgotten  # it does not know the field, and returns the history
        return admin_pb2.ListStepsResponse(steps=[pb.Step(step_id="charge", name="charge")])

    server.answers["ListSteps"] = answer
    run = await client.start("buy", 1)
    with pytest.raises(Unimplemented, match="Update the server"):
        await run.steps(forgotten=True)


async def test_steps_of_all_pages(server: FakeServer, client: Kagzi) -> None:
    def answer(request: admin_pb2.ListStepsRequest) -> admin_pb2.ListStepsResponse:
        second = bool(request.page.page_token)
        step = pb.Step(step_id="charge#2" if second else "charge", name="charge", kind=pb.STEP_KIND_FUNCTION)
        step.created_at.FromDatetime(datetime(2026, 1, 1, tzinfo=UTC))
        if second:
            step.status, step.attempt_number = pb.STEP_STATUS_FAILED, 3
            step.error.CopyFrom(write_error(ErrorDetail(type="x.Declined", message="no")))
        else:
            step.status, step.attempt_number, step.output.data = pb.STEP_STATUS_COMPLETED, 1, b"7"
        page = common_pb2.PageInfo(has_more=not second, next_page_token="" if second else "next")
        return admin_pb2.ListStepsResponse(steps=[step], page=page)

    server.answers["ListSteps"] = answer
    run = await client.start("buy", 1)
    first, second = await run.steps()
    assert (first.id, first.status, first.output, first.error) == ("charge", StepStatus.COMPLETED, b"7", None)
    assert (second.id, second.status, second.attempts) == ("charge#2", StepStatus.FAILED, 3)
    assert second.last_error == "Declined: no"
    assert second.error is not None
    assert "after 3 attempts" in str(second.error)

"""Many waits share one stream; each is answered once, when its run has ended."""

import asyncio
from typing import Any

import grpc
import pytest

from kagzi.core.errors import InvalidArgument, Unavailable
from kagzi.server.app import Server
from kagzi.v1 import worker_pb2, workflow_pb2
from kagzi.wire.status import from_rpc_error
from tests.server.stubs import TIMEOUT_S, Stubs, json_payload, leased

MISSING = "00000000-0000-7000-8000-000000000000"


async def ended_run(stubs: Stubs, output: str) -> str:
    task = await stubs.claim()
    await finish(stubs, task, output)
    return task.run_id


async def finish(stubs: Stubs, task: Any, output: str) -> None:
    request = worker_pb2.CompleteWorkflowRequest(**leased(task), output=json_payload(output))
    await stubs.workers.CompleteWorkflow(request, timeout=TIMEOUT_S)


async def read_all(call: Any) -> None:
    while await call.read() is not grpc.aio.EOF:
        pass


async def test_outcomes_before_and_after_the_request(stubs: Stubs) -> None:
    before = await ended_run(stubs, '"before"')
    task = await stubs.claim()
    call = stubs.workflows.WaitStream(timeout=TIMEOUT_S)
    await call.write(workflow_pb2.WaitStreamRequest(run_ids=[before, MISSING, "not-an-id"]))
    answered: dict[str, bytes] = {}
    not_found: set[str] = set()
    while len(answered) + len(not_found) < 3:
        answer = await call.read()
        answered.update({outcome.run_id: outcome.output.data for outcome in answer.outcomes})
        not_found.update(answer.not_found)
    assert answered == {before: b'"before"'}
    assert not_found == {MISSING, "not-an-id"}

    await call.write(workflow_pb2.WaitStreamRequest(run_ids=[task.run_id]))
    await call.done_writing()
    await finish(stubs, task, '"after"')
    answer = await call.read()
    assert [(outcome.run_id, outcome.output.data) for outcome in answer.outcomes] == [(task.run_id, b'"after"')]
    assert await call.read() is grpc.aio.EOF
    assert await call.code() is grpc.StatusCode.OK


async def test_a_forgotten_run_is_not_delivered(memory_stubs: Stubs) -> None:
    first, second = await memory_stubs.claim(), await memory_stubs.claim()
    call = memory_stubs.workflows.WaitStream(timeout=TIMEOUT_S)
    await call.write(workflow_pb2.WaitStreamRequest(run_ids=[first.run_id, second.run_id]))
    await call.write(workflow_pb2.WaitStreamRequest(forget=[first.run_id]))
    await call.done_writing()
    await asyncio.sleep(0)
    await finish(memory_stubs, second, "2")
    answer = await call.read()
    assert [outcome.run_id for outcome in answer.outcomes] == [second.run_id]
    assert await call.read() is grpc.aio.EOF


async def test_a_stream_belongs_to_one_namespace(memory_stubs: Stubs) -> None:
    call = memory_stubs.workflows.WaitStream(timeout=TIMEOUT_S)
    await call.write(workflow_pb2.WaitStreamRequest(namespace_id="a", run_ids=[MISSING]))
    await call.write(workflow_pb2.WaitStreamRequest(namespace_id="b", run_ids=[MISSING]))
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await read_all(call)
    assert isinstance(from_rpc_error(failure.value), InvalidArgument)


async def test_a_server_that_stops_sends_its_clients_elsewhere(server: Server, stubs: Stubs) -> None:
    task = await stubs.claim()
    call = stubs.workflows.WaitStream(timeout=TIMEOUT_S)
    await call.write(workflow_pb2.WaitStreamRequest(run_ids=[MISSING, task.run_id]))
    assert (await call.read()).not_found == [MISSING]
    stopping = asyncio.ensure_future(server.stop())
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await call.read()
    assert isinstance(from_rpc_error(failure.value), Unavailable)
    await stopping

"""Many waits share one stream; each is answered once, when its run has ended."""

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import grpc
import pytest

from kagzi.core import limits
from kagzi.core.errors import InvalidArgument, Unavailable
from kagzi.engine import Runs
from kagzi.engine.services.waits import Deliver
from kagzi.server.app import Server
from kagzi.server.grpc.answer_budget import Answers
from kagzi.server.grpc.deadlines import Deadlines
from kagzi.server.grpc.wait_stream import WaitStream, WaitStreams
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
    assert await call.read() is grpc.aio.EOF  # which means OK: any other status is an error


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


class Silent:
    """A client that asks for runs that do not exist, and reads nothing until it is allowed to."""

    def __init__(self, requests: Sequence[Sequence[str]]) -> None:
        self._requests = iter(requests)
        self.taken = 0
        self.reads = asyncio.Event()
        self.not_found: list[list[str]] = []

    async def read(self) -> object:
        await asyncio.sleep(0)
        run_ids = next(self._requests, None)
        if run_ids is None:
            return grpc.aio.EOF
        self.taken += 1
        return workflow_pb2.WaitStreamRequest(run_ids=run_ids).SerializeToString()

    async def write(self, data: bytes) -> None:
        await self.reads.wait()
        self.not_found.append(list(workflow_pb2.WaitStreamResponse.FromString(data).not_found))


class NoRuns:
    """Knows at once that a run does not exist."""

    def open_waits(self, namespace: str, deliver: Deliver) -> "NoRuns":
        self._deliver = deliver
        return self

    def add(self, run_ids: Sequence[str]) -> None:
        self._deliver((), run_ids)

    def close(self) -> None:
        pass


async def test_who_does_not_read_is_not_read_from_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids that name no run are kept until they are answered. Who reads gets all of them, in messages of some size."""
    monkeypatch.setattr(limits, "WAITS_PER_STREAM", 10)
    monkeypatch.setattr(limits, "MESSAGE_SOFT_BYTES", 200)
    requests = [[f"{message}-{number}" for number in range(10)] for message in range(100)]
    client = Silent(requests)
    stream = WaitStream(
        cast("Runs", NoRuns()),
        cast("Any", client),
        Deadlines(),
        _admitted,
        answers=Answers(limits.ANSWERS_BYTES, limits.ANSWERS_NAMESPACE_BYTES),
        streams=WaitStreams(),
    )
    serving = asyncio.ensure_future(stream.serve())
    for _ in range(1_000):
        await asyncio.sleep(0)
    assert client.taken < 5
    client.reads.set()
    async with asyncio.timeout(TIMEOUT_S):
        await serving
    answered = [run_id for message in client.not_found for run_id in message]
    assert sorted(answered) == sorted(run_id for run_ids in requests for run_id in run_ids)
    assert max(map(len, client.not_found)) < 30


async def _admitted(namespace: str) -> None:
    return


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


# --- started with a wait ----------------------------------------------------------------------------------------------


async def open_stream(stubs: Stubs, stream_id: str, namespace: str = "") -> Any:
    call = stubs.workflows.WaitStream(timeout=TIMEOUT_S)
    request = workflow_pb2.WaitStreamRequest(namespace_id=namespace, run_ids=[MISSING], stream_id=stream_id)
    await call.write(request)
    assert list((await call.read()).not_found) == [MISSING]
    return call


async def start_batch(stubs: Stubs, stream_id: str, waited: list[int], namespace: str = "") -> Any:
    starts = [workflow_pb2.StartWorkflowRequest(workflow_type=kind) for kind in ("greet", "", "greet")]
    request = workflow_pb2.StartBatchRequest(
        namespace_id=namespace, starts=starts, wait_stream_id=stream_id, waited=waited
    )
    return await stubs.workflows.StartBatch(request, timeout=TIMEOUT_S)


async def test_a_start_names_the_stream_on_which_its_end_is_awaited(stubs: Stubs) -> None:
    call = await open_stream(stubs, "mine")
    worker_id = await stubs.register()
    batch = await start_batch(stubs, "mine", [1, 2])
    assert batch.subscribed
    assert [item.HasField("started") for item in batch.items] == [True, False, True]
    for _ in range(2):
        task = await stubs.poll(worker_id)
        await finish(stubs, task, f'"{task.run_id}"')
    await call.done_writing()
    answer = await call.read()
    waited = batch.items[2].started.run_id
    assert [(outcome.run_id, outcome.output.data) for outcome in answer.outcomes] == [(waited, f'"{waited}"'.encode())]
    assert await call.read() is grpc.aio.EOF, "nothing else was waited for"


async def test_a_stream_of_nobody_or_of_others_is_not_subscribed_to(memory_stubs: Stubs) -> None:
    call = await open_stream(memory_stubs, "mine", namespace="other")
    assert not (await start_batch(memory_stubs, "mine", [0])).subscribed
    assert not (await start_batch(memory_stubs, "unknown", [0], "other")).subscribed
    assert not (await start_batch(memory_stubs, "mine", [], "other")).subscribed
    assert (await start_batch(memory_stubs, "mine", [0], "other")).subscribed
    call.cancel()
    async with asyncio.timeout(TIMEOUT_S):
        while (await start_batch(memory_stubs, "mine", [0], "other")).subscribed:  # noqa: ASYNC110  it has no event
            await asyncio.sleep(0.01)


async def test_a_full_stream_is_not_subscribed_to(memory_stubs: Stubs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kagzi.core.limits.WAITS_PER_STREAM", 1)
    call = await open_stream(memory_stubs, "mine")
    assert not (await start_batch(memory_stubs, "mine", [0, 2])).subscribed
    assert (await start_batch(memory_stubs, "mine", [0])).subscribed
    call.cancel()


async def test_places_and_names_out_of_range_are_refused(memory_stubs: Stubs) -> None:
    for place in (-1, 3):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await start_batch(memory_stubs, "mine", [place])
        assert isinstance(problem := from_rpc_error(refused.value), InvalidArgument)
        assert "waited" in problem.message
    call = memory_stubs.workflows.WaitStream(timeout=TIMEOUT_S)
    await call.write(workflow_pb2.WaitStreamRequest(stream_id="x" * 257))
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await read_all(call)
    assert "stream_id" in from_rpc_error(refused.value).message

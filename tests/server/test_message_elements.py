"""A small message cannot occupy a server: its elements are counted before any of them is looked at."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import MethodDescriptor

from kagzi.core import errors, limits
from kagzi.server.grpc.elements import OWN_LIMITS
from kagzi.server.grpc.registration import path_of
from kagzi.v1 import worker_pb2 as pb
from kagzi.v1 import workflow_pb2
from kagzi.wire.status import from_rpc_error
from tests.server.conftest import IN_PROCESS, StartServer, channel_to
from tests.server.hollow import METHODS, Path, all_paths, hollow, named
from tests.server.stubs import TIMEOUT_S, Stubs

LARGE_BYTES = limits.MESSAGE_HARD_BYTES - 100 * limits.KIB
OCCUPIED_S = 0.5
"""Of processor time. Before elements were counted it was 13 s for the starts of a batch, 45 s for operations."""
COSTLY = {
    "StartBatch": ["starts", "starts.labels"],
    "Register": ["served"],
    "Session": ["runs", "runs.operations", "hello.leased", "hello.register.served", "received", "update.step_logs"],
    "SignalWorkflow": ["payload.metadata"],
    "Heartbeat": ["diagnostics"],
}


def method_named(name: str) -> MethodDescriptor:
    (method,) = [method for method in METHODS if method.name == name]
    return method


def messages(method: MethodDescriptor, path: Path, elements: int) -> list[bytes]:
    data = hollow(path, elements)
    if method.name != "Session" or path[0].name == "hello":
        return [data]
    register = pb.RegisterRequest(worker_id="w", workflow_types=["flow"])
    return [pb.SessionRequest(hello=pb.SessionHello(register=register)).SerializeToString(), data]


async def send(channel: Any, method: MethodDescriptor, sent: list[bytes]) -> errors.KagziError | None:
    """Why it was refused. A stream that is not refused is ended."""
    try:
        if not (method.client_streaming or method.server_streaming):
            await channel.unary_unary(path_of(method))(sent[0], timeout=TIMEOUT_S)
            return None
        call = channel.stream_stream(path_of(method))(timeout=TIMEOUT_S)
        for data in sent:
            await call.write(data)
        await call.done_writing()
        while await call.read() is not grpc.aio.EOF:
            pass
    except grpc.aio.AioRpcError as error:
        return from_rpc_error(error)
    return None


async def test_each_list_of_each_request_is_refused_before_it_is_read(start_server: StartServer) -> None:
    server = await start_server()
    accepted: list[str] = []
    async with channel_to(server, IN_PROCESS) as channel:
        for method, path in all_paths():
            elements = max(OWN_LIMITS.get(path[-1].full_name, 0), limits.MESSAGE_UNCOUNTED_BYTES) + 1
            refusal = await send(channel, method, messages(method, path, elements))
            if refusal is None or refusal.metadata.get("limit") != "message_elements":
                accepted.append(f"{method.name} {named(path)}: {refusal!r}")
    assert not accepted, "\n".join(accepted)


@pytest.mark.parametrize(("name", "place"), [(name, place) for name in COSTLY for place in COSTLY[name]])
@pytest.mark.parametrize("size", ["as many as are not refused", "as many as there may be bytes"])
async def test_a_message_does_not_occupy_the_server(
    size: str, name: str, place: str, start_server: StartServer
) -> None:
    server = await start_server()
    method = method_named(name)
    (path,) = [path for each, path in all_paths() if each is method and named(path) == place]
    allowed = OWN_LIMITS.get(path[-1].full_name, limits.MESSAGE_UNCOUNTED_BYTES // 2 - 50)
    elements = allowed if size.endswith("refused") else LARGE_BYTES // 2
    sent = messages(method, path, elements)
    async with channel_to(server, IN_PROCESS) as channel:
        await send(channel, method, messages(method, path, 1))
        assert await _longest_turn_s(lambda: send(channel, method, sent)) < OCCUPIED_S


@pytest.mark.parametrize("white", [b"\n", b" \r\n"])
async def test_an_import_of_empty_lines_does_not_occupy_the_server(white: bytes, start_server: StartServer) -> None:
    server = await start_server()
    method = method_named("ImportWorkflow")
    request = workflow_pb2.ImportWorkflowRequest(json=white * (LARGE_BYTES // len(white)))
    refusals: list[errors.KagziError | None] = []

    async def send_import() -> None:
        refusals.append(await send(channel, method, [request.SerializeToString()]))

    async with channel_to(server, IN_PROCESS) as channel:
        assert await _longest_turn_s(send_import) < OCCUPIED_S
    assert "without an end line" in str(refusals[0])


async def _longest_turn_s(act: Callable[[], Awaitable[object]]) -> float:
    """The processor time that the loop spent in one turn while this was done."""
    longest_s, last_s = 0.0, time.thread_time()

    async def tick() -> None:
        nonlocal longest_s, last_s
        while True:
            await asyncio.sleep(0)
            now_s = time.thread_time()
            longest_s, last_s = max(longest_s, now_s - last_s), now_s

    ticking = asyncio.create_task(tick())
    await act()
    ticking.cancel()
    with suppress(asyncio.CancelledError):
        await ticking
    return longest_s


async def test_a_batch_with_too_many_starts_is_refused_over_each_transport(memory_stubs: Stubs) -> None:
    call = memory_stubs.channel.unary_unary("/kagzi.v1.WorkflowService/StartBatch")
    (path,) = [path for method, path in all_paths() if method.name == "StartBatch" and named(path) == "starts"]
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await call(hollow(path, limits.MESSAGE_UNCOUNTED_BYTES), timeout=TIMEOUT_S)
    error = from_rpc_error(refusal.value)
    assert isinstance(error, errors.InvalidArgument)
    assert (error.subject_id, error.metadata["limit"]) == ("starts", "message_elements")


async def test_the_largest_batch_of_starts_is_accepted(memory_stubs: Stubs) -> None:
    start = workflow_pb2.StartWorkflowRequest(workflow_type="flow", labels={"team": "payments"})
    start.input.data = b'"' + b"x" * 1_000 + b'"'
    request = workflow_pb2.StartBatchRequest(starts=[start] * limits.START_BATCH_ITEMS)
    assert request.ByteSize() > limits.MESSAGE_UNCOUNTED_BYTES
    response = await memory_stubs.workflows.StartBatch(request, timeout=TIMEOUT_S)
    assert all(item.HasField("started") for item in response.items)
    assert len(response.items) == limits.START_BATCH_ITEMS

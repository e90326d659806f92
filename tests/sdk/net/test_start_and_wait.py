"""`client.run` says with its start that it waits for the end: while a stream of waits is open, a run costs one message
there and two back."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from kagzi.core.errors import KagziError
from kagzi.sdk.client.client import Kagzi
from kagzi.sdk.client.waits import _Waiting
from kagzi.v1 import common_pb2
from kagzi.v1 import workflow_pb2 as wf
from tests.sdk.net.fake_server import WAIT_S, FakeServer

DONE = wf.WORKFLOW_STATUS_COMPLETED


@pytest.fixture
async def client(server: FakeServer) -> AsyncIterator[Kagzi]:
    server.subscribes = True
    async with Kagzi.connect(server.address) as connected:
        await end(server, "run-of-first", 0)
        assert await connected.run("buy", id="first") == 0  # opens the stream
        yield connected


async def end(server: FakeServer, run_id: str, output: int) -> None:
    await server.end(run_id, status=DONE, output=common_pb2.Payload(data=f"{output}".encode()))


def stream_of(client: Kagzi) -> _Waiting:
    (stream,) = client._backend.waits._streams["default"]
    return stream


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not condition():  # noqa: ASYNC110  what a client keeps has no event
            await asyncio.sleep(0.005)


async def run(client: Kagzi, server: FakeServer, id: str, output: int) -> Any:
    starts = len(server.requests("StartBatch"))
    running = asyncio.ensure_future(client.run("buy", id=id))
    await server.until_called("StartBatch", starts + 1)
    await until(lambda: f"run-of-{id}" in stream_of(client).table._wanted)
    await end(server, f"run-of-{id}", output)
    return await asyncio.wait_for(running, WAIT_S)


async def test_a_run_asks_for_its_end_with_its_start(server: FakeServer, client: Kagzi) -> None:
    for number in range(5):
        assert await run(client, server, f"o{number}", number) == number
    assert server.waits == ["run-of-first"]
    assert len(server.requests("StartBatch")) == 6
    assert server.wait_streams == 1
    assert [list(request.waited) for request in server.requests("StartBatch")[1:]] == [[0]] * 5


async def test_only_those_who_wait_are_subscribed(server: FakeServer, client: Kagzi) -> None:
    await end(server, "run-of-waited", 1)
    await asyncio.gather(client.start("buy", None, id="unwaited"), client.run("buy", id="waited"))
    (request,) = server.requests("StartBatch")[1:]
    assert [request.starts[place].workflow_id for place in request.waited] == ["waited"]


async def test_a_server_that_knows_nothing_of_it_is_asked_as_ever(server: FakeServer, client: Kagzi) -> None:
    server.subscribes = False
    assert await run(client, server, "o1", 1) == 1
    assert server.waits == ["run-of-first", "run-of-o1"]


async def test_an_end_that_overtakes_the_answer_to_its_start_is_kept(server: FakeServer, client: Kagzi) -> None:
    latch = server.latches["StartBatch"] = asyncio.Event()
    running = asyncio.ensure_future(client.run("buy", id="quick"))
    await server.until_called("StartBatch", 2)
    await end(server, "run-of-quick", 7)
    await until(lambda: stream_of(client).table._early)
    latch.set()
    assert await asyncio.wait_for(running, WAIT_S) == 7
    assert server.waits == ["run-of-first"]
    assert not stream_of(client).table._early
    assert not stream_of(client).table._wanted


async def test_an_end_whose_start_is_refused_is_dropped(server: FakeServer, client: Kagzi) -> None:
    def refuse(_: wf.StartBatchRequest) -> wf.StartBatchResponse:
        raise KagziError("no")

    server.answers["StartBatch"] = refuse
    latch = server.latches["StartBatch"] = asyncio.Event()
    running = asyncio.ensure_future(client.run("buy", id="quick"))
    await server.until_called("StartBatch", 2)
    await end(server, "run-of-quick", 7)
    await until(lambda: stream_of(client).table._early)
    latch.set()
    with pytest.raises(KagziError):
        await running
    await until(lambda: not stream_of(client).table._early)


async def test_a_stream_that_breaks_asks_anew_for_what_it_was_to_tell(server: FakeServer, client: Kagzi) -> None:
    running = asyncio.ensure_future(client.run("buy", id="o1"))
    await until(lambda: "run-of-o1" in stream_of(client).table._wanted)
    await server.stop()
    await server.start()
    await server.until_waited_for("run-of-o1")
    await end(server, "run-of-o1", 1)
    assert await asyncio.wait_for(running, WAIT_S) == 1


async def test_a_stream_that_broke_while_the_start_was_under_way_is_asked(server: FakeServer, client: Kagzi) -> None:
    latch = server.latches["StartBatch"] = asyncio.Event()
    running = asyncio.ensure_future(client.run("buy", id="o1"))
    await server.until_called("StartBatch", 2)
    stream_of(client).table.stream_id = "another"
    latch.set()
    await server.until_waited_for("run-of-o1")
    await end(server, "run-of-o1", 1)
    assert await asyncio.wait_for(running, WAIT_S) == 1


@pytest.mark.parametrize("answered", [False, True])
async def test_who_stops_waiting_is_forgotten(server: FakeServer, client: Kagzi, answered: bool) -> None:
    latch = server.latches["StartBatch"] = asyncio.Event()
    running = asyncio.ensure_future(client.run("buy", id="o1"))
    await server.until_called("StartBatch", 2)
    if answered:
        latch.set()
        await until(lambda: "run-of-o1" in stream_of(client).table._wanted)
    running.cancel()
    latch.set()
    await until(lambda: server.forgotten == ["run-of-o1"])
    assert not stream_of(client).table._wanted

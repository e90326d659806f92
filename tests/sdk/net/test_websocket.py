"""Calls go by WebSocket where a server offers it and it works; else by gRPC, and that is said once."""

import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Callable

import pytest

from kagzi.core.errors import InvalidArgument
from kagzi.sdk.client.client import Kagzi
from kagzi.sdk.transport import websocket
from kagzi.sdk.transport.address import parse_address
from kagzi.sdk.transport.connection import Connection, open_connection
from kagzi.sdk.transport.websocket import PreferredChannel
from kagzi.v1 import common_pb2
from kagzi.v1 import workflow_pb2 as wf
from tests.sdk.net.fake_server import WAIT_S, FakeServer
from tests.support.polling import until

START_BATCH = "/kagzi.v1.WorkflowService/StartBatch"
USES_GRPC = "go by gRPC"


@pytest.fixture
async def server() -> AsyncIterator[FakeServer]:
    fake = FakeServer()
    await fake.start()
    await fake.offer_websocket()
    yield fake
    await fake.stop()


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KAGZI_WEBSOCKET", raising=False)


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if USES_GRPC in record.getMessage()]


async def started(client: Kagzi, name: str) -> None:
    async with asyncio.timeout(WAIT_S):
        assert (await client.start("hello", 1, id=name)).id == f"run-of-{name}"


async def test_calls_and_streams_go_by_websocket_where_it_is_offered(server: FakeServer) -> None:
    async with asyncio.timeout(WAIT_S), Kagzi.connect(server.address) as client:
        run = await client.start("hello", 1, id="a")
        result = asyncio.create_task(run.result())
        await server.until_waited_for(run.id)
        await server.end(run.id, status=wf.WORKFLOW_STATUS_COMPLETED, output=common_pb2.Payload(data=b"1"))
        assert await result == 1
    assert START_BATCH in server.by_websocket
    assert "/kagzi.v1.WorkflowService/WaitStream" in server.by_websocket


@pytest.mark.parametrize(
    ("address", "variable"), [("grpc://{}", ""), ("{}", "off"), ("http://{}", "0")], ids=["address", "off", "0"]
)
async def test_it_can_be_switched_off(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch, address: str, variable: str
) -> None:
    monkeypatch.setenv("KAGZI_WEBSOCKET", variable)
    async with Kagzi.connect(address.format(server.address)) as client:
        await started(client, "a")
    assert not server.by_websocket


def test_the_switch_is_on_or_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAGZI_WEBSOCKET", "maybe")
    with pytest.raises(InvalidArgument, match="KAGZI_WEBSOCKET='maybe' is neither on nor off"):
        open_connection("localhost:1", api_key=None, tls=None)


def test_grpc_only_is_for_all_hosts_of_an_address_or_none() -> None:
    assert parse_address("grpc://a,grpc://b", {}).grpc_only
    with pytest.raises(InvalidArgument, match="before some hosts only"):
        parse_address("grpc://a,b", {})


def _newer(server: FakeServer) -> None:
    server.info.websocket_version += 1


def _with_tls(server: FakeServer) -> None:
    server.info.websocket_url = server.info.websocket_url.replace("ws://", "wss://")


def _of_another(server: FakeServer) -> None:
    """As behind a forwarded port: somebody is there, and it is not the one that gRPC reaches."""
    server.info.listener_id = "another"


def test_a_websocket_for_the_servers_own_machine_is_not_tried_from_elsewhere() -> None:
    offer = websocket.Offer("ws://127.0.0.1:8420/v1/calls", 1, "id")
    assert not offer.problem("localhost:50051", None)
    assert not offer.problem("unix:/run/kagzi.sock", None)
    assert "own machine" in offer.problem("kagzi.example:50051", None)
    assert not offer._replace(url="ws://0.0.0.0:8420/v1/calls").problem("kagzi.example:50051", None)


def test_a_key_is_not_sent_to_a_websocket_elsewhere_in_clear() -> None:
    away = websocket.Offer("ws://10.0.0.5:8420/v1/calls", 1, "id")
    assert "unencrypted" in away.problem("unix:/run/kagzi.sock", None, with_key=True)
    assert not away.problem("unix:/run/kagzi.sock", None)
    here = away._replace(url="ws://127.0.0.1:8420/v1/calls")
    assert not here.problem("unix:/run/kagzi.sock", None, with_key=True)


@pytest.mark.parametrize(
    ("change", "words"),
    [(_newer, "speaks version 2"), (_with_tls, "TLS"), (_of_another, "another server")],
    ids=["version", "tls", "another"],
)
async def test_what_cannot_be_used_is_not(
    server: FakeServer, caplog: pytest.LogCaptureFixture, change: Callable[[FakeServer], None], words: str
) -> None:
    caplog.set_level(logging.INFO, "kagzi.connection")
    change(server)
    async with Kagzi.connect(server.address) as client:
        await started(client, "a")
        await started(client, "b")
    assert not server.by_websocket
    (warning,) = warned(caplog)
    assert words in warning


async def test_without_the_library_there_is_grpc(
    server: FakeServer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO, "kagzi.connection")
    monkeypatch.setitem(sys.modules, "kagzi.wire.calls.websocket", None)
    async with Kagzi.connect(server.address) as client:
        await started(client, "a")
    assert not server.by_websocket
    assert len(warned(caplog)) == 1


async def test_a_websocket_that_is_refused_is_done_without(
    server: FakeServer, caplog: pytest.LogCaptureFixture
) -> None:
    await server.refuse_websockets()
    async with Kagzi.connect(server.address) as client:
        await started(client, "a")
    (warning,) = warned(caplog)
    assert "KAGZI_WEBSOCKET=off" in warning


async def test_a_websocket_that_was_refused_is_tried_again_later(
    server: FakeServer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the server had too many connections for a while."""
    monkeypatch.setattr(websocket, "AGAIN_S", 0.0)
    caplog.set_level(logging.INFO, "kagzi.connection")
    await server.refuse_websockets()
    async with Kagzi.connect(server.address) as client:
        await started(client, "a")
        assert not server.by_websocket
        await started(client, "b")  # still refused: it goes by gRPC, and nobody waits
        await server.offer_websocket()
        number = 0
        async with asyncio.timeout(WAIT_S):
            while not server.by_websocket:
                await started(client, f"c{number}")
                number += 1
        await started(client, "d")
    assert [record.getMessage() for record in caplog.records][-1].endswith("go by WebSocket again")


async def test_a_websocket_that_does_not_answer_is_done_without(
    server: FakeServer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As behind a proxy that lets nothing through, and says nothing."""
    monkeypatch.setattr(websocket, "CONNECT_S", 0.2)
    writers: list[asyncio.StreamWriter] = []
    silent = await asyncio.start_server(lambda _, writer: writers.append(writer), "127.0.0.1", 0)
    server.info.websocket_url = f"ws://127.0.0.1:{silent.sockets[0].getsockname()[1]}/v1/calls"
    async with Kagzi.connect(server.address) as client:
        await started(client, "a")
    (warning,) = warned(caplog)
    assert "no answer" in warning
    silent.close()
    for writer in writers:
        writer.transport.abort()


async def test_a_connection_that_was_cut_is_opened_again(server: FakeServer) -> None:
    async with Kagzi.connect(server.address) as client:
        await started(client, "a")
        server.abort_websockets()
        await started(client, "b")
    assert server.by_websocket.count(START_BATCH) == 2


async def test_a_wait_survives_a_connection_that_was_cut(server: FakeServer) -> None:
    async with asyncio.timeout(WAIT_S), Kagzi.connect(server.address) as client:
        run = await client.start("hello", 1, id="a")
        result = asyncio.create_task(run.result())
        await server.until_waited_for(run.id)
        server.waits.clear()
        server.abort_websockets()
        await server.until_waited_for(run.id)
        await server.end(run.id, status=wf.WORKFLOW_STATUS_COMPLETED, output=common_pb2.Payload(data=b"1"))
        assert await result == 1


async def _abort_during_a_call(connection: Connection, server: FakeServer, name: str) -> None:
    """While a call is open."""
    latch = server.latches["CancelWorkflow"] = asyncio.Event()
    times = len(server.requests("CancelWorkflow"))
    calling = asyncio.create_task(
        connection.call(lambda link: link.workflows.CancelWorkflow, wf.CancelWorkflowRequest(run_id=name))
    )
    async with asyncio.timeout(WAIT_S):
        await server.until_called("CancelWorkflow", times + 1)
        server.abort_websockets()
        await server.until_called("CancelWorkflow", times + 2)
        latch.set()
        await calling


async def test_a_websocket_that_dies_again_and_again_is_given_up(
    server: FakeServer, caplog: pytest.LogCaptureFixture
) -> None:
    connection = open_connection(server.address, api_key=None, tls=None)
    await connection.open()
    channel = connection.link.channel
    assert isinstance(channel, PreferredChannel)
    for number in range(websocket.DEATHS):
        assert not channel._grpc_only
        await _abort_during_a_call(connection, server, str(number))
    assert channel._grpc_only
    (warning,) = warned(caplog)
    assert "3 times within 60 s" in warning
    await connection.close()


async def test_a_server_that_was_started_again_is_not_held_against_it(server: FakeServer) -> None:
    connection = open_connection(server.address, api_key=None, tls=None)
    await connection.open()
    channel = connection.link.channel
    assert isinstance(channel, PreferredChannel)
    for number in range(websocket.DEATHS + 1):
        await server.refuse_websockets()
        await server.stop()
        await server.start()
        await server.offer_websocket(listener_id=f"start {number}")
        await connection.call(lambda link: link.workflows.CancelWorkflow, wf.CancelWorkflowRequest(run_id="x"))
    assert not channel._grpc_only
    assert len([path for path in server.by_websocket if path.endswith("CancelWorkflow")]) == websocket.DEATHS + 1
    await connection.close()


async def test_calls_that_begin_before_there_is_a_connection_lose_nothing(server: FakeServer) -> None:
    connection = open_connection(server.address, api_key=None, tls=None)
    await connection.open()
    channel = connection.link.channel
    assert isinstance(channel, PreferredChannel)
    server.abort_websockets()
    await until(lambda: channel._calls is None)
    stream = connection.link.workflows.WaitStream()
    requests = [wf.WaitStreamRequest(run_ids=[name]) for name in ("a", "b")]
    for request in requests:
        await stream.write(request)
    await server.until_waited_for("a", "b")
    stream.cancel()
    await connection.close()

"""A server that is gone, silent, or without its database: callers are told that they wait, for what, until when; and in
the end, what is down. In plain words, and once for all callers."""

import asyncio
import logging
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from kagzi.core.errors import DOWN, InvalidArgument, Unavailable
from kagzi.core.outages import DATABASE, database_down
from kagzi.sdk.client import waits
from kagzi.sdk.client.client import Kagzi
from kagzi.sdk.transport import tries as tries_module
from kagzi.sdk.transport.tries import OutageNotices, Tries
from kagzi.sdk.transport.unreachable import Outage, cause_of, reported_by_server, unreachable
from kagzi.system import SystemClock, SystemRng
from kagzi.v1 import common_pb2
from kagzi.v1 import workflow_pb2 as wf
from kagzi.wire.common import write_error
from kagzi.wire.status import detail_of
from tests.sdk.net.fake_server import WAIT_S, FakeServer
from tests.sdk.net.session_kit import Worker, welcomed

LOG = "kagzi.connection"
NOISE = (
    "%5B",
    "ipv4",
    "ipv6",
    "failed to connect",
    "last error",
    "UNKNOWN",
    "UNAVAILABLE",
    "errno",
    "kagzi dev",
    "field:",
)
DATABASE_AWAY = database_down(f"{DATABASE} cannot be reached")


@pytest.fixture
def haste(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds become hundredths."""
    for name in ("FIRST_S", "SECOND_S", "LATER_S", "_PROBE_S"):
        monkeypatch.setattr(tries_module, name, getattr(tries_module, name) / 50)


@pytest.fixture
async def client(server: FakeServer) -> AsyncIterator[Kagzi]:
    async with Kagzi.connect(server.address) as connected:
        yield connected


def notified(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == LOG]


async def until_notified(caplog: pytest.LogCaptureFixture, count: int) -> list[str]:
    async with asyncio.timeout(WAIT_S):
        while len(notified(caplog)) < count:  # noqa: ASYNC110  a log has no signal
            await asyncio.sleep(0.01)
    return notified(caplog)


# --- words ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("details", "says", "permanent"),
    [
        (
            (
                "failed to connect to all addresses; last error: UNKNOWN: ipv6:%5B::1%5D:60581: Failed to connect to "
                "remote host: "
                "Connection refused"
            ),
            "cannot reach the server at host:1: connection refused",
            False,
        ),
        (
            (
                "errors resolving no.invalid:50051: [field:hostname lookup error:address lookup failed for "
                "no.invalid:50051: "
                "Domain name not found]"
            ),
            "cannot reach the server at host:1: the name no.invalid does not resolve",
            True,
        ),
        (
            (
                "DNS resolution failed for no.example:50051: C-ares status is not ARES_SUCCESS qtype=A "
                "name=no.example: "
                "Could not contact DNS servers"
            ),
            "cannot reach the server at host:1: the name no.example cannot be resolved",
            False,
        ),
        (
            (
                "failed to connect to all addresses; last error: FAILED_PRECONDITION: unix:/tmp/n.sock: connect "
                "failed: addr: "
                "unix:/tmp/n.sock error: No such file or directory"
            ),
            "cannot reach the server at host:1: its socket does not exist",
            False,
        ),
        (
            (
                "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: Tls handshake failed "
                "(TSI_PROTOCOL_FAILURE): SSL_ERROR_SSL: error:100000f7:SSL "
                "routines:OPENSSL_internal:WRONG_VERSION_NUMBER"
            ),
            "cannot reach the server at host:1: it does not speak TLS",
            True,
        ),
        (
            (
                "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: Tls handshake failed: "
                "CERTIFICATE_VERIFY_FAILED: self signed certificate"
            ),
            "cannot reach the server at host:1: its TLS certificate is not trusted",
            True,
        ),
        (
            (
                "failed to connect to all addresses; last error: INTERNAL: ipv4:127.0.0.1:1: Failed parsing HTTP/2 "
                "(Expected SETTINGS "
                "frame as the first frame, got frame type 80) (Trying to connect an http1.x server (HTTP status 400))"
            ),
            "cannot reach the server at host:1: the program at that port does not speak gRPC",
            True,
        ),
        ("Deadline Exceeded", "no response from the server at host:1: it does not respond", False),
        (
            (
                "failed to connect to all addresses; last error: UNAVAILABLE: ipv4:127.0.0.1:4: "
                "recvmsg:Connection reset by peer (104)"
            ),
            "no response from the server at host:1: the connection was closed",
            False,
        ),
        (
            "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:4: a new trouble of gRPC",
            "cannot reach the server at host:1: a new trouble of gRPC",
            False,
        ),
    ],
)
def test_what_grpc_says_is_told_in_plain_words(details: str, says: str, permanent: bool) -> None:
    outage = unreachable("the server at host:1", details)
    assert outage.brief == says
    assert outage.permanent is permanent
    text = str(outage.error(30.0))
    assert not [noise for noise in NOISE if noise in text]
    assert "Tried for 30.0 s." in text
    assert cause_of(details).remedy in text


def test_a_server_without_its_database_says_so_itself() -> None:
    error = reported_by_server("the server at host:1", DATABASE_AWAY).error(12.0)
    assert str(error) == (
        "The server at host:1 is running, but its database cannot be reached. Tried for 12.0 s. Check the database; "
        "the server's "
        "log says more."
    )
    assert error.metadata[DOWN] == "database"


# --- how long ---------------------------------------------------------------------------------------------------------


def some_tries(**options: object) -> Tries:
    async def well() -> None:
        return None

    clock = SystemClock()
    fields: Any = {"timeout_s": 60.0, **options}
    return Tries(OutageNotices(well, clock.now), SystemRng(), **fields)


REFUSED = unreachable("the server at x", "Connection refused")
NO_NAME = unreachable("the server at x", "errors resolving x: Domain name not found")
SILENT = unreachable("the server at x", "Deadline Exceeded")


async def test_where_waiting_cannot_help_nobody_waits() -> None:
    with some_tries(hopeless_after=1) as tries, pytest.raises(Unavailable, match="does not resolve"):
        tries.pause_s(NO_NAME)
    with some_tries(hopeless_after=2) as tries:  # two servers: the other one may be there
        assert tries.pause_s(NO_NAME) > 0
        assert tries.pause_s(REFUSED) > 0
        assert tries.pause_s(NO_NAME) > 0
        with pytest.raises(Unavailable, match="does not resolve"):
            tries.pause_s(NO_NAME)
    with some_tries(hopeless_after=0) as tries:  # it was reached before
        for _ in range(10):
            assert tries.pause_s(NO_NAME) > 0


async def test_our_own_deadline_does_not_hide_what_was_said_before() -> None:
    with some_tries(timeout_s=0.02) as tries:
        tries.next_timeout_s()
        with pytest.raises(Unavailable, match="database"):  # noqa: PT012  the second one is about the first
            tries.pause_s(reported_by_server("the server at x", DATABASE_AWAY))
            await asyncio.sleep(0.02)
            tries.next_timeout_s()
            tries.pause_s(SILENT)


async def test_a_server_that_does_not_speak_grpc_is_told_at_once() -> None:
    """As when the port of the web pages is given."""
    visitors = 0

    async def http(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal visitors
        visitors += 1
        await reader.read(10)
        writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(http, "127.0.0.1", 0) as web:
        port = web.sockets[0].getsockname()[1]
        with pytest.raises(Unavailable, match=r"does not speak gRPC.*--listen"):
            await Kagzi.connect(f"127.0.0.1:{port}", timeout="60s")
    assert visitors <= 3


async def test_the_time_limits_are_checked(server: FakeServer) -> None:
    with pytest.raises(InvalidArgument, match="call_timeout"):
        await Kagzi.connect(server.address, call_timeout="0s")
    with pytest.raises(InvalidArgument, match="call_timeout"):
        await Kagzi.connect(server.address, call_timeout="5")


# --- told while waiting -----------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("haste")
async def test_a_server_that_is_gone_is_told_soon_and_again_and_when_it_is_back(
    server: FakeServer, client: Kagzi, caplog: pytest.LogCaptureFixture
) -> None:
    await server.stop()
    starting = asyncio.create_task(client.start("hello", 1, id="o"))
    others = [asyncio.create_task(client.get(f"run-{number}").info()) for number in range(20)]
    lines = await until_notified(caplog, 2)
    assert lines[0] == lines[1]  # once for all of them
    refused = f"cannot reach the server at {server.address}: connection refused; "
    words = refused + r"trying again until \d\d:\d\d:\d\d \(timeout 30 s\)"
    assert re.fullmatch(words, lines[0]), lines
    for other in others:
        other.cancel()
    await server.start()
    async with asyncio.timeout(WAIT_S):
        await starting
    assert re.fullmatch(r"the server responds again, after \d+ s", (await until_notified(caplog, 3))[-1])
    assert {record.levelno for record in caplog.records if record.name == LOG} == {logging.WARNING}


@pytest.mark.usefixtures("haste")
async def test_a_database_that_is_away_is_told_while_waiting_and_in_the_end(
    server: FakeServer, caplog: pytest.LogCaptureFixture
) -> None:
    away = write_error(detail_of(DATABASE_AWAY))
    server.answers["StartBatch"] = lambda request: wf.StartBatchResponse(
        items=[wf.StartBatchResponse.Item(error=away) for _ in request.starts]
    )
    async with Kagzi.connect(server.address, call_timeout="3s") as client:
        with pytest.raises(Unavailable) as raised:
            await client.start("hello", 1)
    says = f"the server at {server.address} is running, but its database cannot be reached"
    assert str(raised.value).lower().startswith(says)
    assert raised.value.metadata[DOWN] == "database"
    assert notified(caplog)[0].startswith(says)
    assert len(server.requests("StartBatch")) > 2  # it was tried again, not just given up


@pytest.mark.usefixtures("haste")
async def test_a_call_that_hangs_is_told_if_the_server_says_that_its_database_does(
    server: FakeServer, client: Kagzi, caplog: pytest.LogCaptureFixture
) -> None:
    server.latches["StartBatch"] = asyncio.Event()
    starting = asyncio.create_task(client.start("hello", 1))
    await server.until_called("GetServerInfo", 3)  # it was asked how it is, again and again
    assert notified(caplog) == []  # it is well: the call takes long, and that is all
    server.info.store_problem = f"{DATABASE} has not answered for 4 s"
    lines = await until_notified(caplog, 1)
    assert "is running, but its database has not answered for 4 s; trying again until" in lines[0]
    server.latches["StartBatch"].set()
    await starting


@pytest.mark.usefixtures("haste")
async def test_who_waits_for_a_result_is_told_too(
    server: FakeServer, client: Kagzi, caplog: pytest.LogCaptureFixture
) -> None:
    run = await client.start("hello", 1)
    waiting = asyncio.create_task(run.result())
    await server.until_waited_for(run.id)
    server.info.store_problem = f"{DATABASE} cannot be reached"
    assert (await until_notified(caplog, 1))[0].endswith(
        "is running, but its database cannot be reached; still waiting"
    )
    server.info.store_problem = ""
    await until_notified(caplog, 2)
    await server.end(run.id, status=wf.WORKFLOW_STATUS_COMPLETED, output=common_pb2.Payload(data=b"1"))
    assert await waiting == 1


async def test_patience_with_a_stream_counts_from_when_it_broke(
    server: FakeServer, client: Kagzi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A result that was waited for longer than that was given up at the first restart of a server."""
    monkeypatch.setattr(waits, "OUTAGE_S", 2.5)
    monkeypatch.setattr(tries_module, "LASTING_S", 0.2)
    run = await client.start("hello", 1)
    waiting = asyncio.create_task(run.result())
    await server.until_waited_for(run.id)
    await asyncio.sleep(2.6)  # as long as a run may take
    await server.stop()
    server.waits.clear()
    await server.start()
    await server.until_waited_for(run.id)
    await server.end(run.id, status=wf.WORKFLOW_STATUS_COMPLETED, output=common_pb2.Payload(data=b"1"))
    assert await waiting == 1


@pytest.mark.usefixtures("haste")
async def test_a_worker_without_a_server_says_so_once_it_lasts(
    server: FakeServer, worker: Worker, caplog: pytest.LogCaptureFixture
) -> None:
    await welcomed(worker, server)
    with caplog.at_level(logging.INFO):
        await server.stop()
        line = (await until_notified(caplog, 2))[1]
        await server.start()
        await server.session()
        await until_notified(caplog, 3)
    assert line == f"cannot reach the server at {server.address}: connection refused; trying again until it responds"
    warnings = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert [text for text in warnings if "interrupted" in text] == []
    assert not [noise for noise in NOISE if noise in caplog.text]


def test_an_outage_is_a_plain_unavailable() -> None:
    """`except Unavailable` and pickling see no class of the SDK's own."""
    assert type(Outage("x is down", "Do something.", "server").error()) is Unavailable

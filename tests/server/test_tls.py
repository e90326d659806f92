"""TLS on real sockets, with certificates made here: what is refused, by both transports, and reloading under load."""

import asyncio
import logging
import os
import shutil
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from cryptography import x509

from kagzi import Kagzi
from kagzi.core.errors import PreconditionFailed, Unavailable
from kagzi.sdk.transport.connection import open_connection
from kagzi.sdk.transport.credentials import Tls
from kagzi.sdk.transport.websocket import PreferredChannel
from kagzi.server import tls as server_tls
from kagzi.server.app import Server
from kagzi.server.config import ServerConfig
from kagzi.server.listen import ListenAddress
from kagzi.server.startup import CannotStart
from kagzi.v1 import workflow_pb2 as wf
from tests.server.conftest import ANY_PORT, StartServer
from tests.support.certificates import Authority, Issued, serial_of
from tests.support.polling import until
from tests.support.timeouts import LOADED_MACHINE_S
from tests.support.transports import GRPC, WEBSOCKET

StartWithTls = Callable[..., Awaitable[Server]]


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def stranger(tmp_path: Path) -> Authority:
    return Authority(tmp_path, "stranger")


@pytest.fixture
def start_tls(start_server: StartServer) -> StartWithTls:
    async def start(issued: Issued, **changes: Any) -> Server:
        return await start_server(http=ANY_PORT, tls_cert=issued.cert, tls_key=issued.key, **changes)

    return start


@pytest.fixture(params=[GRPC, WEBSOCKET])
def transport(request: pytest.FixtureRequest) -> str:
    return request.param


@asynccontextmanager
async def opened(
    server: Server, tls: Tls | None, transport: str, host: str = "127.0.0.1", timeout_s: float = LOADED_MACHINE_S
) -> AsyncIterator[Any]:
    """A connection over which one call has gone, by that transport."""
    address = f"https://{host}:{server.grpc_address.rpartition(':')[2]}"
    connection = open_connection(address, api_key=None, tls=tls, websocket=transport == WEBSOCKET)
    await connection.open(timeout_s=timeout_s)
    try:
        await count(connection)
        channel = connection.link.channel
        by_websocket = isinstance(channel, PreferredChannel) and channel._calls is not None
        assert by_websocket == (transport == WEBSOCKET)
        yield connection
    finally:
        await connection.close()


async def count(connection: Any) -> None:
    await connection.call(lambda link: link.workflows.CountWorkflows, wf.CountWorkflowsRequest(namespace_id="default"))


# --- handshakes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
async def test_a_client_that_trusts_the_authority_gets_in(
    start_tls: StartWithTls, authority: Authority, transport: str, host: str
) -> None:
    server = await start_tls(authority.issue("server"))
    async with opened(server, Tls(ca=authority.path), transport, host):
        pass
    assert server.http_url.startswith("https://")
    assert server.websocket_url.startswith("wss://")
    assert server.client_address == f"https://{server.grpc_address}"


async def test_pages_are_served_with_tls(start_tls: StartWithTls, authority: Authority, stranger: Authority) -> None:
    server = await start_tls(authority.issue("server"))
    async with httpx.AsyncClient(verify=ssl.create_default_context(cafile=authority.path)) as client:
        assert (await client.get(f"{server.http_url}/healthz")).text == "ok\n"
        with pytest.raises(httpx.TransportError):
            await client.get(server.http_url.replace("https:", "http:"))
    async with httpx.AsyncClient(verify=ssl.create_default_context(cafile=stranger.path)) as client:
        with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            await client.get(f"{server.http_url}/healthz")


async def test_a_server_of_another_authority_is_not_trusted(
    start_tls: StartWithTls, authority: Authority, stranger: Authority, transport: str
) -> None:
    server = await start_tls(authority.issue("server"))
    with pytest.raises(Unavailable, match="is not trusted"):
        async with opened(server, Tls(ca=stranger.path), transport):
            pass


async def test_a_server_of_another_name_is_not_trusted(
    start_tls: StartWithTls, authority: Authority, transport: str
) -> None:
    server = await start_tls(authority.issue("server", host="other.example"))
    with pytest.raises(Unavailable, match="is for another name"):
        async with opened(server, Tls(ca=authority.path), transport):
            pass


async def test_a_websocket_that_does_not_verify_is_done_without(
    start_tls: StartWithTls, authority: Authority, stranger: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is sent over it; gRPC, which verifies, stays."""
    server = await start_tls(authority.issue("server"))
    connection = open_connection(
        f"https://localhost:{server.grpc_address.rpartition(':')[2]}", api_key=None, tls=Tls(ca=authority.path)
    )
    connection._ssl_context = ssl.create_default_context(cafile=stranger.path)
    await connection.open()
    await count(connection)
    assert connection.link.channel._grpc_only  # type: ignore[attr-defined]
    assert "CERTIFICATE_VERIFY_FAILED" in caplog.text
    await connection.close()


async def test_mutual_tls_takes_certificates_of_its_authority_only(
    start_tls: StartWithTls, authority: Authority, stranger: Authority, transport: str
) -> None:
    server = await start_tls(authority.issue("server"), tls_client_ca=authority.path)
    mine, foreign = authority.issue("client"), stranger.issue("foreign")
    old = authority.issue("old", valid_for=timedelta(days=-1))
    async with opened(server, Tls(authority.path, mine.cert, mine.key), transport):
        pass
    for bad in (Tls(authority.path), *(Tls(authority.path, each.cert, each.key) for each in (foreign, old))):
        with pytest.raises(Unavailable):
            async with opened(server, bad, transport, timeout_s=0.5):
                pass


async def test_mutual_tls_is_for_pages_too(start_tls: StartWithTls, authority: Authority, stranger: Authority) -> None:
    server = await start_tls(authority.issue("server"), tls_client_ca=authority.path)
    url = f"{server.http_url}/healthz"
    context = ssl.create_default_context(cafile=authority.path)
    context.load_cert_chain(*authority.issue("client"))
    async with httpx.AsyncClient(verify=context) as client:
        assert (await client.get(url)).text == "ok\n"
    foreign = ssl.create_default_context(cafile=authority.path)
    foreign.load_cert_chain(*stranger.issue("foreign"))
    for refused in (ssl.create_default_context(cafile=authority.path), foreign):
        async with httpx.AsyncClient(verify=refused) as client:
            with pytest.raises(httpx.TransportError):
                await client.get(url)


async def test_without_tls_nobody_gets_in(start_tls: StartWithTls, authority: Authority) -> None:
    server = await start_tls(authority.issue("server"))
    connection = open_connection(server.grpc_address, api_key=None, tls=None)
    with pytest.raises(Unavailable):
        await connection.open(timeout_s=2)


async def test_a_database_file_served_with_tls_says_where(
    start_tls: StartWithTls, authority: Authority, tmp_path: Path
) -> None:
    file = f"sqlite:///{tmp_path}/kagzi.db"
    server = await start_tls(authority.issue("server"), db=file)
    with pytest.raises(PreconditionFailed, match=f"Connect to {server.client_address} instead"):
        await Kagzi.connect(file)


# --- what cannot be served --------------------------------------------------------------------------------------------


def _missing(authority: Authority, tmp_path: Path) -> dict[str, str]:
    return {"tls_cert": authority.issue("server").cert, "tls_key": f"{tmp_path}/gone.key"}


def _unreadable(authority: Authority, tmp_path: Path) -> dict[str, str]:
    return {"tls_cert": str(tmp_path), "tls_key": authority.issue("server").key}


def _of_another(authority: Authority, tmp_path: Path) -> dict[str, str]:
    return {"tls_cert": authority.issue("server").cert, "tls_key": authority.issue("another").key}


def _expired(authority: Authority, tmp_path: Path) -> dict[str, str]:
    return dict(zip(("tls_cert", "tls_key"), authority.issue("server", valid_for=timedelta(days=-1)), strict=True))


def _swapped(authority: Authority, tmp_path: Path) -> dict[str, str]:
    return dict(zip(("tls_key", "tls_cert"), authority.issue("server"), strict=True))


def _encrypted(authority: Authority, tmp_path: Path) -> dict[str, str]:
    return dict(zip(("tls_cert", "tls_key"), authority.issue("server", password="x"), strict=True))


def _no_authority(authority: Authority, tmp_path: Path) -> dict[str, str]:
    (tmp_path / "empty.pem").write_text("nothing\n")
    issued = authority.issue("server")
    return {"tls_cert": issued.cert, "tls_key": issued.key, "tls_client_ca": f"{tmp_path}/empty.pem"}


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (_missing, r"tls_key .*gone\.key does not exist"),
        (_unreadable, "tls_cert .* cannot be read: Is a directory"),
        (_of_another, r"tls_key .*another\.key does not fit the certificate in tls_cert .*server\.pem"),
        (_expired, r"tls_cert .*server\.pem would be refused by every client: certificate has expired"),
        (_swapped, r"tls_cert .*server\.key has no certificate in PEM form"),
        (_encrypted, r"tls_key .*server\.key is encrypted.*openssl pkey"),
        (_no_authority, r"tls_client_ca .*empty\.pem has no certificate"),
    ],
    ids=["missing", "unreadable", "mismatch", "expired", "swapped", "encrypted", "no authority"],
)
async def test_files_that_cannot_be_used_stop_the_server_before_it_touches_anything(
    start_server: StartServer,
    authority: Authority,
    tmp_path: Path,
    files: Callable[[Authority, Path], dict[str, str]],
    words: str,
) -> None:
    with pytest.raises(CannotStart, match=words):
        await start_server(f"sqlite:///{tmp_path}/kagzi.db", **files(authority, tmp_path))
    assert "kagzi.db" not in await asyncio.to_thread(os.listdir, tmp_path)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"tls_cert": "a.pem"}, "Give both: --tls-cert FILE and --tls-key FILE"),
        ({"tls_key": "a.key"}, "Give both"),
        ({"tls_client_ca": "ca.pem"}, "Give both"),
        ({"tls_cert": "a.pem", "tls_key": "a.key", "listen": ListenAddress(unix_path="/x")}, "TLS is for HOST:PORT"),
    ],
    ids=["no key", "no certificate", "authority only", "unix socket"],
)
async def test_half_of_tls_is_refused(start_server: StartServer, config: dict[str, Any], words: str) -> None:
    with pytest.raises(CannotStart, match=words):
        await start_server(**config)


def test_client_certificates_protect_a_public_address() -> None:
    public = ServerConfig(listen=ListenAddress("0.0.0.0", 50051), tls_cert="a.pem", tls_key="a.key")
    with pytest.raises(CannotStart, match="require client certificates with --tls-client-ca"):
        public.refuse_unprotected()
    msgspec.structs.replace(public, tls_client_ca="ca.pem").refuse_unprotected()


# --- reloading --------------------------------------------------------------------------------------------------------


def presented(port: int, authority: Authority, client: Issued | None = None, *, alpn: str = "h2") -> int:
    """The serial number of the certificate that a new connection to the port gets. Raises SSLError."""
    context = ssl.create_default_context(cafile=authority.path)
    context.set_alpn_protocols([alpn])
    if client is not None:
        context.load_cert_chain(*client)
    with (
        socket.create_connection(("127.0.0.1", port), timeout=20) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as secure,
    ):
        return x509.load_der_x509_certificate(secure.getpeercert(binary_form=True) or b"").serial_number


def ports(server: Server) -> tuple[int, int]:
    return int(server.grpc_address.rpartition(":")[2]), int(server.http_url.rpartition(":")[2])


async def test_certificates_are_replaced_under_load_without_a_failed_call(
    start_tls: StartWithTls,
    authority: Authority,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Calls on connections that stay, and on new ones all the time, by both transports. None is tried twice."""
    monkeypatch.setattr(server_tls, "CHECK_S", 0.02)
    caplog.set_level(logging.INFO, "kagzi.server")
    served = authority.issue("server")
    server = await start_tls(served)
    tls = Tls(ca=authority.path)
    done = asyncio.Event()
    calls = {"lasting": 0, "new": 0}

    async def once(connection: Any) -> None:
        link = connection.link
        with link:  # past what repeats failed calls
            await link.workflows.CountWorkflows(
                wf.CountWorkflowsRequest(namespace_id="default"), timeout=30, metadata=link.metadata
            )

    async def lasting(transport: str) -> None:
        async with opened(server, tls, transport) as connection:
            while not done.is_set():
                await once(connection)
                calls["lasting"] += 1

    async def anew(transport: str) -> None:
        while not done.is_set():
            async with opened(server, tls, transport) as connection:
                await once(connection)
                calls["new"] += 1

    async with asyncio.TaskGroup() as load:
        for transport in (GRPC, WEBSOCKET):
            load.create_task(lasting(transport))
            load.create_task(anew(transport))
        for number in range(3):
            before = dict(calls)
            fresh = authority.issue(f"fresh-{number}")
            shutil.copy(fresh.cert, served.cert)  # one after the other, as people do
            await asyncio.sleep(0.05)
            shutil.copy(fresh.key, served.key)
            for port in ports(server):
                await until(partial(_presents, port, authority, fresh.cert))
            await until(partial(_more, before, calls))
        done.set()
    assert caplog.text.count("loaded the TLS certificate") >= 3


def _more(before: dict[str, int], now: dict[str, int]) -> bool:
    return all(now[kind] > before[kind] + 3 for kind in now)


async def _presents(port: int, authority: Authority, cert: str) -> bool:
    return await asyncio.to_thread(presented, port, authority) == serial_of(cert)


async def test_a_broken_certificate_is_said_and_the_old_one_stays(
    start_tls: StartWithTls, authority: Authority, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(server_tls, "CHECK_S", 0.02)
    served = authority.issue("server")
    first = serial_of(served.cert)
    server = await start_tls(served)
    shutil.copy(authority.issue("other").key, served.key)
    await until(lambda: "the new TLS files are not used" in caplog.text)
    assert "server.key does not fit the certificate" in caplog.text
    for port in ports(server):
        assert await asyncio.to_thread(presented, port, authority) == first
    assert caplog.text.count("the new TLS files are not used") == 1
    fresh = authority.issue("server")
    for port in ports(server):
        await until(partial(_presents, port, authority, fresh.cert))


async def test_another_client_authority_takes_the_place_of_the_old_one(
    start_tls: StartWithTls, authority: Authority, stranger: Authority, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(server_tls, "CHECK_S", 0.02)
    clients = tmp_path / "clients.pem"
    shutil.copy(authority.path, clients)
    server = await start_tls(authority.issue("server"), tls_client_ca=str(clients))
    old, new = authority.issue("old"), stranger.issue("new")
    for transport in (GRPC, WEBSOCKET):
        async with opened(server, Tls(authority.path, old.cert, old.key), transport):
            pass
    shutil.copy(stranger.path, clients)

    async def gets_in(client: Issued, transport: str, timeout_s: float) -> bool:
        try:
            async with opened(server, Tls(authority.path, client.cert, client.key), transport, timeout_s=timeout_s):
                return True
        except Unavailable:
            return False

    for transport in (GRPC, WEBSOCKET):
        await until(partial(gets_in, new, transport, 5.0))
        assert not await gets_in(old, transport, 0.5)

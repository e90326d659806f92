"""Strangers that connect and say nothing, or half of something, lock nobody out: real sockets, a real process, few
descriptors."""

import asyncio
import re
import resource
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from unittest.mock import Mock

import grpc
import httpx
import pytest
import uvicorn
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from kagzi.server.descriptors import connection_limits
from kagzi.server.http.protocol import ANSWER_CHECKS, UPLOAD_BYTES, listed
from tests.server.stubs import TIMEOUT_S, Stubs
from tests.support.polling import until

END_S = 40.0
CONNECT_S = 2.0
MAIN = """
import asyncio, logging, resource, sys
from pathlib import Path

soft, hard, db = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
from kagzi.server.grpc import listener
from kagzi.server.http import listener as http_listener, protocol
from kagzi.server.config import load_config
from kagzi.server.process import run_server

logging.basicConfig(stream=sys.stdout)
listener.HANDSHAKE_MS = 4_000
protocol.REQUEST_S = http_listener.FIRST_BYTES_S = 2.0
flags = {"db": db, "listen": "127.0.0.1:0", "http": "127.0.0.1:0"}
sys.exit(asyncio.run(run_server(load_config(flags, environment={}, directory=Path("/nonexistent")))))
"""
READY = re.compile(r"kagzi server ready grpc=(\S+) http=http://(\S+) store=\S+ websocket=\S+\n")
HALVES = (
    b"",
    b"GET / HT",
    b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n",
    b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n",
)
PREFACES = (b"", b"PRI * HT", b"\x16\x03\x01", b"GET / HTTP/1.1\r\n")


class LimitedServer:
    def __init__(self, process: asyncio.subprocess.Process, ready: re.Match[str]) -> None:
        self.pid = process.pid
        self.process = process
        self.grpc, self.http = ready[1], ready[2]
        self.log = ""

    async def read(self, stream: asyncio.StreamReader) -> None:
        """Whatever it says: a pipe that nobody reads would stop it."""
        while data := await stream.read(65_536):
            self.log += data.decode(errors="replace")

    @property
    def descriptors(self) -> int:
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))

    @property
    def limits(self) -> tuple[int, int]:
        return resource.prlimit(self.pid, resource.RLIMIT_NOFILE)


@asynccontextmanager
async def limited_server(tmp_path: Path, *, soft: int, hard: int) -> AsyncIterator[LimitedServer]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        MAIN,
        str(soft),
        str(hard),
        f"sqlite:///{tmp_path}/k.db",
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stderr is not None
        async with asyncio.timeout(END_S):
            ready = READY.fullmatch((await process.stderr.readline()).decode())
        assert ready is not None
        server = LimitedServer(process, ready)
        assert process.stdout is not None
        reading = [asyncio.create_task(server.read(stream)) for stream in (process.stdout, process.stderr)]
        yield server
        for task in reading:
            task.cancel()
        await asyncio.wait(reading)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def connected(address: str, first_words: bytes) -> socket.socket | None:
    """None: nobody takes more connections at the moment."""
    host, port = address.rsplit(":", 1)
    connection = socket.socket()
    connection.setblocking(False)
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(CONNECT_S):
            await loop.sock_connect(connection, (host, int(port)))
            await loop.sock_sendall(connection, first_words)
    except (OSError, TimeoutError):
        connection.close()
        return None
    return connection


async def is_closed(connection: socket.socket) -> bool:
    """Whether the server ends it, whatever it says before."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(END_S):
            while await loop.sock_recv(connection, 4_096):
                pass
    except TimeoutError:
        return False
    except OSError:
        return True
    return True


async def test_half_requests_lock_nobody_out_and_are_closed(tmp_path: Path) -> None:
    async with (
        limited_server(tmp_path, soft=256, hard=256) as server,
        grpc.aio.insecure_channel(server.grpc) as channel,
    ):
        await Stubs(channel).start()
        with ExitStack() as stack:
            crowd: list[socket.socket] = []
            for number in range(0, 300, 10):  # a few together: one whose turn does not come costs its whole time
                came = await asyncio.gather(
                    *(
                        connected(address, words[each % len(words)])
                        for each in range(number, number + 10)
                        for address, words in ((server.grpc, PREFACES), (server.http, HALVES))
                    )
                )
                crowd += [stack.enter_context(connection) for connection in came if connection is not None]
            assert len(crowd) > 256  # more than there are descriptors
            # Those beyond the limit are taken from the system first, then closed.
            await until(lambda: server.descriptors <= 256 - 16)
            await Stubs(channel).start()  # whoever is in goes on, and so does the store
            closed = await asyncio.gather(*map(is_closed, crowd))
            assert closed.count(True) == len(crowd)
        async with grpc.aio.insecure_channel(server.grpc) as new_channel:
            await Stubs(new_channel).start()
        async with httpx.AsyncClient(timeout=TIMEOUT_S) as client:
            assert (await client.get(f"http://{server.http}/readyz")).status_code == 200
        assert "this process may use 256 file descriptors" in server.log
        assert "LimitNOFILE" in server.log


class Connection:
    """A connection of the HTTP port, without a socket and without time."""

    def __init__(self, *, answers: bool = True) -> None:
        self._answers = answers
        config = uvicorn.Config(self._app, interface="asgi3", lifespan="off", log_config=None, access_log=False)
        self.transport = Mock(spec=asyncio.Transport)
        self.transport.get_extra_info.return_value = None
        self.transport.is_closing.return_value = False
        self._protocol = listed()(config, ServerState(), {}, asyncio.get_running_loop())
        self._protocol.connection_made(self.transport)

    async def _app(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self._answers:
            await asyncio.Event().wait()
        await PlainTextResponse("ok")(scope, receive, send)

    async def request(self, head: bytes = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n") -> None:
        self.receive(head)
        for _ in range(5):
            await asyncio.sleep(0)

    def receive(self, data: bytes) -> None:
        self._protocol.data_received(data)

    def checks_until_closed(self, most: int = 20) -> int:
        for checks in range(1, most + 1):
            self._protocol.check()
            if self.transport.abort.called:
                return checks
        return 0

    def check(self) -> bool:
        self._protocol.check()
        return self.transport.abort.called

    def close(self) -> None:
        self._protocol.connection_lost(None)


async def test_a_connection_in_use_is_not_closed() -> None:
    connection = Connection()
    for _ in range(50):
        await connection.request()
        assert not connection.check()
    assert connection.checks_until_closed() == 1
    connection.close()


async def test_half_a_request_gets_one_check_and_an_unread_answer_a_few() -> None:
    half = Connection()
    assert half.checks_until_closed() == 1
    slow = Connection(answers=False)
    await slow.request()
    assert slow.checks_until_closed() == ANSWER_CHECKS + 1
    for connection in (half, slow):
        connection.close()


async def test_a_request_that_goes_on_coming_is_not_closed() -> None:
    connection = Connection(answers=False)
    await connection.request(b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
    for _ in range(5 * ANSWER_CHECKS):
        connection.receive(b"%x\r\n%b\r\n" % (UPLOAD_BYTES, bytes(UPLOAD_BYTES)))
        assert not connection.check()
    for _ in range(ANSWER_CHECKS):
        connection.receive(b"1\r\nx\r\n")  # a trickle
        connection.check()
    assert connection.check()
    connection.close()


async def test_the_soft_limit_is_raised_to_the_hard_one(tmp_path: Path) -> None:
    async with limited_server(tmp_path, soft=128, hard=1_024) as server:
        assert server.limits == (1_024, 1_024)


@pytest.mark.parametrize("descriptors", [64, 128, 256, 1_024, 4_096, 65_536, 1 << 20])
def test_some_descriptors_are_kept_for_the_store(descriptors: int) -> None:
    limits = connection_limits(descriptors)
    assert limits.grpc >= 1
    assert limits.http >= 1
    if descriptors >= 128:
        assert limits.grpc + limits.http <= descriptors - 48

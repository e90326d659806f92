"""What strangers send to the HTTP port is answered, and fills no log."""

import asyncio
from pathlib import Path

import pytest

from tests.server.keys import first_key
from tests.support.kagzi_process import RunningCommand

STRAY = {
    b"GET * HTTP/1.1\r\nHost: localhost\r\n\r\n": b"401",
    b"GET runs HTTP/1.1\r\nHost: localhost\r\n\r\n": b"401",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n": b"",
    b"\x16\x03\x01 not a request\r\n\r\n": b"400",
}


@pytest.mark.parametrize("keys", [True, False])
async def test_a_stray_request_is_no_incident(keys: bool, tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/kagzi.db"
    if keys:
        await first_key(database)
    ports = ("--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", *(("--auth", "keys") if keys else ()))
    server = RunningCommand("server", "--db", database, *ports, cwd=tmp_path)
    try:
        ready = await asyncio.to_thread(server.says, r"kagzi server ready grpc=\S+ http=http://(\S+):(\d+)")
        lines = len(server.err)
        for words, status in STRAY.items():
            reader, writer = await asyncio.open_connection(ready[1], int(ready[2]))
            writer.write(words)
            answer = await reader.readline()
            writer.close()
            expected = status if keys or status != b"401" else b"404"
            assert expected in answer, words
            assert b" 500 " not in answer
        assert server.err[lines:] == []
    finally:
        await asyncio.to_thread(server.close)

"""Restate's load generator: python restate_driver.py INGRESS_PORT

Calls are plain HTTP/1.1 on persistent connections, which costs less than any client library.
"""

import asyncio
import json
import sys
from typing import Any

from protocol import load, run, serve


class Http:
    """Requests to one address, each on its own connection while it lasts."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def call(self, method: str, path: str, body: Any = None) -> Any:
        connection = self._idle.pop() if self._idle else await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = connection
        content = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nhost: localhost\r\n"
        if body is not None:
            head += f"content-type: application/json\r\ncontent-length: {len(content)}\r\n"
        writer.write(head.encode() + b"\r\n" + content)
        status, answer = await self._response(reader)
        self._idle.append(connection)
        if status >= 300:
            raise RuntimeError(f"{method} {path}: {status} {answer[:500]!r}")
        return json.loads(answer) if answer else None

    async def _response(self, reader: asyncio.StreamReader) -> tuple[int, bytes]:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in head[1:] if ": " in line)
        if headers.get("transfer-encoding") != "chunked":
            return int(head[0].split()[1]), await reader.readexactly(int(headers.get("content-length", "0")))
        content = b""
        while size := int(await reader.readuntil(b"\r\n"), 16):
            content += await reader.readexactly(size)
            await reader.readexactly(2)
        await reader.readexactly(2)
        return int(head[0].split()[1]), content


class Restate:
    def __init__(self, port: int) -> None:
        self._http = Http(port)

    async def run(self, flow: str, value: Any) -> Any:
        return await self._http.call("POST", f"/bench/{flow}", value)

    async def start(self, flow: str, value: Any) -> str:
        """A run that no worker serves is due in a day: Restate would call a missing service forever."""
        path = "/bench/sequence/send?delay=1d" if flow == load.UNSERVED else f"/bench/{flow}/send"
        answer = await self._http.call("POST", path, 1 if flow == load.UNSERVED else value)
        return answer["invocationId"]

    async def result(self, _flow: str, run_id: str) -> Any:
        return await self._http.call("GET", f"/restate/invocation/{run_id}/attach")


async def main(port: int) -> None:
    await serve(Restate(port))


if __name__ == "__main__":
    run(main(int(sys.argv[1])))

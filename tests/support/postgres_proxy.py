"""A way to a PostgreSQL that can be cut: a Unix socket in front of its own."""

import asyncio
import contextlib
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

_SOCKET = ".s.PGSQL.5432"


class PostgresProxy:
    """From `start` to `stop`. While it is frozen, nothing passes, and no connection is closed: a network that drops
    every packet."""

    def __init__(self, url: str, directory: Path) -> None:
        self._directory = directory
        parts = urlsplit(url)
        options = dict(parse_qsl(parts.query))
        self._behind = Path(options["host"]) / _SOCKET
        self.url = urlunsplit(parts._replace(query=urlencode({**options, "host": str(directory)}, safe="/")))
        self._passes = asyncio.Event()
        self._passes.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.stopped = 0
        """How many messages came while it was frozen."""

    async def start(self) -> None:
        self._server = await asyncio.start_unix_server(self._serve, self._directory / _SOCKET)

    def freeze(self) -> None:
        self._passes.clear()

    def thaw(self) -> None:
        self._passes.set()

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        behind_reader, behind_writer = await asyncio.open_unix_connection(self._behind)
        for source, sink in ((reader, behind_writer), (behind_reader, writer)):
            task = asyncio.create_task(self._pass_on(source, sink))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pass_on(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(65_536):
                self.stopped += not self._passes.is_set()
                await self._passes.wait()
                sink.write(data)
                await sink.drain()
        sink.close()

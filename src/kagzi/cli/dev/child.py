"""The worker process of `kagzi dev`: start, reports, stop, restart."""

import asyncio
import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

from ..processes import end_process

RELOAD = b"reload\n"
RELOAD_GRACE = timedelta(seconds=2)  # whoever saves a file wants to see it run; what did not finish begins again
INSIST_AFTER_S = 10.0  # beyond the time that the worker gives its runs
Report = Callable[[dict[str, Any]], None]


class WorkerChild:
    """One worker process. `on_report` gets `loaded`, `ready`, `broken`, and at last `ended` with the exit code."""

    def __init__(self, target: str, namespace: str | None, on_report: Report) -> None:
        self._target = target
        self._namespace = namespace or ""
        self._on_report = on_report
        self._process: asyncio.subprocess.Process | None = None
        self._to_child = -1
        self._watch: asyncio.Task[None] | None = None
        self._grace_s = 0.0  # as it reports itself
        self._ready = False

    async def start(self) -> None:
        """Returns when the process exists; it then waits for `connect`."""
        self._ready = False
        their_read, self._to_child = os.pipe()
        our_read, their_write = os.pipe()
        try:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-B",  # bytecode is told apart by second and size only: an edit may be as long as what it replaces
                "-m",
                f"{__package__}.worker",
                self._target,
                self._namespace,
                str(their_read),
                str(their_write),
                pass_fds=(their_read, their_write),
            )
        finally:
            os.close(their_read)
            os.close(their_write)
        self._watch = asyncio.create_task(self._listen(our_read, self._process))

    def connect(self, address: str) -> None:
        """Send it the address of the server."""
        self._write(f"{address}\n".encode())

    def _write(self, line: bytes) -> None:
        with suppress(BrokenPipeError):  # it could not load its target and said so
            os.write(self._to_child, line)

    async def stop(self) -> None:
        """Let it drain within its own `shutdown_grace`, then kill it. Idempotent."""
        await self._stop(lambda process: process.terminate(), self._grace_s)

    async def stop_to_reload(self) -> None:
        """The same in little time: new code takes over its runs."""
        if self._ready:
            await self._stop(lambda process: self._write(RELOAD), RELOAD_GRACE.total_seconds())
        else:
            await self.stop()  # it may still be importing the user's code, and read nothing

    def kill(self) -> None:
        """At once."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()

    async def _stop(self, ask: Callable[[asyncio.subprocess.Process], None], grace_s: float) -> None:
        process = self._process
        if process is None:
            return
        if process.returncode is None:
            ask(process)
            await end_process(process, grace_s + INSIST_AFTER_S)
        self._hang_up()
        if self._watch is not None:
            await self._watch
        self._process = None

    def _hang_up(self) -> None:
        if self._to_child >= 0:
            os.close(self._to_child)
            self._to_child = -1

    async def _listen(self, fd: int, process: asyncio.subprocess.Process) -> None:
        reader = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(fd, "rb", buffering=0)
        )
        try:
            while line := await reader.readline():
                report = json.loads(line)
                self._grace_s = report.get("shutdown_grace_s", self._grace_s)
                self._ready = report["event"] == "ready"
                self._on_report(report)
        finally:
            transport.close()
        code = await process.wait()
        self._on_report({"event": "ended", "code": code})

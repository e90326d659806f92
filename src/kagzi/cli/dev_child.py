"""`kagzi dev`'s hold on its worker process: start, what it reports, stop, start anew."""

import asyncio
import json
import os
import sys
from collections.abc import Callable
from typing import Any

STOP_TIMEOUT_S = 5.0
Report = Callable[[dict[str, Any]], None]


class WorkerChild:
    """One worker process. `on_report` hears `loaded`, `ready`, `broken`, and at last `ended` with the exit code."""

    def __init__(self, target: str, namespace: str, on_report: Report) -> None:
        self._target = target
        self._namespace = namespace
        self._on_report = on_report
        self._process: asyncio.subprocess.Process | None = None
        self._to_child = -1
        self._watch: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Returns when the process exists; it then waits for `connect`."""
        their_read, self._to_child = os.pipe()
        our_read, their_write = os.pipe()
        try:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-B",  # bytecode is told apart by second and size only: an edit may be as long as what it replaces
                "-m",
                f"{__package__}.dev_worker",
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
        """Tell it where the server is."""
        try:
            os.write(self._to_child, f"{address}\n".encode())
        except BrokenPipeError:
            return  # it could not load its target and said so

    async def stop(self) -> None:
        """Ask it to end, insist after a while. Idempotent."""
        process = self._process
        if process is None:
            return
        self._hang_up()
        if process.returncode is None:
            process.terminate()
            try:
                await asyncio.wait_for(process.wait(), STOP_TIMEOUT_S)
            except TimeoutError:
                process.kill()
                await process.wait()
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
                self._on_report(json.loads(line))
        finally:
            transport.close()
        code = await process.wait()
        self._on_report({"event": "ended", "code": code})

"""A child process from its supervisor's side: a pipe for its reports, and one that closes when the supervisor ends."""

import asyncio
import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from ..processes import end_process
from .supervision import VARIABLE

INSIST_AFTER_S = 10.0  # added to the grace time before a process is killed
_LAST_REPORTS_S = 1.0  # wait for the last reports of an ended process whose own child keeps the pipe open
Report = Callable[[dict[str, Any]], None]


class ChildProcess:
    """A process that was started with `start_child`."""

    def __init__(self, process: asyncio.subprocess.Process, to_child: int, reports: int, on_report: Report) -> None:
        self._process = process
        self._to_child = to_child
        self._unsent = b""
        self._on_report = on_report
        self._ended = asyncio.create_task(self._until_ended(reports))

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.returncode is None

    async def ended(self) -> int:
        """Its exit code, negative for a signal, once it has ended and all its reports were handled."""
        return await asyncio.shield(self._ended)

    def send(self, line: str) -> None:
        """Never waits: if the pipe is full because the process does not read, the rest is sent with the next line. No
        effect if it has ended."""
        self._unsent += f"{line}\n".encode()
        with suppress(OSError):
            self._unsent = self._unsent[os.write(self._to_child, self._unsent) :]

    def terminate(self) -> None:
        if self.is_running:
            self._process.terminate()

    def kill(self) -> None:
        if self.is_running:
            self._process.kill()

    async def end_within(self, grace_s: float) -> int:
        """Waits for a process that was asked to end, and kills it if that takes much longer than `grace_s`."""
        await end_process(self._process, grace_s + INSIST_AFTER_S)
        return await self.ended()

    async def _until_ended(self, reports: int) -> int:
        reading = asyncio.create_task(self._read(reports))
        code = await self._process.wait()
        await asyncio.wait((reading,), timeout=_LAST_REPORTS_S)
        if reading.done():
            reading.result()
        reading.cancel()
        os.close(self._to_child)
        self._to_child = -1
        return code

    async def _read(self, reports: int) -> None:
        reader = asyncio.StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(reports, "rb", buffering=0)
        )
        try:
            while line := await reader.readline():
                self._on_report(json.loads(line))
        finally:
            transport.close()


async def start_child(
    command: Sequence[str], on_report: Report, *, setup: Mapping[str, Any] | None = None, pass_fds: Sequence[int] = ()
) -> ChildProcess:
    """Returns when the process exists. It receives `setup` and its ends of the pipes as its `Supervision`."""
    control, to_child = os.pipe()
    our_reports, reports = os.pipe()
    os.set_blocking(to_child, False)
    supervision = json.dumps({"control": control, "reports": reports, **(setup or {})})
    try:
        process = await asyncio.create_subprocess_exec(
            *command, env={**os.environ, VARIABLE: supervision}, pass_fds=(control, reports, *pass_fds)
        )
    except BaseException:
        os.close(to_child)
        os.close(our_reports)
        raise
    finally:
        os.close(control)
        os.close(reports)
    return ChildProcess(process, to_child, our_reports, on_report)

"""The server and the worker that are measured: real `kagzi` processes, reached only over gRPC."""

import asyncio
import os
import re
import sys
from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager

from ..exits import Exit, Stop
from ..processes import end_process

START_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 20.0
_KEPT_LINES = 40


class KagziProcess:
    """`python -m kagzi ...`. Reads its output to the end, so that it never blocks, and keeps the last lines."""

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        self.arguments = tuple(arguments)
        self._environment = environment
        self.lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self._output = asyncio.Event()

    @property
    def pid(self) -> int:
        if self._process is None:
            raise RuntimeError("not started")
        return self._process.pid

    async def start(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "kagzi",
            *self.arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={**os.environ, **self._environment},
            start_new_session=True,  # Ctrl-C goes to the bench only, which ends all of them
        )
        self._reader = asyncio.create_task(self._read(self._process))

    async def printed(self, pattern: str) -> str:
        """The first group of the first line that matches. Raises Stop if the process ends first, or after a timeout."""
        wanted = re.compile(pattern)
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                while True:
                    for line in self.lines:
                        if match := wanted.search(line):
                            return match[1]
                    if self._reader is None or self._reader.done():
                        break
                    self._output.clear()
                    await self._output.wait()
        except TimeoutError:
            pass  # reported below, with its output
        command, output = " ".join(self.arguments), "\n  ".join(self.lines)
        raise Stop(await self._exit_code(), f"`kagzi {command}` did not become ready. Its output:\n  {output}")

    async def _exit_code(self) -> Exit:
        """Keeps the exit code of a database that cannot be reached."""
        ended = self._process is not None and self._reader is not None and self._reader.done()
        code = await self._process.wait() if ended and self._process else None
        return Exit(code) if code in (Exit.CANNOT_CONNECT, Exit.REFUSED) else Exit.FAILED

    async def stop(self) -> None:
        process = self._process
        if process is None:
            return
        if process.returncode is None:
            process.terminate()
            await end_process(process, STOP_TIMEOUT_S)
        if self._reader is not None:
            await self._reader
        self._process = None

    async def kill(self) -> None:
        """`kill -9`. No effect if it has ended."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
        await self.stop()

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        if process.stdout is None:
            return
        while line := await process.stdout.readline():
            self.lines.append(line.decode(errors="replace").rstrip("\n"))
            self._output.set()
        self._output.set()


@asynccontextmanager
async def running(*arguments: str, environment: Mapping[str, str] | None = None) -> AsyncGenerator[KagziProcess]:
    """Put secrets, such as a database URL, into the environment: everybody can see arguments.

    The process is stopped at the end, and killed after an error or Ctrl-C: a bench has nothing to save.
    """
    process = KagziProcess(arguments, environment or {})
    await process.start()
    try:
        yield process
    except BaseException:
        await process.kill()
        raise
    await process.stop()

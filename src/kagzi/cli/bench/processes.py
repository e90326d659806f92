"""The server and the worker that are measured: real `kagzi` processes, each of its own, spoken to only by gRPC."""

import asyncio
import os
import re
import sys
from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager

from ..exits import Exit, Stop

START_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 20.0
_KEPT_LINES = 40


class KagziProcess:
    """`python -m kagzi ...`. Its output is read until its end, so that it never blocks; the last lines are kept."""

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        self.arguments = tuple(arguments)
        self._environment = environment
        self.lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self._news = asyncio.Event()

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
        )
        self._reader = asyncio.create_task(self._read(self._process))

    async def says(self, pattern: str) -> str:
        """The first group of the first line that matches. Raises Stop if it ends first, or says nothing for too long."""
        wanted = re.compile(pattern)
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                while True:
                    for line in self.lines:
                        if found := wanted.search(line):
                            return found[1]
                    if self._reader is None or self._reader.done():
                        break
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            pass  # told below, with what it said instead
        said = "\n  ".join(self.lines)
        raise Stop(
            await self._exit_code(), f"`kagzi {' '.join(self.arguments)}` did not become ready. It said:\n  {said}"
        )

    async def _exit_code(self) -> Exit:
        """A database that cannot be reached is that for us, too."""
        ended = self._process is not None and self._reader is not None and self._reader.done()
        code = await self._process.wait() if ended and self._process else None
        return Exit(code) if code in (Exit.CANNOT_CONNECT, Exit.REFUSED) else Exit.FAILED

    async def stop(self) -> None:
        process = self._process
        if process is None:
            return
        if process.returncode is None:
            process.terminate()
            try:
                await asyncio.wait_for(process.wait(), STOP_TIMEOUT_S)
            except TimeoutError:
                process.kill()
                await process.wait()
        if self._reader is not None:
            await self._reader
        self._process = None

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        if process.stdout is None:
            return
        while line := await process.stdout.readline():
            self.lines.append(line.decode(errors="replace").rstrip("\n"))
            self._news.set()
        self._news.set()


@asynccontextmanager
async def running(*arguments: str, environment: Mapping[str, str] | None = None) -> AsyncGenerator[KagziProcess]:
    """What may be secret, such as a database URL, goes into the environment: arguments are for everybody to see."""
    process = KagziProcess(arguments, environment or {})
    await process.start()
    try:
        yield process
    finally:
        await process.stop()

"""Real servers and workers as processes: started, waited for by what they print, stopped, paused and killed by pid.

    async with Processes(directory) as processes:
        server = await processes.server("sqlite:///kagzi.db", "--lease", "2s", "--heartbeat", "500ms")
        worker = await processes.worker(server.grpc, "tests.acceptance.flows", KAGZI_TEST_LEDGER=str(ledger))
        worker.kill()

Everything started here has ended when the block does. If the block fails, what the processes printed is part of the
error.
"""

import asyncio
import os
import re
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.fork_server import AVAILABLE, SEARCH, ForkedProcess, forked
from tests.support.timeouts import LOADED_MACHINE_S
from tests.support.transports import server_environment

READY_TIMEOUT_S = LOADED_MACHINE_S
STOP_TIMEOUT_S = LOADED_MACHINE_S
KEPT_LINES = 400
LINE_BYTES = 1 << 20

SERVER_READY = re.compile(r"\bready\b.*\bgrpc=(?P<grpc>\S+)(?:.*\bhttp=(?P<http>\S+))?")
WORKER_READY = re.compile(r"\bworker ready\b")


class ProcessFailed(AssertionError):
    """A process did not do what was waited for. The message has its last words."""


class AsyncForked:
    """A forked process, with what `asyncio.subprocess.Process` has that is used here."""

    def __init__(self, process: ForkedProcess, stdout: asyncio.StreamReader) -> None:
        self._process = process
        self.stdout = stdout
        self._ended = asyncio.get_running_loop().create_future()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(process.status, self._on_end)

    @classmethod
    async def start(cls, module: str, arguments: list[str], directory: Path, environment: Mapping[str, str]) -> Self:
        process = forked(module, arguments, cwd=directory, env=environment)
        stdout = asyncio.StreamReader(limit=LINE_BYTES)
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stdout), process.stdout)
        return cls(process, stdout)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.returncode

    async def wait(self) -> int:
        return await asyncio.shield(self._ended)

    def send_signal(self, signal_number: int) -> None:
        self._process.send_signal(signal_number)

    def _on_end(self) -> None:
        self._loop.remove_reader(self._process.status)
        self._ended.set_result(self._process.wait())


Child = asyncio.subprocess.Process | AsyncForked


class Process:
    """A child process and what it printed, stdout and stderr together, in order."""

    def __init__(self, name: str, child: Child) -> None:
        self.name = name
        self._child = child
        self._lines: list[str] = []
        self._changed = asyncio.Condition()
        self._ended = False
        self._reading = asyncio.create_task(self._read(), name=f"read-{name}")

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def running(self) -> bool:
        return self._child.returncode is None

    @property
    def output(self) -> str:
        return "\n".join(self._lines)

    async def wait_for(self, pattern: re.Pattern[str], timeout_s: float = READY_TIMEOUT_S) -> re.Match[str]:
        """The first line that matches, printed already or still to come. Raises ProcessFailed if there will be none."""
        searched = 0
        try:
            async with asyncio.timeout(timeout_s), self._changed:
                while True:
                    for line in self._lines[searched:]:
                        if match := pattern.search(line):
                            return match
                    searched = len(self._lines)
                    if self._ended:
                        raise ProcessFailed(self._report(f"ended without printing {pattern.pattern!r}"))
                    await self._changed.wait()
        except TimeoutError:
            raise ProcessFailed(self._report(f"did not print {pattern.pattern!r} within {timeout_s:g} s")) from None

    async def wait(self, timeout_s: float = STOP_TIMEOUT_S) -> int:
        """Its exit code; negative is the signal that ended it."""
        try:
            code = await asyncio.wait_for(self._child.wait(), timeout_s)
        except TimeoutError:
            raise ProcessFailed(self._report(f"did not end within {timeout_s:g} s")) from None
        await self._reading
        return code

    def kill(self) -> None:
        """kill -9: it gets no chance to tidy up."""
        self._signal(signal.SIGKILL)

    def pause(self) -> None:
        """SIGSTOP: it holds whatever it holds and does nothing."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def interrupt(self) -> None:
        self._signal(signal.SIGINT)

    async def terminate(self, timeout_s: float = STOP_TIMEOUT_S) -> int:
        """SIGTERM, and its exit code."""
        self._signal(signal.SIGTERM)
        return await self.wait(timeout_s)

    async def end(self) -> None:
        """Gone, at once, and its output read. For tidying up: what a test wants to know of an end it asks
        `terminate`."""
        if self.running:
            self.kill()
            await self._child.wait()
        await self._reading

    def report(self) -> str:
        return self._report("running" if self.running and not self._ended else f"ended with {self._child.returncode}")

    def _signal(self, number: signal.Signals) -> None:
        if self.running:
            self._child.send_signal(number)

    async def _read(self) -> None:
        assert self._child.stdout is not None
        async for raw in self._child.stdout:
            async with self._changed:
                self._lines.append(raw.decode(errors="replace").rstrip("\n"))
                self._changed.notify_all()
        async with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _report(self, what: str) -> str:
        return "\n".join([f"{self.name} (pid {self.pid}) {what}. It said:", *self._lines[-KEPT_LINES:]])


class ServerProcess(Process):
    """A `kagzi server`. `grpc` is host:port, `http` a URL (empty if it has none)."""

    grpc: str = ""
    http: str = ""


class Processes:
    """Starts processes and sees to it that all of them end."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._started: list[Process] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        reports = [process.report() for process in self._started] if error is not None else []
        await asyncio.gather(*(process.end() for process in self._started))
        if error is not None:
            error.add_note("\n\n".join(reports))

    async def server(self, database: str, *options: str, program: str = "kagzi", **environment: str) -> ServerProcess:
        """A server on free ports, ready to serve. `options` as on the command line: "--lease", "2s"; `program`: a
        module that does as `kagzi` does. The transport is that of `transports`."""
        ports = () if "--listen" in options else ("--listen", "127.0.0.1:0")
        web = () if "--http" in options else ("--http", "127.0.0.1:0")
        command = ["server", "--db", database, *ports, *web, *options]
        environment = {**server_environment(database), **environment}
        server = ServerProcess(self._name("server"), await self._fork(program, command, environment))
        self._started.append(server)
        ready = await server.wait_for(SERVER_READY)
        server.grpc = ready["grpc"]
        server.http = ready["http"] or ""
        return server

    async def worker(self, address: str, module: str, *options: str, **environment: str) -> Process:
        """A worker that serves every workflow of `module`, connected. See tests/support/worker_process.py for
        options."""
        worker = await self.launch_worker(address, module, *options, **environment)
        await worker.wait_for(WORKER_READY)
        return worker

    async def launch_worker(self, address: str, module: str, *options: str, **environment: str) -> Process:
        """The same, not connected yet: for one that may die of its first run before it could say that it is ready."""
        return await self.module(
            "tests.support.worker_process", address, module, *options, name="worker", **environment
        )

    async def module(self, program: str, *arguments: str, name: str, **environment: str) -> Process:
        """`python -m PROGRAM ARGUMENTS`; does not wait for anything."""
        process = Process(self._name(name), await self._fork(program, list(arguments), environment))
        self._started.append(process)
        return process

    async def run(self, *command: str, name: str = "process", **environment: str) -> Process:
        """Any other program; does not wait for anything."""
        process = Process(self._name(name), await self._spawn(list(command), environment))
        self._started.append(process)
        return process

    def _name(self, kind: str) -> str:
        return f"{kind}-{len(self._started) + 1}"

    async def _fork(self, module: str, arguments: list[str], environment: Mapping[str, str]) -> Child:
        """`python -m MODULE ARGUMENTS`; forked, unless what it imports depends on its environment."""
        if not AVAILABLE or "PYTHONPATH" in environment:
            return await self._spawn([sys.executable, "-m", module, *arguments], environment)
        return await AsyncForked.start(module, arguments, self._directory, self._environment(environment))

    def _environment(self, more: Mapping[str, str]) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("KAGZI_")}
        return {**inherited, "PYTHONPATH": SEARCH, "PYTHONUNBUFFERED": "1", **more}

    async def _spawn(self, command: list[str], environment: Mapping[str, str]) -> Child:
        return await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            cwd=self._directory,
            env=self._environment(environment),
            # Signals of the terminal are for pytest; these processes get theirs one by one.
            start_new_session=True,
            limit=LINE_BYTES,
        )

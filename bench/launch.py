"""Starts and ends the processes of an engine: each by its process id, also if this process is killed."""

import json
import os
import re
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.support.postgres import LAUNCHER

READY_TIMEOUT_S = 90.0
STOP_TIMEOUT_S = 15.0
CALL_TIMEOUT_S = 600.0
_TAIL_LINES = 30


class EngineError(Exception):
    """An engine did not do what was requested; the text has the end of its output."""


class Launched:
    """A process in its own session, whose output goes to a file."""

    def __init__(
        self, role: str, command: Sequence[str | Path], log: Path, *, environment: Mapping[str, str], pipes: bool
    ) -> None:
        self.role = role
        self.log = log
        # The launcher asks the kernel for a signal when this process ends, and then execs the command.
        launcher = [sys.executable, "-I", "-S", "-c", LAUNCHER, ""]
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                [*launcher, *map(str, command)],
                stdin=subprocess.PIPE if pipes else subprocess.DEVNULL,
                stdout=subprocess.PIPE if pipes else output,
                stderr=output,
                env={**os.environ, **environment},
                cwd=log.parent,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    def await_output(self, pattern: str) -> str:
        """Wait for a match in the output, and return its first group."""
        deadline = time.monotonic() + READY_TIMEOUT_S
        while time.monotonic() < deadline:
            if match := re.search(pattern, self.log.read_text(errors="replace")):
                return match[1]
            if self.process.poll() is not None:
                raise EngineError(f"{self.role} ended with {self.process.returncode}:\n{self.tail()}")
            time.sleep(0.02)
        raise EngineError(f"{self.role} was not ready within {READY_TIMEOUT_S:.0f} s:\n{self.tail()}")

    def tail(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-_TAIL_LINES:])

    def stop(self) -> None:
        """Send SIGTERM, and SIGKILL after a while. Does nothing if the process has ended."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """`kill -9` of the process and of everything it started in its session."""
        self._end(signal.SIGKILL)

    def _end(self, how: signal.Signals) -> None:
        if self.process.poll() is None:
            self.process.send_signal(how)
            try:
                self.process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):  # it did not read all requests
                    pipe.close()
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)  # children that are left in its session


class Driver:
    """The load generator of an engine, in its own process: each request and each response is one line of JSON."""

    def __init__(self, launched: Launched) -> None:
        self.launched = launched
        self._rest = b""
        if not self._read(READY_TIMEOUT_S).get("ready"):
            raise EngineError(f"{launched.role} did not say that it is ready")

    def call(self, do: str, *, timeout_s: float = CALL_TIMEOUT_S, **arguments: Any) -> dict[str, Any]:
        """Raises EngineError if the load generator reports an error."""
        self.send(do, **arguments)
        return self.answer(timeout_s=timeout_s)

    def send(self, do: str, **arguments: Any) -> None:
        """Send a request without waiting; `answer` returns the response."""
        stdin = self.launched.process.stdin
        assert stdin is not None
        try:
            stdin.write(json.dumps({"do": do, **arguments}).encode() + b"\n")
            stdin.flush()
        except BrokenPipeError as error:
            raise EngineError(f"{self.launched.role} has ended:\n{self.launched.tail()}") from error

    def answer(self, *, timeout_s: float = CALL_TIMEOUT_S) -> dict[str, Any]:
        answer = self._read(timeout_s)
        if "error" in answer:
            raise EngineError(f"{answer['error']}\n{self.launched.tail()}")
        return answer

    def _read(self, timeout_s: float) -> dict[str, Any]:
        """Read the next line."""
        stdout = self.launched.process.stdout
        assert stdout is not None
        deadline = time.monotonic() + timeout_s
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            while b"\n" not in self._rest:
                if not selector.select(max(deadline - time.monotonic(), 0)):
                    raise EngineError(f"no answer within {timeout_s:.0f} s:\n{self.launched.tail()}")
                chunk = os.read(stdout.fileno(), 1 << 20)
                if not chunk:
                    code = self.launched.process.wait()
                    raise EngineError(f"{self.launched.role} ended with {code}:\n{self.launched.tail()}")
                self._rest += chunk
        line, _, self._rest = self._rest.partition(b"\n")
        return json.loads(line)


class Launcher:
    """All processes of an engine. `directory`: where they write their output and files."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._launched: list[Launched] = []

    def __enter__(self) -> "Launcher":
        return self

    def __exit__(self, *_: object) -> None:
        for launched in reversed(self._launched):
            launched.stop()

    @property
    def roots(self) -> dict[str, int]:
        """The process ids of the running processes, by role."""
        return {each.role: each.pid for each in self._launched}

    def start(
        self,
        role: str,
        command: Sequence[str | Path],
        *,
        environment: Mapping[str, str] | None = None,
        ready: str | None = None,
    ) -> Launched:
        """`ready`: the output that shows that it can be used."""
        launched = self._launch(role, command, environment, pipes=False)
        if ready is not None:
            launched.await_output(ready)
        return launched

    def driver(
        self, role: str, command: Sequence[str | Path], *, environment: Mapping[str, str] | None = None
    ) -> Driver:
        return Driver(self._launch(role, command, environment, pipes=True))

    def kill(self, launched: Launched) -> None:
        """`kill -9`; frees its role."""
        launched.kill()
        self._launched.remove(launched)

    def stop(self, launched: Launched) -> None:
        launched.stop()
        self._launched.remove(launched)

    def _launch(
        self, role: str, command: Sequence[str | Path], environment: Mapping[str, str] | None, *, pipes: bool
    ) -> Launched:
        log = self.directory / f"{role}-{len(self._launched)}-{time.monotonic_ns()}.log"
        launched = Launched(role, command, log, environment=environment or {}, pipes=pipes)
        self._launched.append(launched)
        return launched

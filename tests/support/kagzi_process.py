"""`kagzi` as a real process: run to its end, or kept running while its output is read line by line."""

import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.support.fork_server import AVAILABLE, ForkedProcess, forked
from tests.support.timeouts import LOADED_MACHINE_S

KAGZI = (sys.executable, "-m", "kagzi")
READY_TIMEOUT_S = LOADED_MACHINE_S
END_TIMEOUT_S = LOADED_MACHINE_S


def clean_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment without what would change a command's defaults."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("KAGZI_") and name != "NO_COLOR"}
    return {**kept, **(extra or {})}


def kagzi(
    *arguments: str,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: str | bytes = b"",
    timeout_s: float = END_TIMEOUT_S,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    stdin_bytes = stdin.encode() if isinstance(stdin, str) else stdin
    done = subprocess.run(
        [*KAGZI, *arguments],
        cwd=cwd,
        env=clean_environment(env),
        input=stdin_bytes,
        capture_output=True,
        timeout=timeout_s,
        check=False,
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


class RunningCommand:
    """A command that goes on. stdout and stderr are gathered apart; `says` waits for a line in either.

    Servers and workers are forked (tests/support/fork_server.py); other commands, and other programs, are executed.
    """

    def __init__(
        self,
        *arguments: str,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        program: Sequence[str] = KAGZI,
    ) -> None:
        self.arguments = arguments
        environment = clean_environment(env)
        self.process: subprocess.Popen[bytes] | ForkedProcess
        if AVAILABLE and program is KAGZI and arguments[0] in ("server", "worker"):
            self.process = forked("kagzi", arguments, cwd=cwd or Path.cwd(), env=environment, stderr_apart=True)
        else:
            self.process = subprocess.Popen(
                [*program, *arguments],
                cwd=cwd,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                # A terminal of its own, so to say: Ctrl-C reaches it and its children, and nobody else.
                start_new_session=True,
            )
        self.out: list[str] = []
        self.err: list[str] = []
        self._lines: queue.Queue[str | None] = queue.Queue()  # None: a stream has ended
        self._streams = 2
        self._seen: list[str] = []
        self._threads = [
            threading.Thread(target=self._read, args=(self.process.stdout, self.out), daemon=True),
            threading.Thread(target=self._read, args=(self.process.stderr, self.err), daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def says(self, pattern: str, timeout_s: float = READY_TIMEOUT_S) -> re.Match[str]:
        """The first line, since the last call, that matches. Fails with everything it said instead."""
        wanted = re.compile(pattern)
        end = time.monotonic() + timeout_s
        while True:
            line = self._next_line(end)
            if line is None:
                output = "\n".join(self._seen)
                raise AssertionError(f"{self.arguments} did not say {pattern!r} but:\n{output}")
            self._seen.append(line)
            if match := wanted.search(line):
                return match

    def _next_line(self, end: float) -> str | None:
        """None when there are no more, or none in time."""
        while self._streams:
            try:
                line = self._lines.get(timeout=max(end - time.monotonic(), 0))
            except queue.Empty:
                return None
            if line is not None:
                return line
            self._streams -= 1
        return None

    def interrupt(self) -> int:
        """Ctrl-C, as a terminal does it: to the whole process group. Returns the exit code."""
        os.killpg(self.process.pid, signal.SIGINT)
        return self.wait()

    def kill(self) -> None:
        self.process.kill()
        self.wait()

    def wait(self, timeout_s: float = END_TIMEOUT_S) -> int:
        code = self.process.wait(timeout_s)
        for thread in self._threads:
            thread.join(timeout_s)
        return code

    def close(self) -> None:
        """End it with everything it started, whatever state it is in."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.wait()
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()

    def _read(self, stream: object, lines: list[str]) -> None:
        for raw in stream:  # type: ignore[attr-defined]  a binary pipe
            line = raw.decode(errors="replace").rstrip("\n")
            lines.append(line)
            self._lines.put(line)
        self._lines.put(None)


@contextmanager
def running(*arguments: str, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> Iterator[RunningCommand]:
    command = RunningCommand(*arguments, cwd=cwd, env=env)
    try:
        yield command
    finally:
        command.close()

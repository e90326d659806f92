"""Python programs as processes of their own that need not import everything again: they are forked off a process that
has imported Kagzi already. A server or a worker is ready after a tenth of the processor time that `python -m` takes.

    process = forked("kagzi", ["server", "--db", url], cwd=directory, env=environment)
    os.kill(process.pid, signal.SIGKILL)

What is forked has a process id, a session, an environment, a working directory, streams and an end of its own, and is
run as `python -m` would run it. It is not a child of this process: its exit code comes from the one it was forked off,
which ends with this process and then ends what it has forked.
"""

import atexit
import errno
import functools
import gc
import importlib
import io
import json
import os
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from tests.support.timeouts import LOADED_MACHINE_S

REPOSITORY = Path(__file__).resolve().parents[2]
SEARCH = os.pathsep.join([str(REPOSITORY / "src"), str(REPOSITORY)])
AVAILABLE = sys.platform == "linux" and not os.environ.get("KAGZI_TEST_CAMPAIGNS")
"""Campaigns measure processes: theirs are started as users start them."""

_IMPORTED = (
    "kagzi.cli.operate.server",
    "kagzi.cli.operate.worker",
    "kagzi.server.app",
    "kagzi.store.postgres",
    "kagzi.store.sqlite",
    "kagzi.sdk.worker.worker",
    "grpc.aio",
    "uvloop",
)
"""What servers and workers import sooner or later. None of it starts a thread or reads the environment."""
_LENGTH = struct.Struct("!I")
_CODE = struct.Struct("!i")


class ForkedProcess:
    """As subprocess.Popen, with what is used of it. `stderr` is None if it goes to `stdout`."""

    def __init__(self, pid: int, status: int, stdout: BinaryIO, stderr: BinaryIO | None) -> None:
        self.pid = pid
        self.stdout = stdout
        self.stderr = stderr
        self.returncode: int | None = None
        self._status = status
        self._lock = threading.Lock()

    def __del__(self) -> None:
        if self._status >= 0:
            os.close(self._status)

    @property
    def status(self) -> int:
        """A descriptor that can be read when the process has ended."""
        return self._status

    def poll(self) -> int | None:
        return self._ended(0)

    def wait(self, timeout: float | None = None) -> int:
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        """Does nothing if it has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it has just ended
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def _ended(self, timeout_s: float | None) -> int | None:
        if self.returncode is not None:
            return self.returncode
        if not select.select([self._status], [], [], timeout_s)[0]:
            return None
        with self._lock:
            if self.returncode is None:
                data = os.read(self._status, _CODE.size)
                assert data, "the process that forks has ended"
                self.returncode = _CODE.unpack(data)[0]
        return self.returncode


def forked(
    module: str, arguments: Sequence[str], *, cwd: Path, env: Mapping[str, str], stderr_apart: bool = False
) -> ForkedProcess:
    """`python -m MODULE ARGUMENTS`, forked, in a session of its own, with nothing to read."""
    return _fork_server().fork(module, arguments, cwd, env, stderr_apart)


class _ForkServer:
    """This process's end of the connection. One request at a time."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", f"from {__name__} import _serve; _serve({theirs.fileno()})"],
                stdin=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": SEARCH},
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        self._socket = ours
        self._lock = threading.Lock()
        atexit.register(self._end)

    def fork(
        self, module: str, arguments: Sequence[str], cwd: Path, env: Mapping[str, str], stderr_apart: bool
    ) -> ForkedProcess:
        out, out_end = os.pipe()
        status, status_end = os.pipe()
        err, err_end = os.pipe() if stderr_apart else (-1, os.dup(out_end))
        request = json.dumps([module, list(arguments), str(cwd), dict(env)]).encode()
        passed = [out_end, err_end, status_end]
        try:
            with self._lock:
                socket.send_fds(self._socket, [_LENGTH.pack(len(request))], passed)
                self._socket.sendall(request)
                (pid,) = _LENGTH.unpack(_read(self._socket, _LENGTH.size))
        finally:
            for end in passed:
                os.close(end)
        return ForkedProcess(pid, status, os.fdopen(out, "rb"), os.fdopen(err, "rb") if stderr_apart else None)

    def _end(self) -> None:
        self._socket.close()
        try:
            self._process.wait(LOADED_MACHINE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@functools.cache
def _fork_server() -> _ForkServer:
    return _ForkServer()


def _read(connection: socket.socket, count: int) -> bytes:
    """Raises EOFError if nobody is there any more."""
    data = bytearray()
    while len(data) < count:
        part = connection.recv(count - len(data))
        if not part:
            raise EOFError
        data += part
    return bytes(data)


# --- in the process that forks ----------------------------------------------------------------------------------------


def _serve(descriptor: int) -> None:
    """Fork what is asked for until the other end is closed. In a forked process this returns when its program ends."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    for name in _IMPORTED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    connection = socket.socket(fileno=descriptor)
    woken, wake = socket.socketpair()
    wake.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake.fileno())
    statuses: dict[int, int] = {}
    while True:
        ready = select.select([connection, woken], [], [])[0]
        if woken in ready:
            woken.recv(4_096)
            _reap(statuses)
        if connection not in ready:
            continue
        try:
            program, streams = _receive(connection)
        except EOFError:
            break
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for inherited in (connection, woken, wake):
                inherited.close()
            for inherited in (*statuses.values(), streams[2]):
                os.close(inherited)
            _become(program, streams)
            return
        statuses[pid] = streams[2]
        os.close(streams[0])
        os.close(streams[1])
        connection.sendall(_LENGTH.pack(pid))
    for pid in statuses:
        os.kill(pid, signal.SIGKILL)


def _receive(connection: socket.socket) -> tuple[list[Any], list[int]]:
    data, streams, _, _ = socket.recv_fds(connection, _LENGTH.size, 3)
    if not data:
        raise EOFError
    length = data + _read(connection, _LENGTH.size - len(data))
    return json.loads(_read(connection, _LENGTH.unpack(length)[0])), streams


def _reap(statuses: dict[int, int]) -> None:
    while statuses:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        descriptor = statuses.pop(pid)
        try:
            os.write(descriptor, _CODE.pack(os.waitstatus_to_exitcode(status)))
        except OSError as gone:
            if gone.errno != errno.EPIPE:
                raise
        os.close(descriptor)


def _become(program: list[Any], streams: list[int]) -> None:
    """Run the program as `python -m` does, to its end or its SystemExit."""
    module, arguments, directory, environment = program
    os.setsid()
    os.chdir(directory)
    for number in (1, 2):
        os.dup2(streams[number - 1], number)
        os.close(streams[number - 1])
    os.environ.clear()
    os.environ.update(environment)
    unbuffered = bool(environment.get("PYTHONUNBUFFERED"))
    sys.stdout = io.TextIOWrapper(open(1, "wb", 0 if unbuffered else -1, closefd=False), write_through=unbuffered)  # noqa: SIM115
    sys.stderr = io.TextIOWrapper(open(2, "wb", closefd=False), line_buffering=True, errors="backslashreplace")  # noqa: SIM115
    sys.__stdout__, sys.__stderr__ = sys.stdout, sys.stderr
    sys.argv = [module, *arguments]
    sys.path[0] = directory
    runpy.run_module(module, run_name="__main__", alter_sys=True)

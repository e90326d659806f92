"""A terminal is closed: commands that go on drain as they do on SIGTERM. What runs steps is in test_stopping.py."""

import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.support.kagzi_process import KAGZI, RunningCommand, clean_environment, running
from tests.support.timeouts import LOADED_MACHINE_S

NO_PORTS = ("--listen", "127.0.0.1:0", "--http", "127.0.0.1:0")


def hang_up(command: RunningCommand) -> int:
    """As a terminal does it, and its shell again. Returns the exit code."""
    for _ in range(2):
        os.killpg(command.process.pid, signal.SIGHUP)
    return command.wait()


def test_a_server_tells_its_workers_and_ends(tmp_path: Path) -> None:
    (tmp_path / "flow.py").write_text(
        "from kagzi import Context, workflow\n\n@workflow\nasync def flow(ctx: Context) -> None: ...\n"
    )
    with running("server", "--db", f"sqlite:///{tmp_path / 'kagzi.db'}", *NO_PORTS) as server:
        address = server.says(r"kagzi server ready grpc=(\S+)")[1]
        with running("worker", "flow.py", "--address", address, "--log-level", "info", cwd=tmp_path) as worker:
            worker.says(r"worker \S+ serves")
            assert hang_up(server) == 0
            worker.says("The server at .* closed the session")  # not "the connection was closed": it said so itself


def test_the_demo_closes_its_shop(tmp_path: Path) -> None:
    with running("demo", *NO_PORTS, "--data", "shop", "--every", "0.05", cwd=tmp_path) as demo:
        demo.says("The shop is open")
        demo.says(r"^  look +(\S+)$")
        assert hang_up(demo) == 0


@pytest.mark.parametrize("what", ["server", "worker"])
def test_all_processes_end_with_the_terminal_of_their_supervisor(
    what: str, migrated_postgres_url: str, tmp_path: Path
) -> None:
    """Without a terminal, SIGHUP replaces them: tests/cli/test_supervisor.py."""
    (tmp_path / "flow.py").write_text(
        "from kagzi import Context, workflow\n\n@workflow\nasync def flow(ctx: Context) -> None: ...\n"
    )
    served = ("server", "--db", migrated_postgres_url, *NO_PORTS)
    with running(*served) as server:
        address = server.says(r"kagzi server ready grpc=(\S+)")[1]
        arguments = served if what == "server" else ("worker", "flow.py", "--address", address)
        shell, terminal = pty.openpty()
        try:
            process = in_terminal(terminal, *arguments, "--processes", "2", cwd=tmp_path)
            os.close(terminal)
            with process:
                assert process.stderr is not None
                assert any(re.search(rb"server ready|process 2 \(pid \d+\) is ready", line) for line in process.stderr)
                children = psutil.Process(process.pid).children()
                assert len(children) == 2
                os.close(shell)
                shell = -1
                assert process.wait(LOADED_MACHINE_S) == 0
        finally:
            if shell >= 0:
                os.close(shell)
        assert not any(child.is_running() for child in children)


def in_terminal(terminal: int, *arguments: str, cwd: Path) -> subprocess.Popen[bytes]:
    """It owns the terminal; the kernel sends SIGHUP when the other end of the terminal is closed."""
    own = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
    return subprocess.Popen(
        [sys.executable, "-c", own, *KAGZI, *arguments, "--log-level", "info"],
        cwd=cwd,
        env=clean_environment(),
        stdin=terminal,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )

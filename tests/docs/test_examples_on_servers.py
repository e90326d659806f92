"""e02 as it is: it names localhost:50051 and sleeps half a minute, so the two servers take turns on that port."""

import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.docs.snippets import ROOT
from tests.support.kagzi_process import RunningCommand, clean_environment, running

EXAMPLE = ROOT / "examples" / "e02_order.py"
PORT = "127.0.0.1:50051"

pytestmark = pytest.mark.xdist_group("port-50051")


@contextmanager
def on_the_port(ready: str, *arguments: str, cwd: Path) -> Generator[RunningCommand]:
    """The system hands out ports of this range: a connection of another test may have this one for a while."""
    end = time.monotonic() + 120.0
    while True:
        with running(*arguments, "--listen", PORT, "--http", "127.0.0.1:0", cwd=cwd) as command:
            try:
                command.says(ready)
            except AssertionError as error:
                if "is in use" not in str(error) or time.monotonic() > end:
                    raise
            else:
                yield command
                return
        time.sleep(0.5)


def run_the_example(directory: Path) -> None:
    done = subprocess.run(
        [sys.executable, EXAMPLE],
        cwd=directory,
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    started, mail, result = done.stdout.splitlines()
    assert started.startswith("started ")
    assert "/runs/" in started
    assert mail == "mail to ada@example.com: shipment-of-2"
    assert result == "order_id='tx-123-48' status='completed'"


def ended_cleanly(command: RunningCommand) -> None:
    assert command.interrupt() == 0
    assert "Traceback" not in "\n".join(command.out + command.err)


def test_on_dev(tmp_path: Path) -> None:
    with on_the_port("is ready", "dev", cwd=tmp_path) as dev:
        run_the_example(tmp_path)
        ended_cleanly(dev)


def test_on_a_server_with_postgresql(tmp_path: Path, postgres_url: str) -> None:
    with on_the_port("kagzi server ready", "server", "--db", postgres_url, cwd=tmp_path) as server:
        run_the_example(tmp_path)
        ended_cleanly(server)

"""The debugger, driven through a pseudo-terminal: it stops in the code of a workflow whose run has long ended."""

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kagzi import Context, workflow
from kagzi.testing import RecordedRun
from tests.support.timeouts import LOADED_MACHINE_S

PROMPT = "(Pdb) "
CODE = """\
from kagzi import Context, workflow

def tax(total: float) -> float:
    raise SystemExit("no body of a step runs")
def charge(total: float) -> dict[str, str]: ...


@workflow("order")
async def order(ctx: Context, total: float) -> str:
    taxed = await ctx.step("tax").run(tax, total)
    paid = await ctx.step("charge").run(charge, taxed)
    await ctx.sleep("nap", "3 days")
    return paid["transaction"]
"""


@workflow("order")
async def _order(ctx: Context, total: float) -> str: ...


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of a finished run, and the code."""
    path = tmp_path_factory.mktemp("debugger")
    run = RecordedRun(_order, 10.0, workflow_id="order-1")
    run.step("tax", returns=11.9)
    run.step("charge", returns={"transaction": "tx_17"})
    run.sleep("nap", at="3 days")
    run.history().save(path / "run.jsonl")
    (path / "flows.py").write_text(CODE)
    lines = CODE.splitlines()
    lines.insert(11, "    breakpoint()")
    (path / "with_breakpoint.py").write_text("\n".join(lines) + "\n")
    return path


class Terminal:
    """A process on a terminal of its own."""

    def __init__(self, master: int, process: "subprocess.Popen[bytes]") -> None:
        self._master = master
        self._process = process
        self.shown = ""

    def read_until(self, text: str) -> str:
        """What it shows up to this text. Raises AssertionError if that does not come."""
        start = len(self.shown)
        deadline = time.monotonic() + LOADED_MACHINE_S
        while text not in self.shown[start:]:
            ready, _, _ = select.select([self._master], [], [], max(deadline - time.monotonic(), 0))
            chunk = self._read() if ready else ""
            assert chunk, f"{text!r} did not come:\n{self.shown}"
            self.shown += chunk
        return self.shown[start:]

    def _read(self) -> str:
        try:
            return os.read(self._master, 65_536).decode(errors="replace").replace("\r\n", "\n")
        except OSError:  # the other side is closed
            return ""

    def type(self, line: str) -> None:
        os.write(self._master, f"{line}\n".encode())

    def ask(self, line: str) -> str:
        """What a command of the debugger shows."""
        self.type(line)
        return self.read_until(PROMPT)

    def end(self) -> int:
        """The rest, and the exit code."""
        while chunk := self._read():
            self.shown += chunk
        return self._process.wait(LOADED_MACHINE_S)


@contextmanager
def replaying(directory: Path, *arguments: str, code: str = "flows.py", **environment: str) -> Generator[Terminal]:
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "kagzi", "replay", "--from", "run.jsonl", "--code", code, *arguments]
    own = {name: value for name, value in os.environ.items() if name != "PYTHONBREAKPOINT"}
    process = subprocess.Popen(
        command, cwd=directory, stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
        env={**own, "NO_COLOR": "1", "TERM": "dumb", "PYTHON_COLORS": "0", "PYTHON_BASIC_REPL": "1", **environment},
    )  # fmt: skip
    os.close(slave)
    try:
        yield Terminal(master, process)
    finally:
        process.kill()
        process.wait()
        os.close(master)


def test_it_stops_at_a_step_with_its_variables_and_goes_on_line_by_line(directory: Path) -> None:
    with replaying(directory, "--pdb", "--at", "charge") as terminal:
        stopped = terminal.read_until(PROMPT)
        assert "flows.py(11)order()" in stopped
        assert '-> paid = await ctx.step("charge").run(charge, taxed)' in stopped
        assert "11.9\n" in terminal.ask("p taxed")
        assert "flows.py(12)order()" in terminal.ask("n")
        assert "tx_17" in terminal.ask("p paid['transaction']")
        terminal.type("c")
        assert terminal.end() == 0
        assert "completed  tx_17" in terminal.shown


def test_without_a_step_it_stops_at_the_first_line_and_quits(directory: Path) -> None:
    with replaying(directory, "--pdb") as terminal:
        assert "flows.py(10)order()" in terminal.read_until(PROMPT)
        assert "10.0\n" in terminal.ask("p total")
        assert "flows.py(11)order()" in terminal.ask("s")  # not into Kagzi
        terminal.type("q")
        assert terminal.end() == 130
        assert "the debugger was left" in terminal.shown


def test_a_breakpoint_of_the_code_itself_works(directory: Path) -> None:
    with replaying(directory, code="with_breakpoint.py") as terminal:
        assert "with_breakpoint.py" in terminal.read_until(PROMPT)
        assert "{'transaction': 'tx_17'}" in terminal.ask("p paid")
        terminal.type("c")
        assert terminal.end() == 0


DEBUGGER = """\
import sys

def stop():
    frame = sys._getframe(1)
    print("stopped", frame.f_code.co_filename.rpartition("/")[2], frame.f_lineno, sorted(frame.f_locals))
"""


@pytest.mark.parametrize(
    ("arguments", "stopped"),
    [
        (["--at", "charge"], "stopped flows.py 11 ['ctx', 'taxed', 'total']"),
        ([], "stopped flows.py 8 ['ctx', 'total']"),
    ],
)
def test_another_debugger_stops_in_the_code_of_the_workflow(
    directory: Path, arguments: list[str], stopped: str
) -> None:
    (directory / "my_debugger.py").write_text(DEBUGGER)
    environment = {"PYTHONBREAKPOINT": "my_debugger.stop", "PYTHONPATH": str(directory)}
    with replaying(directory, "--pdb", *arguments, **environment) as terminal:
        assert terminal.end() == 0
        assert stopped in terminal.shown


def test_a_step_that_never_comes_and_breakpoints_that_are_off_are_named(directory: Path) -> None:
    with replaying(directory, "--pdb", "--at", "refund") as terminal:
        assert terminal.end() == 3
        assert "does not reach step refund" in terminal.shown
        assert "it reaches: tax, charge, nap" in terminal.shown
    with replaying(directory, "--pdb", PYTHONBREAKPOINT="0") as terminal:
        assert terminal.end() == 2
        assert "PYTHONBREAKPOINT=0" in terminal.shown

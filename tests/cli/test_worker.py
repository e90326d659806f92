"""`kagzi worker`: which workflows it finds, whom it serves, how it ends."""

import gc
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.kagzi_process import RunningCommand, kagzi, running

FLOWS = """
from kagzi import Context, Worker, workflow

@workflow
async def ask(ctx: Context) -> str:
    return {answer!r}

@workflow
async def other(ctx: Context) -> str:
    return "other"
"""
WITH_WORKER = (
    FLOWS.format(answer="by worker")
    + """
special = Worker("nowhere:1", namespace="special", workflows=[ask])
worker = Worker("nowhere:1", workflows=[ask])
"""
)


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    directory = tmp_path / "server"
    directory.mkdir()
    with running("server", "--listen", "127.0.0.1:0", "--http", "off", cwd=directory) as server:
        yield server.says(r"kagzi server ready .*?grpc=(\S+)")[1]


def served(worker: RunningCommand) -> str:
    return worker.says(r"worker \S+ serves (.*) at ")[1]


def test_a_file_serves_all_its_workflows_and_ctrl_c_stops_it_cleanly(address: str, tmp_path: Path) -> None:
    (tmp_path / "flows.py").write_text(FLOWS.format(answer="yes"))
    with running("worker", "flows.py", "--address", address, cwd=tmp_path) as worker:
        assert served(worker) == "ask, other"
        assert kagzi("start", "ask", "--wait", "--address", address).stdout == "yes\n"
        assert worker.interrupt() == 0
        assert "Traceback" not in "\n".join(worker.err)


def test_a_module_in_a_package_may_import_its_neighbours(address: str, tmp_path: Path) -> None:
    package = tmp_path / "app"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "words.py").write_text("answer = 'from a neighbour'\n")
    (package / "flows.py").write_text("from .words import answer\n" + FLOWS.replace("{answer!r}", "answer"))
    for target in ("app.flows", "app/flows.py"):
        with running("worker", target, "--address", address, cwd=tmp_path) as worker:
            assert served(worker) == "ask, other"


def test_a_worker_object_is_used_as_it_is_except_for_options(address: str, tmp_path: Path) -> None:
    (tmp_path / "flows.py").write_text(WITH_WORKER)
    with running("worker", "flows.py", "--address", address, cwd=tmp_path) as worker:
        assert served(worker) == "ask"  # of the one called `worker`
    with running("worker", "flows.py:special", "--address", address, cwd=tmp_path) as worker:
        served(worker)
        done = kagzi("start", "ask", "--wait", "--address", address, "--namespace", "special")
        assert done.stdout == "by worker\n"


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("flows.py:missing", "has no 'missing'"),
        ("flows.py:not a name", "is not a name"),
        ("no such.module", "neither a file nor a module"),
    ],
)
def test_a_target_that_is_not_there_is_a_usage_error(target: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "flows.py").write_text(FLOWS.format(answer="yes"))
    done = kagzi("worker", target, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr


def test_a_module_that_does_not_load_shows_its_own_traceback(tmp_path: Path) -> None:
    (tmp_path / "flows.py").write_text("x = 1\nimport no_such_module\n")
    done = kagzi("worker", "flows.py", cwd=tmp_path)
    assert done.returncode == 1
    assert 'flows.py", line 2' in done.stderr
    assert "No module named 'no_such_module'" in done.stderr
    assert "kagzi/cli" not in done.stderr


def test_reload_starts_anew_with_the_new_code(address: str, tmp_path: Path) -> None:
    directory = tmp_path / "code"
    directory.mkdir()
    flows = directory / "flows.py"
    flows.write_text(FLOWS.format(answer="one"))
    with running("worker", "flows.py", "--reload", "--address", address, cwd=directory) as worker:
        served(worker)
        assert kagzi("start", "ask", "--wait", "--address", address).stdout == "one\n"
        flows.write_text(FLOWS.format(answer="two"))
        worker.says("changed: flows.py")
        served(worker)
        assert kagzi("start", "ask", "--wait", "--address", address).stdout == "two\n"
        assert worker.interrupt() == 0


COLLECTOR = """
import gc, sys
from kagzi import Context, Worker, workflow

@workflow
async def ask(ctx: Context) -> str:
    return "asked"

class Told(Worker):
    def serve(self) -> None:
        sys.stdout.write(f"threshold={gc.get_threshold()[0]} frozen={gc.get_freeze_count() > 10_000}")

    def at(self, *args, **kwargs) -> "Told":
        return self

print(f"user={gc.get_threshold()[0]} frozen={gc.get_freeze_count()}")
worker = Told("nowhere:1", workflows=[ask])
"""


def test_the_collector_is_set_in_our_own_process_and_not_by_importing_the_sdk(tmp_path: Path) -> None:
    (tmp_path / "flows.py").write_text(COLLECTOR)
    worker = kagzi("worker", "flows.py", cwd=tmp_path)
    assert worker.stdout == "user=200000 frozen=0\nthreshold=50000 frozen=True", worker.stderr
    program = subprocess.run([sys.executable, "flows.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert program.stdout == f"user={gc.get_threshold()[0]} frozen=0\n"


EXITS = """
import asyncio, sys
from kagzi import Context, Retry, workflow

async def interrupted() -> None:
    await asyncio.sleep(0)
    raise KeyboardInterrupt

def interrupted_in_a_thread() -> None:
    raise KeyboardInterrupt

async def exits() -> None:
    sys.exit(3)

@workflow
async def fails(ctx: Context, how: str) -> None:
    if how == "the workflow itself":
        raise KeyboardInterrupt
    body = {"async": interrupted, "thread": interrupted_in_a_thread, "exit": exits}[how]
    await ctx.step("body", retry=Retry.fixed(2, "1ms")).run(body)

@workflow
async def ask(ctx: Context) -> str:
    return "still here"
"""


def test_a_step_that_raises_what_ends_programs_fails_and_its_worker_goes_on(address: str, tmp_path: Path) -> None:
    (tmp_path / "flows.py").write_text(EXITS)
    with running("worker", "flows.py", "--address", address, cwd=tmp_path) as worker:
        served(worker)
        for how, error in (
            ("async", "KeyboardInterrupt"),
            ("thread", "KeyboardInterrupt"),
            ("exit", "SystemExit"),
            ("the workflow itself", "KeyboardInterrupt"),
        ):
            done = kagzi("start", "fails", how, "--wait", "--address", address)
            assert done.returncode == 1, (how, done.stderr)
            assert error in done.stderr, how
        assert worker.process.poll() is None
        assert kagzi("start", "ask", "--wait", "--address", address).stdout == "still here\n"
        assert worker.interrupt() == 0

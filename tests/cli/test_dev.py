"""`kagzi dev`: ready at once, reloads, ends cleanly, goes on where it was."""

import os
import re
import shlex
import shutil
import signal
import time
from pathlib import Path

import psutil
import pytest

from tests.support.kagzi_process import RunningCommand, kagzi, running

EXAMPLE = Path(__file__).parents[2] / "examples" / "e00_min.py"
NO_PORTS = ("--listen", "127.0.0.1:0", "--http", "127.0.0.1:0")

READY_CPU_S = 3.0  # of all its processes: how long that takes depends on who else uses the processors

COUNTER = """
from pathlib import Path
from kagzi import Context, workflow

def note(text: str) -> str:
    with Path("ledger").open("a") as ledger:
        ledger.write(text + "\\n")
    return text

@workflow
async def patient(ctx: Context, name: str) -> str:
    await ctx.step("before").run(note, f"before {name}")
    await ctx.sleep("a-while", "3s")
    await ctx.step("after").run(note, f"after {name}")
    return "done"
"""


def cpu_s(process: psutil.Process) -> float:
    """Processor time of a process and its children."""
    times = [each.cpu_times() for each in (process, *process.children(recursive=True))]
    return sum(each.user + each.system for each in times)


def ready(dev: RunningCommand) -> str:
    """Wait for the banner; answer the address."""
    dev.says(r"Kagzi \S+ is ready")
    return dev.says(r"^  server +(\S+)$")[1]


def test_the_smallest_example_runs_by_the_command_that_is_shown(tmp_path: Path) -> None:
    shutil.copy(EXAMPLE, tmp_path)
    with running("dev", "e00_min.py", *NO_PORTS, cwd=tmp_path) as dev:
        address = ready(dev)
        assert cpu_s(psutil.Process(dev.process.pid)) < READY_CPU_S
        command = dev.says(r"start hello world --wait.*")[0]
        assert address in command
        done = kagzi(*shlex.split(command))
        assert (done.returncode, done.stdout) == (0, "HELLO, WORLD!\n"), done.stderr
        assert dev.interrupt() == 0
        output = "\n".join(dev.out + dev.err)
        assert "Traceback" not in output
        assert "KeyboardInterrupt" not in output


def test_without_a_file_there_is_something_to_start(tmp_path: Path) -> None:
    with running("dev", *NO_PORTS, cwd=tmp_path) as dev:
        address = ready(dev)
        assert kagzi("start", "hello", "world", "--wait", "--address", address).stdout == "HELLO, WORLD!\n"


def test_a_second_start_goes_on_with_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "patient.py").write_text(COUNTER)
    with running("dev", "patient.py", *NO_PORTS, "--data", "state", cwd=tmp_path) as dev:
        address = ready(dev)
        run_id = kagzi("start", "patient", "ada", "--address", address).stdout.strip()
        wait_for_line(tmp_path / "ledger", "before ada")
        assert dev.interrupt() == 0
    with running("dev", "patient.py", *NO_PORTS, "--data", "state", cwd=tmp_path) as dev:
        address = ready(dev)
        wait_for_line(tmp_path / "ledger", "after ada")
        assert (tmp_path / "ledger").read_text() == "before ada\nafter ada\n"
        assert run_id in kagzi("list", "--address", address).stdout


def test_a_change_restarts_the_worker_and_a_broken_file_waits_for_the_fix(tmp_path: Path) -> None:
    flow = tmp_path / "flow.py"
    flow.write_text(simple_flow("one"))
    with running("dev", "flow.py", *NO_PORTS, cwd=tmp_path) as dev:
        address = ready(dev)

        def answer() -> str:
            return kagzi("start", "simple", "--wait", "--address", address).stdout.strip()

        assert answer() == "one"
        flow.write_text(simple_flow("two"))
        dev.says("reloaded: simple")
        assert answer() == "two"
        flow.write_text("def broken(:\n")
        dev.says("SyntaxError")
        dev.says("Fix it and save")
        flow.write_text(simple_flow("three"))
        dev.says("reloaded: simple")
        assert answer() == "three"
        assert dev.interrupt() == 0


def test_a_file_that_is_broken_from_the_start_is_served_once_it_is_mended(tmp_path: Path) -> None:
    flow = tmp_path / "flow.py"
    flow.write_text("import no_such_module\n")
    with running("dev", "flow.py", *NO_PORTS, cwd=tmp_path) as dev:
        dev.says("No module named 'no_such_module'")
        flow.write_text(simple_flow("mended"))
        ready(dev)


@pytest.mark.parametrize("target", ["nowhere", "nowhere.flows", "package.nowhere", "nowhere.py"])
def test_what_never_existed_is_refused_at_once(tmp_path: Path, target: str) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    done = kagzi("dev", target, *NO_PORTS, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert target in done.stderr
    assert "Give a Python file" in done.stderr
    assert "is ready" not in done.stdout


def test_a_module_whose_own_import_is_missing_is_waited_for(tmp_path: Path) -> None:
    (tmp_path / "flow.py").write_text("import flow_helpers\n")
    with running("dev", "flow", *NO_PORTS, cwd=tmp_path) as dev:
        dev.says("No module named 'flow_helpers'")
        dev.says("Fix it and save the file")


def test_a_file_that_was_deleted_is_waited_for(tmp_path: Path) -> None:
    flow = tmp_path / "flow.py"
    flow.write_text(simple_flow("one"))
    with running("dev", "flow.py", *NO_PORTS, cwd=tmp_path) as dev:
        ready(dev)
        flow.unlink()
        dev.says("flow.py does not exist any more: it is loaded as soon as it is there.")
        flow.write_text(simple_flow("two"))
        dev.says("reloaded: simple")


def test_a_file_that_does_not_return_when_it_is_imported_is_named(tmp_path: Path) -> None:
    (tmp_path / "flow.py").write_text("import threading\nthreading.Event().wait()\n")
    with running("dev", "flow.py", *NO_PORTS, cwd=tmp_path) as dev:
        dev.says(r"^flow.py is still being loaded\..* put that below: if __name__ == \"__main__\":")
        assert dev.interrupt() == 0


def test_a_worker_that_dies_comes_back(tmp_path: Path) -> None:
    (tmp_path / "flow.py").write_text(simple_flow("one"))
    with running("dev", "flow.py", *NO_PORTS, cwd=tmp_path) as dev:
        address = ready(dev)
        (child,) = worker_processes(dev)
        child.kill()
        dev.says("starting a new one")
        dev.says("reloaded: simple")
        assert kagzi("start", "simple", "--wait", "--address", address).stdout == "one\n"


def test_nobody_is_left_when_dev_is_killed(tmp_path: Path) -> None:
    (tmp_path / "flow.py").write_text(simple_flow("one"))
    with running("dev", "flow.py", *NO_PORTS, cwd=tmp_path) as dev:
        ready(dev)
        children = worker_processes(dev)
        os.kill(dev.process.pid, signal.SIGKILL)
        _, alive = psutil.wait_procs(children, timeout=60)
        assert alive == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_dev_alone_stops_both(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "flow.py").write_text(simple_flow("one"))
    with running("dev", "flow.py", *NO_PORTS, cwd=tmp_path) as dev:
        ready(dev)
        children = worker_processes(dev)
        dev.process.send_signal(number)
        assert dev.wait() == 0
        assert not any(child.is_running() for child in children)


def simple_flow(answer: str) -> str:
    return f"""
from kagzi import Context, workflow

@workflow
async def simple(ctx: Context) -> str:
    return {answer!r}
"""


def worker_processes(dev: RunningCommand) -> list[psutil.Process]:
    return [
        child
        for child in psutil.Process(dev.process.pid).children(recursive=True)
        if re.search(r"cli\.dev\.worker", " ".join(child.cmdline()))
    ]


def wait_for_line(path: Path, line: str, timeout_s: float = 60.0) -> None:
    """The ledger is a file that another process writes: looking is the only way to know."""
    end = time.monotonic() + timeout_s
    while time.monotonic() < end:
        if path.exists() and line in path.read_text().splitlines():
            return
        time.sleep(0.02)
    raise AssertionError(f"{line!r} never came into {path}")

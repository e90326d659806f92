"""The supervisor of `--processes`, with small programs in place of servers and workers."""

import re
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from tests.support.kagzi_process import RunningCommand
from tests.support.timeouts import LOADED_MACHINE_S

# Files in its directory say how a child behaves: `code-2` ends the second one with that exit code before it is ready.
CHILD = """
import asyncio, os, signal, sys, time
from pathlib import Path
from kagzi.cli.supervise.supervision import GONE, HURRY, Supervision

supervision = Supervision.from_environment()
supervision.watch()
number = supervision.number
code = Path(f"code-{number}")

def say(text):
    os.write(2, f"child {number} {text}\\n".encode())

async def main():
    stop = asyncio.Event()

    def on_line(line):
        say("is alone" if line == GONE else f"reads {line}")
        if line in (GONE, HURRY):
            stop.set()

    def on_signal():
        say("drains")
        if not Path("slow").exists():
            stop.set()

    supervision.attach(on_line, end_within_s=0.2)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, on_signal)
    supervision.report("ready", grace_s=600)
    if Path("blocked").exists():
        say("is blocked")
        time.sleep(600)
    await stop.wait()

if code.exists():
    sys.exit(int(code.read_text()))
asyncio.run(main())
"""

SUPERVISOR = """
import asyncio, logging, sys
from kagzi.cli.supervise.supervisor import Plan, Supervisor

child, options = sys.argv[1], sys.argv[2:]
plan = Plan(
    count=2, command=(sys.executable, "-c", child), grace_s=600, pause_s=0.01,
    restart_after_success="drain" not in options, kill_in_a_hurry="kill" in options,
)
logging.basicConfig(level="INFO", format="%(message)s")

async def main():
    return await Supervisor(plan, on_ready=lambda: logging.info("all are ready")).run()

sys.exit(asyncio.run(main()))
"""

Start = Callable[..., RunningCommand]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    with ExitStack() as stack:

        def started(*options: str) -> RunningCommand:
            program = (sys.executable, "-c", SUPERVISOR, CHILD)
            command = RunningCommand(*options, cwd=tmp_path, program=program)
            stack.callback(command.close)
            return command

        yield started


def pids(supervisor: RunningCommand, number: int) -> list[int]:
    """The processes of that number, one after another."""
    ready = re.compile(rf"process {number} \(pid (\d+)\) is ready")
    return [int(match[1]) for line in tuple(supervisor.err) if (match := ready.match(line))]


def child(supervisor: RunningCommand, number: int) -> psutil.Process:
    return psutil.Process(pids(supervisor, number)[-1])


def test_what_keeps_the_first_process_from_starting_is_said_once_and_ends_all(start: Start, tmp_path: Path) -> None:
    (tmp_path / "code-1").write_text("5")
    supervisor = start()
    assert supervisor.wait() == 5
    assert len(supervisor.err) == 1
    assert re.fullmatch(r"process 1 \(pid \d+\) ended with exit code 5 before it was ready", supervisor.err[0])


def test_a_process_that_is_killed_is_started_again_and_the_others_know(start: Start) -> None:
    supervisor = start()
    supervisor.says("all are ready")
    before = child(supervisor, 2)
    before.kill()
    supervisor.says(rf"process 2 \(pid {before.pid}\) was ended by SIGKILL; it is started again in 0.01 s")
    supervisor.says(r'child 1 reads .*"number":2,.*"state":"restarting"')
    supervisor.says(r'child 1 reads .*"number":2,.*"state":"ready"')
    supervisor.process.send_signal(signal.SIGTERM)
    assert supervisor.wait() == 0
    assert (len(pids(supervisor, 1)), len(set(pids(supervisor, 2)))) == (1, 2)


def test_a_process_that_cannot_be_started_again_ends_all_with_its_exit_code(start: Start, tmp_path: Path) -> None:
    supervisor = start()
    supervisor.says("all are ready")
    (tmp_path / "code-1").write_text("3")
    child(supervisor, 1).kill()
    supervisor.says(r"process 1 \(pid \d+\) ended with exit code 3 before it was ready, 5 times in a row")
    supervisor.says("child 2 drains")
    assert supervisor.wait() == 3
    assert sum("ended with exit code 3" in line for line in supervisor.err) == 5


def test_a_database_that_is_down_is_waited_for(start: Start, tmp_path: Path) -> None:
    supervisor = start()
    supervisor.says("all are ready")
    (tmp_path / "code-1").write_text("4")  # cannot connect
    child(supervisor, 1).kill()
    for _ in range(6):
        supervisor.says("ended with exit code 4; it is started again in ")
    (tmp_path / "code-1").unlink()
    supervisor.says(r"process 1 \(pid \d+\) is ready")


def test_a_worker_that_was_drained_is_not_started_again(start: Start) -> None:
    supervisor = start("drain")
    supervisor.says("all are ready")
    for number in (1, 2):
        child(supervisor, number).terminate()
        supervisor.says(rf"process {number} .* has ended as it was asked to")
    assert supervisor.wait() == 0


@pytest.mark.parametrize(("option", "code"), [("", 0), ("kill", 143)])
def test_a_signal_drains_all_and_a_second_one_ends_them_at_once(
    start: Start, tmp_path: Path, option: str, code: int
) -> None:
    (tmp_path / "slow").touch()
    supervisor = start(option)
    supervisor.says("all are ready")
    supervisor.process.send_signal(signal.SIGTERM)
    assert {supervisor.says("child (.) drains")[1] for _ in range(2)} == {"1", "2"}
    child(supervisor, 1).terminate()  # a service manager sends it to all processes, and the supervisor does
    supervisor.says("child 1 drains")
    assert supervisor.process.poll() is None
    supervisor.process.send_signal(signal.SIGTERM)
    assert supervisor.wait() == code


@pytest.mark.parametrize("state", ["idle", "blocked"])
def test_nobody_is_left_when_the_supervisor_is_killed(start: Start, tmp_path: Path, state: str) -> None:
    (tmp_path / state).touch()
    supervisor = start()
    supervisor.says("all are ready")
    children = [child(supervisor, 1), child(supervisor, 2)]
    supervisor.process.kill()
    _, alive = psutil.wait_procs(children, timeout=LOADED_MACHINE_S)
    assert alive == []
    supervisor.wait()
    assert ("child 1 is alone" in supervisor.err) == (state == "idle")


def test_sighup_replaces_the_processes_and_a_new_one_that_fails_leaves_the_old(start: Start, tmp_path: Path) -> None:
    supervisor = start()
    supervisor.says("all are ready")
    first = child(supervisor, 1), child(supervisor, 2)
    supervisor.process.send_signal(signal.SIGHUP)
    order = [supervisor.says("child . drains|is ready$")[0] for _ in range(4)]
    assert order == ["is ready", "child 1 drains", "is ready", "child 2 drains"]
    second = child(supervisor, 1), child(supervisor, 2)
    assert not {each.pid for each in first} & {each.pid for each in second}
    psutil.wait_procs(first, timeout=LOADED_MACHINE_S)
    (tmp_path / "code-1").write_text("1")
    supervisor.process.send_signal(signal.SIGHUP)
    supervisor.says(rf"ended with exit code 1 before it was ready; process 1 \(pid {second[0].pid}\) goes on")
    assert all(each.is_running() for each in second)

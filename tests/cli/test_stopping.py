"""SIGTERM, Ctrl-C and a closed terminal stop a worker alike, however it runs: it finishes what it has begun and exits
with 0."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from kagzi import Kagzi, RunStatus
from tests.support.kagzi_process import RunningCommand, running

pytestmark = pytest.mark.xdist_group("stopping")  # they share a server

MODES = ("serve", "run", "block", "bare", "worker", "dev")
SIGNALS = (signal.SIGTERM, signal.SIGINT)
NO_PORTS = ("--listen", "127.0.0.1:0", "--http", "off")
DEADLINE_S = 60.0

PROGRAM = """
import asyncio, logging, os, sys
from pathlib import Path
from kagzi import Context, Worker, workflow

CASE = os.environ["STOPPING_CASE"]

def note(text):
    with Path("ledger").open("a") as ledger:
        ledger.write(f"{CASE} {text}\\n")

async def body():
    note("begins")
    while not Path("go").exists():
        await asyncio.sleep(0.02)
    note("ends")

@workflow(CASE)
async def flow(ctx: Context) -> str:
    await ctx.step("one").run(body)
    return "done"

worker = Worker(os.environ.get("STOPPING_ADDRESS"), workflows=[flow], shutdown_grace="120s")

async def block():
    async with worker:
        await worker.run()
    note("left the block")

async def bare():
    async with worker:
        await asyncio.Event().wait()
    note("went on")

if __name__ == "__main__":
    logging.basicConfig(level="INFO")
    if sys.argv[1] == "serve":
        worker.serve()
    else:
        asyncio.run({"run": worker.run, "block": block, "bare": bare}[sys.argv[1]]())
"""


class Case(NamedTuple):
    mode: str
    number: signal.Signals

    @property
    def name(self) -> str:
        return f"{self.mode}-{self.number.name.lower()}"


class Ended(NamedTuple):
    code: int
    output: str
    ledger: list[str]
    status: RunStatus | None


CASES = [
    *(Case(mode, number) for mode in MODES for number in SIGNALS),
    Case("reload", signal.SIGINT),
    *(Case(mode, signal.SIGHUP) for mode in ("serve", "bare", "worker", "dev", "reload")),
]


def launch(stack: ExitStack, case: Case, folder: Path, address: str) -> RunningCommand:
    env = {"STOPPING_CASE": case.name}
    if case.mode == "dev":
        arguments = ("dev", "program.py", *NO_PORTS, "--data", f"data-{case.name}", "--no-reload")
        return stack.enter_context(running(*arguments, cwd=folder, env=env))
    if case.mode in ("worker", "reload"):
        arguments = ("worker", "program.py", "--address", address, *(["--reload"] if case.mode == "reload" else []))
        return stack.enter_context(running(*arguments, cwd=folder, env=env))
    program = RunningCommand(
        "program.py",
        case.mode,
        cwd=folder,
        env=env | {"STOPPING_ADDRESS": address},
        program=(sys.executable,),
    )
    stack.callback(program.close)
    return program


def lines(folder: Path, case: Case) -> list[str]:
    ledger = folder / "ledger"
    text = ledger.read_text() if ledger.exists() else ""
    return [line.removeprefix(f"{case.name} ") for line in text.splitlines() if line.startswith(f"{case.name} ")]


def signalled(folder: Path, case: Case, program: RunningCommand) -> bool:
    """In the middle of the step. False: it never came there."""
    end = time.monotonic() + DEADLINE_S
    while lines(folder, case) != ["begins"]:
        if time.monotonic() > end or program.process.poll() is not None:
            return False
        time.sleep(0.02)
    if case.number is signal.SIGINT:
        os.killpg(program.process.pid, signal.SIGINT)  # as a terminal does it
    elif case.number is signal.SIGHUP:  # as a terminal does it, and its shell again
        os.killpg(program.process.pid, signal.SIGHUP)
        os.killpg(program.process.pid, signal.SIGHUP)
    else:
        program.process.send_signal(case.number)
    return True


def stopping(program: RunningCommand) -> bool:
    with suppress(AssertionError):
        program.says(r"worker \S+ stops; runs to finish: 1", DEADLINE_S)
        return True
    return False


async def start(case: Case, address: str) -> str:
    async with Kagzi.connect(address) as client:
        return (await client.start(case.name)).id


async def status_of(run_id: str, address: str) -> RunStatus:
    async with Kagzi.connect(address) as client:
        return await client.get(run_id).status()


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Case, Ended]]:
    """All at once: each is within a step when its signal arrives, and continues after it has logged that it stops."""
    folder = tmp_path_factory.mktemp("stopping")
    (folder / "program.py").write_text(PROGRAM)
    with ExitStack() as stack:
        server = stack.enter_context(running("server", "--db", f"sqlite:///{folder}/kagzi.db", *NO_PORTS))
        shared = server.says(r"kagzi server ready .*?grpc=(\S+)", DEADLINE_S)[1]
        programs = {case: launch(stack, case, folder, shared) for case in CASES}
        runs: dict[Case, str] = {}
        for case, program in programs.items():
            address = program.says(r"worker \S+ serves \S+ at (\S+)", DEADLINE_S)[1]
            runs[case] = asyncio.run(start(case, address))
        begun = [case for case, program in programs.items() if signalled(folder, case, program)]
        drain = [case for case in begun if stopping(programs[case])]
        (folder / "go").touch()
        outcomes = {case: Ended(-1, "it did not begin its step, or did not drain", [], None) for case in CASES}
        for case in drain:
            program = programs[case]
            code = program.wait(DEADLINE_S)
            address = f"sqlite:///{folder}/data-{case.name}/kagzi.db" if case.mode == "dev" else shared
            status = asyncio.run(status_of(runs[case], address))
            outcomes[case] = Ended(code, "\n".join(program.out + program.err), lines(folder, case), status)
        yield outcomes


@pytest.mark.timeout(300)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_was_begun_is_finished_and_the_program_exits_with_0(ended: dict[Case, Ended], case: Case) -> None:
    code, output, ledger, status = ended[case]
    assert code == 0, output
    assert "Traceback" not in output
    assert "KeyboardInterrupt" not in output
    assert ledger[:2] == ["begins", "ends"]
    assert ledger[2:] == (["left the block"] if case.mode == "block" else [])
    assert status is RunStatus.COMPLETED

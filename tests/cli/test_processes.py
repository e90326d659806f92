"""`kagzi server --processes 2` and `kagzi worker --processes 2`: real processes on PostgreSQL."""

import asyncio
import itertools
import re
import signal
import socket
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.request import urlopen

import psutil
import pytest

from kagzi import Kagzi
from tests.support.kagzi_inline import kagzi_inline
from tests.support.kagzi_process import RunningCommand, kagzi, running
from tests.support.polling import until
from tests.support.postgres import Databases
from tests.support.timeouts import LOADED_MACHINE, LOADED_MACHINE_S

pytestmark = pytest.mark.xdist_group("processes")  # they share servers

NO_PORTS = ("--listen", "127.0.0.1:0", "--http", "127.0.0.1:0")
QUICK = ("--lease", "2s", "--heartbeat", "500ms", "--reconnect-grace", "500ms", "--poll-interval", "500ms")
CALLERS = 30
STEPS = 3

FLOWS = """
import asyncio, os
from pathlib import Path
from kagzi import Context, workflow

def note(text):
    with open("ledger", "a") as ledger:
        ledger.write(f"{text} {os.getpid()}\\n")

async def body(name):
    note(f"begin {name}")
    await asyncio.sleep(0.05)
    note(f"end {name}")

@workflow
async def load(ctx: Context, name: str) -> str:
    for number in range(3):
        await ctx.step(f"step-{number}").run(body, f"{name}/{number}")
    return name

async def patient_body():
    note("begin patient")
    while not Path("continue").exists():
        await asyncio.sleep(0.02)

@workflow
async def patient(ctx: Context) -> str:
    await ctx.step("wait").run(patient_body)
    return "done"
"""


class Served(NamedTuple):
    command: RunningCommand
    grpc: str
    http: str

    def processes(self) -> list[psutil.Process]:
        return psutil.Process(self.command.process.pid).children()


class Load:
    """Runs, one after another for each caller, until it is over."""

    def __init__(self, client: Kagzi) -> None:
        self._client = client
        self._numbers = itertools.count()
        self.done = 0
        self.is_over = False

    async def call(self) -> None:
        while not self.is_over:
            name = f"run-{next(self._numbers)}"
            assert await self._client.run("load", name, timeout=LOADED_MACHINE) == name
            self.done += 1


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("processes")
    (directory / "flows.py").write_text(FLOWS)
    return directory


@pytest.fixture(scope="module")
def server(directory: Path, postgres: Databases) -> Iterator[Served]:
    options = ("--processes", "2", *NO_PORTS, *QUICK, "--log-level", "info")
    with postgres.database() as url, running("server", "--db", url, *options, cwd=directory) as command:
        ready = command.says(r"kagzi server ready grpc=(\S+) http=(\S+) store=\S+ websocket=(\S+) processes=2")
        assert ready[3] == f"{ready[2].replace('http', 'ws', 1)}/v1/calls"
        yield Served(command, ready[1], ready[2])


def worker_at(server: Served, directory: Path, *options: str) -> "RunningCommand":
    return RunningCommand("worker", "flows.py", "--processes", "2", "--address", server.grpc, *options, cwd=directory)


async def test_processes_are_killed_under_load_and_nothing_is_lost(server: Served, directory: Path) -> None:
    """One of the worker, and both of the server, one after the other: every session is hit."""
    worker = worker_at(server, directory)
    try:
        worker.says("2 worker processes are ready")
        pids = {each.pid for each in psutil.Process(worker.process.pid).children()}
        async with Kagzi.connect(server.grpc) as client:
            assert {each.pid async for each in client.workers.list()} == pids
            load = Load(client)
            callers = [asyncio.create_task(load.call()) for _ in range(CALLERS)]
            await until(lambda: _entries(directory))
            victim = psutil.Process(_entries(directory)[0][2])
            victim.kill()
            for process in server.processes():
                process.kill()
                await _printed(server.command, rf"\(pid {process.pid}\) was ended by SIGKILL; it is started again")
                await _printed(server.command, r"process \d \(pid \d+\) is ready")
            load.is_over = True
            await asyncio.gather(*callers)
        await _printed(worker, rf"\(pid {victim.pid}\) was ended by SIGKILL; it is started again")
        await until(lambda: any("the session was interrupted" in line for line in worker.err))
        _check_ledger(directory, victim.pid, load.done)
        assert len(server.processes()) == 2
    finally:
        worker.close()


def test_every_process_says_how_all_are(server: Served) -> None:
    """Whichever is asked."""
    bodies = {urlopen(f"{server.http}/readyz").read() for _ in range(8)}
    assert bodies == {b"ready: 2 of 2 processes\n"}
    about = urlopen(f"{server.http}/plain").read().decode()
    assert re.search(r"2 of 2 processes; this page is by process [12]", about)


def test_a_scrape_of_any_process_shows_all(server: Served) -> None:
    for _ in range(4):
        page = urlopen(f"{server.http}/metrics").read().decode()
        for process in (1, 2):
            assert f'kagzi_ready{{process="{process}"}} 1\n' in page
            assert re.search(rf'kagzi_commit_operations_count{{process="{process}"}} \d', page)
        assert page.count("\nkagzi_build_info{") == 1


async def test_a_worker_drains_all_its_processes(server: Served, directory: Path) -> None:
    worker = worker_at(server, directory)
    try:
        worker.says("2 worker processes are ready")
        async with Kagzi.connect(server.grpc) as client:
            runs = [await client.start("patient") for _ in range(2)]
            await until(lambda: _begun(directory, "patient") == 2)
            worker.process.send_signal(signal.SIGTERM)
            worker.says(r"kagzi.worker\[[12]\]: worker \S+ stops; runs to finish: [12]")
            (directory / "continue").touch()
            assert [await run.result() for run in runs] == ["done", "done"]
        assert worker.wait() == 0
    finally:
        worker.close()


def test_the_port_is_nobody_elses(server: Served, directory: Path, postgres: Databases) -> None:
    """Not even that of another server with several processes, which would get half of the calls."""
    options = ("--listen", server.grpc, "--http", "off", "--processes", "2")
    done = kagzi("server", "--db", postgres.url, *options, cwd=directory)
    assert done.returncode == 5
    assert f"port {server.grpc} is in use" in done.stderr


def test_nobody_is_left_when_the_supervisor_is_killed(server: Served) -> None:
    """The last test: the server is gone."""
    processes = server.processes()
    server.command.process.kill()
    _, alive = psutil.wait_procs(processes, timeout=LOADED_MACHINE_S)
    assert alive == []
    host, _, port = server.grpc.rpartition(":")
    with socket.socket() as free:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        free.bind((host, int(port)))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("server", "--processes", "2", "--db", "sqlite:///kagzi.db"), ("sqlite:///kagzi.db", "owns it", "PostgreSQL")),
        (("server", "--processes", "0"), ("processes='0' is not in 1..256",)),
        (
            ("server", "--processes", "2", "--db", "postgresql:///x", "--listen", "unix:/tmp/x"),
            ("--listen unix:/tmp/x", "Use HOST:PORT"),
        ),
        (("worker", "flows.py", "--processes", "2", "--address", "sqlite:///kagzi.db"), ("embedded", "kagzi server")),
        (("worker", "flows.py", "--processes", "2", "--reload"), ("--reload runs one process",)),
    ],
)
def test_what_several_processes_cannot_do_is_refused_before_anything_starts(
    arguments: tuple[str, ...], words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = kagzi_inline(*arguments)
    assert done.returncode == 2
    assert "--processes" in done.stderr
    assert all(word in done.stderr for word in words), done.stderr
    assert list(tmp_path.iterdir()) == []


def test_settings_of_server_and_worker_have_names_of_their_own(tmp_path: Path) -> None:
    """In one file; and each has a variable."""
    (tmp_path / "kagzi.toml").write_text('processes = 3\nworker_processes = 2\naddress = ":memory:"\n')
    server = kagzi("server", cwd=tmp_path)
    assert (server.returncode, "3 processes cannot serve" in server.stderr) == (2, True)
    server = kagzi("server", cwd=tmp_path, env={"KAGZI_PROCESSES": "4"})
    assert (server.returncode, "4 processes cannot serve" in server.stderr) == (2, True)
    worker = kagzi("worker", "flows.py", cwd=tmp_path)
    assert (worker.returncode, "'--processes'" in worker.stderr) == (2, True)
    alone = kagzi("worker", "flows.py", cwd=tmp_path, env={"KAGZI_WORKER_PROCESSES": "1"})
    assert "'--processes'" not in alone.stderr


async def _printed(command: RunningCommand, pattern: str) -> None:
    await asyncio.to_thread(command.says, pattern)


def _entries(directory: Path) -> list[tuple[str, str, int]]:
    ledger = directory / "ledger"
    lines = ledger.read_text().splitlines() if ledger.exists() else []
    return [(what, name, int(pid)) for what, name, pid in (line.split() for line in lines)]


def _begun(directory: Path, name: str) -> int:
    return sum(entry[:2] == ("begin", name) for entry in _entries(directory))


def _check_ledger(directory: Path, victim: int, runs: int) -> None:
    """The victim was in the middle of steps, all of which were done by somebody, and no step that ended began again."""
    entries = [(what, name, pid) for what, name, pid in _entries(directory) if name != "patient"]
    begun = {name for what, name, pid in entries if what == "begin" and pid == victim}
    assert begun - {name for what, name, pid in entries if what == "end" and pid == victim}, "the kill hit no step"
    assert len({name for what, name, _ in entries if what == "end"}) == runs * STEPS
    again = [name for name, times in Counter(name for what, name, _ in entries if what == "begin").items() if times > 1]
    assert set(again) <= begun  # what others had begun went on, whichever server process they were connected to

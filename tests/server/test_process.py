"""`run_server` as a process: one line when it is ready, clear words and an exit code when it cannot be."""

import asyncio
import os
import re
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest

from kagzi.server.file_lock import FileLock
from tests.server.stubs import Stubs
from tests.support.timeouts import LOADED_MACHINE_S

TIMEOUT_S = LOADED_MACHINE_S
MAIN = """
import asyncio, sys
from pathlib import Path
from kagzi.server.config import load_config
from kagzi.server.process import run_server

flags = dict(pair.split("=", 1) for pair in sys.argv[1:])
sys.exit(asyncio.run(run_server(load_config(flags, environment={}, directory=Path("/nonexistent")))))
"""
READY = re.compile(r"kagzi server ready grpc=(\S+)(?: http=(\S+))? store=(\S+)(?: websocket=\S+)?\n")


class Process:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def line(self) -> str:
        assert self.process.stderr is not None
        async with asyncio.timeout(TIMEOUT_S):
            return (await self.process.stderr.readline()).decode()

    async def exit_status(self) -> int:
        async with asyncio.timeout(TIMEOUT_S):
            return await self.process.wait()


@asynccontextmanager
async def process(**flags: str) -> AsyncIterator[Process]:
    options = {"listen": "127.0.0.1:0", "http": "127.0.0.1:0", **flags}
    running = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        MAIN,
        *(f"{key}={value}" for key, value in options.items()),
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield Process(running)
    finally:
        if running.returncode is None:
            running.kill()
            await running.wait()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_it_says_when_it_is_ready_and_stops_cleanly(empty_database_url: str, number: signal.Signals) -> None:
    async with process(db=empty_database_url) as server:
        ready = READY.fullmatch(await server.line())
        assert ready is not None
        async with grpc.aio.insecure_channel(ready[1]) as channel:
            started = await Stubs(channel).start()
            assert started.url.startswith(f"{ready[2]}/runs/")
        server.process.send_signal(number)
        assert await server.exit_status() == 0


async def test_a_second_signal_does_not_wait_for_anybody(tmp_path: Path) -> None:
    async with process(db=f"sqlite:///{tmp_path}/k.db", grace="60s") as server:
        ready = READY.fullmatch(await server.line())
        assert ready is not None
        server.process.send_signal(signal.SIGTERM)
        server.process.send_signal(signal.SIGTERM)
        assert await server.exit_status() == 0


async def test_a_taken_port_is_an_error_not_a_share(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        for flag in ("listen", "http"):
            async with process(db=f"sqlite:///{tmp_path}/{flag}.db", **{flag: address}) as server:
                line = await server.line()
                assert f"port {address} is in use" in line
                assert f"--{flag}" in line
                assert await server.exit_status() == 5


async def test_two_servers_do_not_share_a_port(tmp_path: Path) -> None:
    async with process(db=f"sqlite:///{tmp_path}/a.db") as first:
        ready = READY.fullmatch(await first.line())
        assert ready is not None
        async with process(db=f"sqlite:///{tmp_path}/b.db", listen=ready[1]) as second:
            assert "is in use" in await second.line()
            assert await second.exit_status() == 5


async def test_a_public_address_is_refused(tmp_path: Path) -> None:
    async with process(db=f"sqlite:///{tmp_path}/k.db", listen="0.0.0.0:0") as server:
        assert "--insecure" in await server.line()
        assert await server.exit_status() == 5
    assert not (tmp_path / "k.db").exists()


async def test_an_unreachable_database_is_named_without_its_password() -> None:
    async with process(db="postgresql://u:hunter2@127.0.0.1:1/d") as server:
        line = await server.line()
        assert "cannot reach the database postgresql://u:***@127.0.0.1:1/d" in line
        assert "hunter2" not in line
        assert await server.exit_status() == 4


async def test_a_file_in_use_names_who_uses_it(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "k.db")
    assert lock.acquire()
    async with process(db=f"sqlite:///{tmp_path}/k.db") as server:
        assert f"is in use by process {os.getpid()}" in await server.line()
        assert await server.exit_status() == 5
    lock.release()


async def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    async with process(db=f"sqlite:///{tmp_path}/no/k.db") as server:
        assert "mkdir -p" in await server.line()
        assert await server.exit_status() == 5


async def test_an_older_schema_is_refused_if_migrating_is_forbidden(empty_database_url: str) -> None:
    async with process(db=empty_database_url, no_migrate="true") as server:
        line = await server.line()
        assert "schema version 0" in line
        assert "kagzi db migrate" in line
        assert await server.exit_status() == 5


async def test_the_file_is_its_owners_only(tmp_path: Path) -> None:
    async with process(db=f"sqlite:///{tmp_path}/k.db") as server:
        await server.line()
        modes = modes_in(tmp_path)
    assert {"k.db", "k.db.lock", "k.db.server"} <= set(modes)
    assert not [name for name, mode in modes.items() if mode & 0o077]


async def test_nothing_of_an_older_servers_database_stays_open_to_other_users(tmp_path: Path) -> None:
    async with process(db=f"sqlite:///{tmp_path}/k.db") as server:
        await server.line()
        open_to_all(tmp_path)
        server.process.kill()
        await server.exit_status()
    async with process(db=f"sqlite:///{tmp_path}/k.db") as server:
        lines = [line := await server.line()]
        while READY.fullmatch(line) is None:
            assert line
            lines.append(line := await server.line())
        modes = modes_in(tmp_path)
    assert "k.db was readable by other users (mode 0644)" in lines[0]
    assert {"k.db", "k.db-wal", "k.db-shm", "k.db.lock", "k.db.server"} <= set(modes)
    assert not [name for name, mode in modes.items() if mode & 0o077]


def open_to_all(directory: Path) -> None:
    """With the write-ahead log, the lock and the note of where it is served."""
    files = list(directory.iterdir())
    assert len(files) >= 4
    for path in files:
        path.chmod(0o644)


def modes_in(directory: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mode for path in directory.iterdir()}

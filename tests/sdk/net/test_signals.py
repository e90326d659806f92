"""A worker as a program: SIGTERM and SIGINT drain it, a second one kills it."""

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kagzi import Kagzi
from tests.sdk.net.test_real_server import WAIT_S, serving

PROGRAM = """
import asyncio, logging, sys
from kagzi import Context, Worker, workflow

logging.basicConfig(level=logging.INFO, stream=sys.stderr)

@workflow
async def slow(ctx: Context, seconds: float) -> str:
    async def body() -> str:
        print("begun", flush=True)
        await asyncio.sleep(seconds)
        return "done"

    return await ctx.step("slow").run(body)

worker = Worker(sys.argv[1], workflows=[slow], shutdown_grace=sys.argv[2])
if __name__ == "__main__":
    worker.serve()
    print("left", flush=True)
"""


@pytest.fixture
async def address() -> AsyncIterator[str]:
    async with serving(":memory:") as where:
        yield where


async def start(tmp_path: Path, address: str, grace: str) -> Process:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    return await asyncio.create_subprocess_exec(sys.executable, str(program), address, grace, stdout=PIPE, stderr=PIPE)


async def says(process: Process, line: bytes) -> None:
    assert process.stdout is not None
    assert await process.stdout.readline() == line


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_lets_the_run_finish(tmp_path: Path, address: str, number: signal.Signals) -> None:
    async with asyncio.timeout(WAIT_S), Kagzi.connect(address) as client:
        process = await start(tmp_path, address, "10s")
        run = await client.start("slow", 0.3)
        await says(process, b"begun\n")
        process.send_signal(number)
        assert await run.result() == "done"
        await says(process, b"left\n")
        assert await process.wait() == 0


async def test_what_is_not_finished_in_time_is_handed_to_the_next_worker(tmp_path: Path, address: str) -> None:
    async with asyncio.timeout(WAIT_S), Kagzi.connect(address) as client:
        first = await start(tmp_path, address, "100ms")
        run = await client.start("slow", 0.5)
        await says(first, b"begun\n")
        second = await start(tmp_path, address, "10s")
        first.send_signal(signal.SIGTERM)
        await says(first, b"left\n")
        assert await first.wait() == 0
        assert await run.result() == "done"
        second.send_signal(signal.SIGTERM)
        assert await second.wait() == 0


async def test_a_second_signal_kills(tmp_path: Path, address: str) -> None:
    async with asyncio.timeout(WAIT_S), Kagzi.connect(address) as client:
        process = await start(tmp_path, address, "1h")
        await client.start("slow", 3600.0)
        await says(process, b"begun\n")
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        while b"stops" not in await process.stderr.readline():
            pass
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == -signal.SIGTERM

"""A run parks if, and only if, nothing but Kagzi will wake it: behind generators, queues and frameworks, on both event
loops."""

import asyncio
import logging
from collections.abc import Callable

import pytest
import uvloop

from kagzi.core.states import RunStatus
from kagzi.sdk.workflow.decorator import workflow

from .fake import TIMEOUT_S, FakeServer, fake_server
from .waiting_programs import PARKS, PROCEED, STAYS, Program

LOOPS = pytest.mark.parametrize(
    "loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"]
)
Loops = Callable[[], asyncio.AbstractEventLoop]


async def plays_to_its_end(program: Program, *, kept: int) -> None:
    waits = workflow(program)
    async with fake_server(waits, kept_runs_max=kept, kept_s=100_000) as server:
        run = server.start(waits)
        server.claim(run)
        await server.until_left(run)
        assert run.status is RunStatus.SLEEPING
        assert (server.executor.active, server.executor.kept) == (0, kept)
        server.signal(run, PROCEED.name, "went")
        server.claim(run)
        await server.until_left(run)
        assert (run.status, run.result) == (RunStatus.COMPLETED, "went")
        assert run.log.count("Park") == 1


@LOOPS
@pytest.mark.parametrize("kept", [0, 1], ids=["unwound", "kept"])
@pytest.mark.parametrize("name", PARKS)
def test_it_parks_and_goes_on(name: str, kept: int, loop_factory: Loops) -> None:
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(plays_to_its_end(PARKS[name], kept=kept))


async def stays_to_its_end(program: Program, log: pytest.LogCaptureFixture) -> None:
    waits = workflow(program)
    async with fake_server(waits) as server:
        run = server.start(waits)
        server.claim(run)
        await until_notified(server, log)
        assert run.status is RunStatus.RUNNING
        server.signal(run, PROCEED.name, "went")
        await server.until_left(run)
        assert (run.status, run.result, run.lease) == (RunStatus.COMPLETED, "went", 1)


async def until_notified(server: FakeServer, log: pytest.LogCaptureFixture) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while "keeps its slot on this worker" not in log.text:
            assert not server.broken, server.broken
            await asyncio.sleep(0.005)


@LOOPS
@pytest.mark.parametrize("name", STAYS)
def test_it_stays_and_says_so(name: str, loop_factory: Loops, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(stays_to_its_end(STAYS[name], caplog))

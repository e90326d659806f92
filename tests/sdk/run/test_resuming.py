"""A run whose coroutine is kept here comes back with a history of several pages: it goes on where it was, with what is
new."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from kagzi.core.errors import LeaseLost, Unavailable
from kagzi.core.states import RunStatus
from kagzi.sdk.workflow.context import Context
from kagzi.sdk.workflow.decorator import workflow
from kagzi.sdk.workflow.signals import Signal

from .fake import TIMEOUT_S, FakePort, FakeRun, FakeServer, fake_server

ONE, TWO, THREE = (Signal(name, str) for name in ("one", "two", "three"))
begun: list[str] = []
order: list[str] = []


async def body(n: int) -> int:
    return n


async def of(ctx: Context, signal: Signal[str]) -> str:
    value = await ctx.wait_for(signal)
    order.append(value)
    return value


@workflow
async def waits(ctx: Context) -> list[Any]:
    begun.append("waits")
    order.clear()
    first = await ctx.step("first").run(body, 1)
    return [first, *await asyncio.gather(*(of(ctx, signal) for signal in (ONE, TWO, THREE)))]


@asynccontextmanager
async def parked(**options: Any) -> AsyncIterator[tuple[FakeServer, FakeRun]]:
    begun.clear()
    async with fake_server(waits, **options) as server:
        run = server.start(waits)
        server.claim(run)
        await server.until_left(run)
        assert (run.status, server.executor.kept) == (RunStatus.SLEEPING, 1)
        yield server, run


async def at_once(_: FakePort) -> None: ...


class Fetching:
    """Holds a history back until `go_on`."""

    def __init__(self, server: FakeServer) -> None:
        server.fetching = self
        self._requested = asyncio.Event()
        self.proceed = asyncio.Event()

    async def __call__(self, port: FakePort) -> None:
        self._requested.set()
        await self.proceed.wait()

    async def requested(self) -> None:
        await asyncio.wait_for(self._requested.wait(), TIMEOUT_S)


async def come(server: FakeServer, run: FakeRun, *signals: Signal[str]) -> None:
    """One after the other, each while the run sleeps."""
    for signal in signals:
        server.signal(run, signal.name, signal.name.upper())
        server.claim(run, page=1)
        await server.until_left(run)


async def test_it_goes_on_where_it_was_and_gets_nothing_twice() -> None:
    async with parked() as (server, run):
        await come(server, run, TWO, ONE, THREE)
        assert (run.status, run.result, begun) == (RunStatus.COMPLETED, [1, "ONE", "TWO", "THREE"], ["waits"])
        assert order == ["TWO", "ONE", "THREE"]
        known = [known_seq for _, known_seq in server.fetches]
        assert len(known) == 3
        assert known == sorted(set(known)), "what came by one claim is known by the next"


async def test_a_history_that_is_not_its_own_begins_again() -> None:
    async with parked() as (server, run):
        await come(server, run, ONE)
        [one] = [step_id for step_id, name in run.signal_names.items() if name == ONE.name]
        [two] = [step_id for step_id, name in run.signal_names.items() if name == TWO.name]
        steps = run.state.steps
        lost, still_open = steps[one], steps[two]
        steps[one] = msgspec.structs.replace(still_open, step_id=one, begun_seq=lost.begun_seq, name=lost.name)
        steps[two] = msgspec.structs.replace(  # after a failover
            lost, step_id=two, begun_seq=still_open.begun_seq, name=still_open.name
        )
        await come(server, run, THREE)
        assert begun == ["waits", "waits"]
        assert server.fetches[-1][1] == 0, "whoever begins again knows nothing"
        await come(server, run, ONE)
        assert (run.status, run.result) == (RunStatus.COMPLETED, [1, "ONE", "ONE", "THREE"])


async def test_a_coroutine_that_moved_meanwhile_begins_again() -> None:
    async with parked() as (server, run):
        fetching = Fetching(server)
        server.signal(run, ONE.name, "ONE")
        server.claim(run, page=1)
        await fetching.requested()
        for task in asyncio.all_tasks():
            if task.get_name().startswith("kagzi-run-"):
                task.cancel()
        await asyncio.sleep(0.01)
        fetching.proceed.set()
        await server.until_left(run)
        assert begun == ["waits", "waits"]
        await come(server, run, TWO, THREE)
        assert run.result == [1, "ONE", "TWO", "THREE"]


@pytest.mark.parametrize("kept", [0, 1], ids=["unwound", "kept"])
async def test_what_comes_while_the_history_is_read_comes_in_order(kept: int) -> None:
    """TWO is on the page of the claim, still open, when it comes; THREE, which comes after it, is on a page read
    later."""
    begun.clear()
    async with fake_server(waits, kept_runs_max=kept, latency=lambda: 20) as server:
        run = server.start(waits)
        server.claim(run)
        await server.until_left(run)
        fetching = Fetching(server)
        server.signal(run, ONE.name, "ONE")
        server.claim(run, page=3)
        await fetching.requested()
        server.signal(run, TWO.name, "TWO")
        server.signal(run, THREE.name, "THREE")
        fetching.proceed.set()
        await server.until_left(run)
        assert (run.status, order) == (RunStatus.COMPLETED, ["ONE", "TWO", "THREE"])
        assert len(begun) == 2 - kept


async def test_tasks_that_are_made_while_a_history_is_read_are_none_of_the_run_s() -> None:
    """gRPC makes some for every page."""

    async def with_tasks(_: FakePort) -> None:
        await asyncio.gather(*(asyncio.create_task(asyncio.sleep(0)) for _ in range(5)))

    begun.clear()
    async with fake_server(waits, kept_runs_max=0) as server:
        server.fetching = with_tasks
        run = server.start(waits)
        server.claim(run)
        await server.until_left(run)
        await come(server, run, ONE, TWO, THREE)
        assert run.problem is None
        assert (run.status, run.result) == (RunStatus.COMPLETED, [1, "ONE", "TWO", "THREE"])
        assert len(begun) == 4


async def test_a_cancellation_that_comes_while_the_history_is_read() -> None:
    async with parked() as (server, run):
        fetching = Fetching(server)
        server.signal(run, ONE.name, "ONE")
        server.claim(run, page=1)
        await fetching.requested()
        server.cancel(run)
        fetching.proceed.set()
        await server.until_left(run)
        assert (run.status, begun) == (RunStatus.CANCELLED, ["waits"])


async def test_a_pause_that_comes_while_the_history_is_read() -> None:
    async with parked() as (server, run):
        fetching = Fetching(server)
        server.signal(run, ONE.name, "ONE")
        server.claim(run, page=1)
        await fetching.requested()
        server.pause(run)
        fetching.proceed.set()
        await server.until_left(run)
        assert (run.status, server.executor.active) == (RunStatus.PAUSED, 0)
        server.resume(run)
        await come(server, run, TWO, THREE)
        assert run.result == [1, "ONE", "TWO", "THREE"]


async def test_a_lease_that_is_lost_while_the_history_is_read() -> None:
    async with parked() as (server, run):
        fetching = Fetching(server)
        server.signal(run, ONE.name, "ONE")
        port = server.claim(run, page=1)
        await fetching.requested()
        assert port.execution is not None
        port.execution.abandon("taken over")
        assert port.closed.is_set()
        assert (server.executor.active, server.executor.kept, port.sends) == (0, 0, 0)
        fetching.proceed.set()
        run.become(RunStatus.PENDING)
        server.fetching = at_once
        await come(server, run, TWO, THREE)
        assert run.result == [1, "ONE", "TWO", "THREE"]


async def test_a_worker_that_stops_while_the_history_is_read_hands_the_run_back() -> None:
    async with parked() as (server, run):
        fetching = Fetching(server)
        server.signal(run, ONE.name, "ONE")
        port = server.claim(run, page=1)
        await fetching.requested()
        server.executor.release_all("the worker stops")
        server.executor.release_all("the worker stops, again")
        await asyncio.wait_for(server.executor.drained(), TIMEOUT_S)
        assert (run.status, port.sends) == (RunStatus.PENDING, 1)


@pytest.mark.parametrize(
    "error", [LeaseLost("taken over"), Unavailable("no server"), RuntimeError("a mistake")], ids=str
)
async def test_a_history_that_cannot_be_read(error: Exception) -> None:
    async with parked() as (server, run):

        async def fail(_: FakePort) -> None:
            raise error

        server.fetching = fail
        server.signal(run, ONE.name, "ONE")
        port = server.claim(run, page=1)
        await asyncio.wait_for(port.closed.wait(), TIMEOUT_S)
        assert (server.executor.active, server.executor.kept) == (0, 0)
        assert run.status is (RunStatus.RUNNING if isinstance(error, LeaseLost) else RunStatus.PENDING)

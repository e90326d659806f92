"""A worker that was stopped for longer than its lease begins nothing before the server has said that the run is still
its own."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kagzi.core.states import RunStatus
from kagzi.sdk.worker.lease_clock import LeaseClock
from kagzi.sdk.workflow.context import Context
from kagzi.sdk.workflow.decorator import workflow
from kagzi.sdk.workflow.retry import Retry
from tests.support.timeouts import LOADED_MACHINE_S

from .fake import FakeServer, fake_server

LEASE_S = 2.0


class Body:
    """Counts how often it began, and fails as often as it is told."""

    def __init__(self, failures: int = 0) -> None:
        self.begun = 0
        self._failures = failures

    async def on_loop(self) -> int:
        return self.in_thread()

    def in_thread(self) -> int:
        self.begun += 1
        if self.begun <= self._failures:
            raise ConnectionError
        return self.begun


Calls = Callable[[Context, Body], Awaitable[int]]
KINDS: dict[str, Calls] = {
    "async": lambda ctx, body: ctx.step("last").run(body.on_loop),
    "sync": lambda ctx, body: ctx.step("last").run(body.in_thread),
    "once": lambda ctx, body: ctx.step("last", once=True).run(body.on_loop),
}
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)


class Stopped:
    """A worker whose clock jumps in the body of its first step, as if it had been stopped there."""

    def __init__(self, server: FakeServer, *, for_s: float) -> None:
        self._jumped_s = 0.0
        self._for_s = for_s
        self.clock = server.clock = LeaseClock(lambda: server.loop.time() + self._jumped_s)
        self.clock.lease_s = LEASE_S

    def jump(self) -> None:
        self._jumped_s += self._for_s


def two_steps(kind: str, body: Body, jump: list[Callable[[], None]]) -> Any:
    async def first() -> None:
        jump[0]()

    @workflow
    async def stopped(ctx: Context) -> int:
        await ctx.step("first").run(first)
        return await KINDS[kind](ctx, body)

    return stopped


@EVERY_KIND
@pytest.mark.parametrize("heartbeats", [False, True], ids=["before its next heartbeat", "after it"])
async def test_nothing_begins_in_a_run_that_others_have(kind: str, heartbeats: bool) -> None:
    body, jump = Body(), list[Callable[[], None]]()
    flow = two_steps(kind, body, jump)
    async with fake_server(flow) as server:
        worker = Stopped(server, for_s=3 * LEASE_S)
        run = server.start(flow)

        def taken() -> None:
            worker.jump()
            if heartbeats:
                worker.clock.renewed(worker.clock.now())

        def take_away(port: Any, what: str) -> None:
            if what in ("after record_step", "after complete_step"):
                run.lease += 1  # the answer is on its way, and another worker has the run

        server.moment = take_away
        jump.append(taken)
        port = server.claim(run)
        await asyncio.wait_for(port.closed.wait(), LOADED_MACHINE_S)
        assert body.begun == 0
        server.moment = lambda port, what: None
        await server.finish(run)
        assert (run.result, body.begun) == (1, 1)


@EVERY_KIND
async def test_the_run_goes_on_if_it_is_still_ones_own(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    body, jump = Body(), list[Callable[[], None]]()
    flow = two_steps(kind, body, jump)
    async with fake_server(flow) as server:
        worker = Stopped(server, for_s=3 * LEASE_S)
        jump.append(worker.jump)
        run = server.start(flow)
        server.claim(run)
        await server.until_left(run)
        assert (run.status, run.result, run.lease, body.begun) == (RunStatus.COMPLETED, 1, 1, 1)
        assert caplog.text.count("its lease may have expired") == 1


async def test_a_worker_that_was_not_stopped_asks_nobody() -> None:
    body, jump = Body(), list[Callable[[], None]]()
    flow = two_steps("async", body, jump)
    async with fake_server(flow) as server:
        worker = Stopped(server, for_s=LEASE_S / 2)
        jump.append(worker.jump)
        run = await server.run(flow)
        assert run.log == [
            "BeginStep first",
            "CompleteStep first",
            "BeginStep last",
            "CompleteStep last",
            "CompleteRun",
        ]


async def test_a_try_that_was_waited_for_does_not_begin() -> None:
    body = Body(failures=1)
    server: FakeServer

    async def fails() -> int:
        if not body.begun:
            server.loop.call_soon(worker.jump)
        return await body.on_loop()

    @workflow
    async def tries(ctx: Context) -> int:
        return await ctx.step("tries").retry(Retry.linear(3, "50ms")).run(fails)

    async with fake_server(tries) as server:
        worker = Stopped(server, for_s=3 * LEASE_S)
        run = server.start(tries)

        def take_away(port: Any, what: str) -> None:
            if what == "after fail_step":
                run.lease += 1

        server.moment = take_away
        port = server.claim(run)
        await asyncio.wait_for(port.closed.wait(), LOADED_MACHINE_S)
        assert body.begun == 1


def test_what_is_accepted_soon_after_a_gap_is_asked_about() -> None:
    now = [100.0]
    clock = LeaseClock(lambda: now[0])
    never = float("-inf")
    assert not clock.is_over(accepted_at=100.0, requested_at=never)  # no server has said yet how long leases are
    clock.lease_s = LEASE_S
    now[0] = 101.9
    assert not clock.is_over(accepted_at=100.0, requested_at=never)
    now[0] = 102.1
    assert clock.is_over(accepted_at=100.0, requested_at=never)
    clock.renewed(102.1)
    assert clock.is_over(accepted_at=100.0, requested_at=never)  # whether that heartbeat came in time is not known
    assert clock.is_over(accepted_at=102.2, requested_at=never)  # may have been sent before
    assert not clock.is_over(accepted_at=103.2, requested_at=never)
    assert not clock.is_over(accepted_at=100.0, requested_at=102.2)
    clock.renewed(103.9)
    now[0] = 105.0
    assert not clock.is_over(accepted_at=100.0, requested_at=102.2)
    assert clock.is_over(accepted_at=100.0, requested_at=never)

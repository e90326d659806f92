"""A run whose wait is made due by somebody: in the worker's memory, kept after it parked, and replayed."""

import asyncio
from typing import Any

import pytest

from kagzi.core.states import RunStatus
from kagzi.sdk.workflow.context import Context
from kagzi.sdk.workflow.current import current_step
from kagzi.sdk.workflow.decorator import workflow
from kagzi.sdk.workflow.retry import Retry
from kagzi.sdk.workflow.signals import Signal
from kagzi.sdk.workflow.workflow import Workflow
from tests.support.timeouts import LOADED_MACHINE_S

from .fake import fake_server
from .fake_run import FakeRun

proceeds = Signal("proceeds", bool)
HOURLY = Retry.fixed(5, "1h")


def works_the_third_time() -> int:
    attempt = current_step().attempt
    if attempt < 3:
        raise ConnectionError("not yet")
    return attempt


def beside_a_long_step(proceed: asyncio.Event) -> Workflow[None, list[Any]]:
    @workflow
    async def busy(ctx: Context) -> list[Any]:
        return list(
            await ctx.parallel(
                ctx.step("long").run(proceed.wait),
                ctx.step("charge", retry=HOURLY).run(works_the_third_time),
                ctx.sleep("night", "8h"),
                ctx.wait_for(proceeds),
            )
        )

    return busy


async def until_logged(run: FakeRun, entry: str, times: int = 1) -> None:
    async with asyncio.timeout(LOADED_MACHINE_S):
        while run.log.count(entry) < times:  # noqa: ASYNC110  a log has no event
            await asyncio.sleep(0)


async def test_waits_of_a_run_that_cannot_park_are_woken_in_memory() -> None:
    """A step beside them runs on, so that the run stays on its worker."""
    proceed = asyncio.Event()
    busy = beside_a_long_step(proceed)
    async with fake_server(busy) as server:
        run = server.start(busy)
        server.claim(run)
        await until_logged(run, "BeginSleep night")
        server.wake(run, "night")
        for attempt in (1, 2):
            await until_logged(run, "FailStep charge", attempt)
            server.wake(run, "charge")
        await until_logged(run, "CompleteStep charge")
        assert run.status is RunStatus.RUNNING
        proceed.set()
        server.signal(run, "proceeds", True)
        await server.until_left(run)
        assert run.result == [True, 3, None, True]
        assert (run.lease, run.log.count("FailStep charge")) == (1, 2)


async def test_a_wake_may_come_before_the_answer_that_says_until_when_to_wait() -> None:
    """It was lost then, since a worker named only what it waited for: the run stayed for an hour."""
    proceed = asyncio.Event()
    busy = beside_a_long_step(proceed)
    async with fake_server(busy) as server:
        run = server.start(busy)
        woken = {"after sleep": "night", "after fail_step": "charge"}
        server.moment = lambda port, what: server.wake(run, woken[what]) if what in woken else None
        server.claim(run)
        await until_logged(run, "CompleteStep charge")
        proceed.set()
        server.signal(run, "proceeds", True)
        await server.until_left(run)
        assert run.result == [True, 3, None, True]


@pytest.mark.parametrize("kept", [0, 10], ids=["unwound", "kept"])
async def test_a_run_that_parked_goes_on_with_the_woken_step(kept: int) -> None:
    @workflow
    async def parks(ctx: Context) -> list[Any]:
        times = [ctx.now()]
        await ctx.sleep("night", "8h")
        times.append(ctx.now())
        charged = await ctx.step("charge", retry=HOURLY).run(works_the_third_time)
        await ctx.step("now").run(lambda: None)
        return [charged, times[1] > times[0], (times[1] - times[0]).total_seconds() < 60]

    async with fake_server(parks, kept_runs_max=kept, kept_s=100_000) as server:
        run = server.start(parks)
        for step_id in ("night", "charge", "charge"):
            server.claim(run)
            await server.until_left(run)
            assert run.status is RunStatus.SLEEPING
            server.wake(run, step_id)
        server.claim(run)
        await server.until_left(run)
        assert run.result == [3, True, True]


async def test_a_retry_that_is_due_early_does_not_hurry_the_one_after_it() -> None:
    """An answer may name an attempt that has begun meanwhile."""
    release = asyncio.Event()

    @workflow
    async def busy(ctx: Context) -> list[Any]:
        charge = ctx.step("charge", retry=HOURLY).run(works_the_third_time)
        return list(await ctx.parallel(ctx.step("long").run(release.wait), charge))

    async with fake_server(busy) as server:
        run = server.start(busy)
        server.claim(run)
        await until_logged(run, "FailStep charge")
        server.wake(run, "charge")
        assert run.port is not None
        assert run.port.execution is not None
        run.port.execution.results_available()  # notified twice
        await until_logged(run, "FailStep charge", 2)
        for _ in range(50):
            await asyncio.sleep(0)
        assert run.log.count("BeginStep charge") == 2
        release.set()
        await server.until_left(run)
        assert run.status is RunStatus.SLEEPING

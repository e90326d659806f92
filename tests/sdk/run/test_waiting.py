"""Sleeps: short ones in place, long ones without a worker; and a run that parks only when it can do nothing else."""

import asyncio
import logging
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kagzi.core.run.state import StepState
from kagzi.core.states import KindCode, RunStatus, StepCode, StepStatus
from kagzi.sdk.workflow.context import Context
from kagzi.sdk.workflow.decorator import workflow
from kagzi.sdk.workflow.retry import Retry
from tests.support.polling import until

from .fake import FakePort, FakeServer, fake_server

KEPT = pytest.mark.parametrize("kept", [0, 10], ids=["unwound", "kept"])


async def done(value: str) -> str:
    return value


async def test_a_short_sleep_is_waited_for_in_place() -> None:
    @workflow
    async def nap(ctx: Context) -> str:
        await ctx.sleep("nap", "30ms")
        await ctx.sleep("none", "0s")
        await ctx.sleep_until("past", datetime(2020, 1, 1, tzinfo=UTC))
        return "awake"

    async with fake_server(nap) as server:
        before = server.now
        run = await server.run(nap)
        assert (run.result, run.lease) == ("awake", 1)
        assert server.now - before >= 30_000
        assert run.log == ["BeginSleep nap", "FinishSleep nap", "BeginSleep none", "BeginSleep past", "CompleteRun"]


async def test_a_wait_that_ends_early_by_the_servers_clock_goes_on() -> None:
    @workflow
    async def nap(ctx: Context) -> str:
        await ctx.sleep("nap", "10ms")
        return "awake"

    async with fake_server(nap) as server:
        run = server.start(nap)
        server.claim(run)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        server.advance(-1.0)  # the clock of the server is set back, by more than a loaded machine is late
        await server.until_left(run)
        assert run.log == ["BeginSleep nap", "FinishSleep nap", "FinishSleep nap", "CompleteRun"]


@KEPT
async def test_a_long_sleep_needs_no_worker(kept: int) -> None:
    @workflow
    async def long(ctx: Context) -> list[str]:
        a = await ctx.step("a").run(done, "a")
        await ctx.sleep("night", "8h")
        return [a, await ctx.step("b").run(done, "b")]

    async with fake_server(long, kept_runs_max=kept, kept_s=100_000) as server:
        run = server.start(long)
        port = server.claim(run)
        await server.until_left(run)
        assert run.status is RunStatus.SLEEPING
        assert port.closed.is_set()
        assert (server.executor.active, server.executor.kept) == (0, min(kept, 1))
        server.advance(8 * 3600)
        server.claim(run)
        await server.until_left(run)
        assert run.result == ["a", "b"]
        assert run.log == [
            "BeginStep a", "CompleteStep a", "BeginSleep night", "Park", "BeginStep b", "CompleteStep b", "CompleteRun",
        ]  # fmt: skip


async def test_a_sleep_that_is_open_in_the_history_is_not_begun_again() -> None:
    @workflow
    async def long(ctx: Context) -> str:
        await ctx.sleep("night", "8h")
        return "day"

    async with fake_server(long, kept_runs_max=0) as server:
        run = server.start(long)
        for _ in range(2):  # woken for nothing: it parks again
            server.claim(run)
            await server.until_left(run)
            assert run.status is RunStatus.SLEEPING
        server.advance(8 * 3600 - 0.8)
        server.claim(run)  # the rest fits into a wait in place
        await server.until_left(run)
        assert run.result == "day"
        assert run.log == ["BeginSleep night", "Park", "Park", "FinishSleep night", "CompleteRun"]


@KEPT
async def test_branches_that_sleep_do_not_keep_one_that_works(kept: int) -> None:
    latch = asyncio.Event()

    async def work() -> str:
        await latch.wait()
        return "worked"

    async def branch(ctx: Context, hours: int) -> int:
        await ctx.sleep("sleep", timedelta(hours=hours))
        return hours

    @workflow
    async def many(ctx: Context) -> list[Any]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(branch(ctx, hours)) for hours in (2, 1)]
            first = await asyncio.gather(branch(ctx, 3), ctx.step("work").run(work))
        return [*first, *(task.result() for task in tasks)]

    async with fake_server(many, kept_runs_max=kept, kept_s=100_000) as server:
        run = server.start(many)
        port = server.claim(run)
        await settle(server)
        assert run.status is RunStatus.RUNNING
        latch.set()
        await server.until_left(run)
        assert run.status is RunStatus.SLEEPING
        assert port.closed.is_set()
        for _ in range(3):
            assert run.due_at is not None
            server.advance((run.due_at - server.now) / 1e6)
            server.claim(run)
            await server.until_left(run)
        assert run.result == [3, "worked", 2, 1]
        assert run.lease == 4
        assert run.log.count("BeginStep work") == 1


@KEPT
@pytest.mark.parametrize("how", ["gather", "wait", "task", "queue", "as_completed", "lock"])
async def test_every_way_of_asyncio_to_wait_for_tasks_can_be_parked(how: str, kept: int) -> None:
    async def sleeper(ctx: Context) -> str:
        await ctx.sleep("hour", "1h")
        return "slept"

    async def feeder(ctx: Context, queue: "asyncio.Queue[str]") -> None:
        await queue.put(await sleeper(ctx))

    async def holder(ctx: Context, lock: asyncio.Lock) -> None:
        async with lock:
            await sleeper(ctx)

    @workflow
    async def waits_for_tasks(ctx: Context) -> str:
        if how == "gather":
            return (await asyncio.gather(sleeper(ctx)))[0]
        if how == "wait":
            finished, _ = await asyncio.wait([asyncio.create_task(sleeper(ctx))])
            return finished.pop().result()
        if how == "task":
            return await asyncio.create_task(sleeper(ctx))
        if how == "queue":
            queue: asyncio.Queue[str] = asyncio.Queue()
            task = asyncio.create_task(feeder(ctx, queue))
            value = await queue.get()
            await task
            return value
        if how == "as_completed":
            (only,) = [await each for each in asyncio.as_completed([sleeper(ctx)])]
            return only
        lock = asyncio.Lock()
        task = asyncio.create_task(holder(ctx, lock))
        await asyncio.sleep(0)
        async with lock:
            await task
            return "slept"

    async with fake_server(waits_for_tasks, kept_runs_max=kept, kept_s=100_000) as server:
        run = await server.run(waits_for_tasks)
        assert (run.result, run.lease) == ("slept", 2)


async def test_a_wait_outside_kagzi_keeps_the_place_and_is_told(caplog: pytest.LogCaptureFixture) -> None:
    latch = asyncio.Event()
    outside: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @workflow
    async def foreign(ctx: Context) -> str:
        task = asyncio.create_task(ctx.sleep("day", "1 day"))
        await outside
        await task
        return "over"

    async with fake_server(foreign) as server:
        run = server.start(foreign)
        with caplog.at_level(logging.WARNING):
            server.claim(run)
            await settle(server)
        assert run.status is RunStatus.RUNNING
        assert "waits for something outside Kagzi at" in caplog.text
        assert "in foreign" in caplog.text
        outside.set_result(None)
        await server.until_left(run)  # looked at again within a second
        assert run.status is RunStatus.SLEEPING
    latch.set()


async def test_teardown_cannot_be_swallowed() -> None:
    seen: list[str] = []

    @workflow
    async def greedy(ctx: Context) -> str:
        try:
            await ctx.sleep("day", "1 day")
        except BaseException as error:  # noqa: BLE001  the subject
            seen.append(type(error).__name__)
            try:
                await ctx.step("record").run(done, "no")
            except Exception:  # noqa: BLE001  the subject
                seen.append("an Exception")
            except BaseException as again:  # noqa: BLE001  the subject
                seen.append(type(again).__name__)
            return "swallowed"
        finally:
            seen.append("finally")
        return "slept"

    async with fake_server(greedy, kept_runs_max=0) as server:
        run = server.start(greedy)
        server.claim(run)
        await server.until_left(run)
        await settle(server)
        assert seen == ["Suspended", "Suspended", "finally"]
        assert run.status is RunStatus.SLEEPING
        server.advance(86_400)
        server.claim(run)
        await server.until_left(run)
        assert run.result == "slept"
        assert "BeginStep record" not in run.log


async def test_a_kept_run_is_not_resumed_by_a_history_it_does_not_know() -> None:
    bodies: list[str] = []

    async def body(name: str) -> str:
        bodies.append(name)
        return name

    @workflow
    async def w(ctx: Context) -> list[str]:
        a = await ctx.step("a").run(body, "a")
        await ctx.sleep("hour", "1h")
        return [a, await ctx.step("b").run(body, "b")]

    async with fake_server(w, kept_s=100_000) as server:
        run = server.start(w)
        server.claim(run)
        await server.until_left(run)
        run.lease += 1  # somebody else had it meanwhile
        server.advance(3600)
        server.claim(run)
        await server.until_left(run)
        assert run.result == ["a", "b"]
        assert bodies == ["a", "b"]


async def settle(server: FakeServer) -> None:
    """Let everything happen that can happen without time."""
    for _ in range(50):
        await asyncio.sleep(0)


@pytest.mark.parametrize("backoff", ["1ms", "2h"])
async def test_a_retry_that_nobody_waits_for_any_more_is_closed(backoff: str) -> None:
    # A step left waiting for its next try would be due for ever: the run could neither park nor sleep through.
    async def fails() -> None:
        raise ConnectionError

    async def aborts() -> None:
        raise RuntimeError

    @workflow
    async def w(ctx: Context) -> str:
        group = [
            asyncio.create_task(ctx.step("fails", retry=Retry.fixed(1_000, backoff)).run(fails)),
            asyncio.create_task(ctx.step("aborts", retry=Retry.none()).run(aborts)),
        ]
        await asyncio.wait(group, return_when=asyncio.FIRST_COMPLETED)
        group[0].cancel()
        await asyncio.wait(group)
        assert group[1].exception() is not None
        await ctx.sleep("night", "8h")
        return "morning"

    async with fake_server(w, kept_runs_max=0) as server:
        run = server.start(w)
        server.claim(run)
        await server.until_left(run)
        assert run.status is RunStatus.SLEEPING
        assert run.steps["fails"].status is StepStatus.FAILED
        assert run.log.count("Park") == 1
        server.advance(8 * 3600)
        await server.finish(run)
        assert (run.result, run.lease) == ("morning", 2)


async def test_a_server_that_will_not_park_the_run_is_not_asked_again_at_once() -> None:
    @workflow
    async def w(ctx: Context) -> None:
        await ctx.sleep("night", "8h")

    async with fake_server(w) as server:
        run = server.start(w)

        def stray(_: FakePort, what: str) -> None:
            """A retry that is due and of which this worker does not know."""
            if what == "after sleep":
                run.state.steps["stray"] = StepState(
                    step_id="stray",
                    name="stray",
                    kind=KindCode.FUNCTION,
                    status=StepCode.PENDING,
                    begun_seq=1,
                    attempt=2,
                    retry_at=1,
                    lease=run.state.lease,
                    created_at=server.now,
                )

        server.moment = stray
        server.claim(run)
        await until(lambda: "Park" in run.log)
        await asyncio.sleep(0.2)  # real time is the subject
        assert run.log == ["BeginSleep night", "Park"]

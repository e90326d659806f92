"""Cancellation with cleanup, and pause."""

import asyncio
from typing import Any

import pytest

from kagzi.core.states import RunStatus, StepStatus
from kagzi.sdk.workflow.context import Context
from kagzi.sdk.workflow.decorator import workflow
from tests.support.timeouts import LOADED_MACHINE_S

from .fake import fake_server


async def same(value: Any) -> Any:
    return value


async def test_cleanup_is_done_after_a_cancellation_and_nothing_else_is() -> None:
    began = asyncio.Event()

    async def forever() -> None:
        began.set()
        await asyncio.Event().wait()

    @workflow
    async def w(ctx: Context) -> None:
        try:
            await ctx.parallel(ctx.step("forever").run(forever), ctx.sleep("day", "1 day"))
        finally:
            with pytest.raises(asyncio.CancelledError):
                await ctx.step("outside").run(same, 1)
            async with ctx.cleanup():
                await ctx.parallel(ctx.step("undo").run(same, 1), ctx.sleep("pause", "1h"))
                await ctx.step("tell").run(same, 2)
            with pytest.raises(asyncio.CancelledError):
                await ctx.sleep("late", "1s")

    for kept in (0, 10):
        began.clear()
        async with fake_server(w, kept_runs_max=kept) as server:
            run = server.start(w)
            server.claim(run)
            await asyncio.wait_for(began.wait(), LOADED_MACHINE_S)
            server.cancel(run)
            await server.until_left(run)
            assert run.status is RunStatus.SLEEPING  # in its cleanup
            await server.finish(run)
            assert run.status is RunStatus.CANCELLED
            assert set(run.steps) == {"forever", "day", "undo", "pause", "tell"}
            assert all(run.begins[step_id].cleanup for step_id in ("undo", "pause", "tell"))


async def test_a_cancellation_waits_for_a_cleanup_that_is_under_way() -> None:
    began, proceed = asyncio.Event(), asyncio.Event()

    async def slow() -> str:
        began.set()
        await proceed.wait()
        return "done"

    @workflow
    async def w(ctx: Context) -> None:
        async with ctx.cleanup():
            assert await ctx.step("slow").run(slow) == "done"
        await ctx.step("next").run(same, 1)

    async with fake_server(w) as server:
        run = server.start(w)
        server.claim(run)
        await asyncio.wait_for(began.wait(), LOADED_MACHINE_S)
        server.cancel(run)
        proceed.set()
        await server.until_left(run)
        assert run.status is RunStatus.CANCELLED
        assert run.steps["slow"].status is StepStatus.COMPLETED
        assert "next" not in run.steps


async def test_a_refusal_because_of_a_cancellation_is_the_cancellation() -> None:
    @workflow
    async def w(ctx: Context) -> None:
        await ctx.step("first").run(same, 1)
        await ctx.sleep("sleep", "1h")

    async with fake_server(w) as server:
        run = server.start(w)
        server.claim(run)
        run.cancel_requested = True  # the worker has not heard of it
        await server.until_left(run)
        assert run.status is RunStatus.CANCELLED
        assert not run.steps


async def test_a_function_that_returns_after_all_has_completed() -> None:
    @workflow
    async def w(ctx: Context) -> str:
        try:
            await ctx.sleep("day", "1 day")
        except asyncio.CancelledError:
            return "as you like"
        return ""

    async with fake_server(w) as server:
        run = server.start(w)
        server.claim(run)
        await server.until_left(run)
        server.cancel(run)
        await server.finish(run)
        assert (run.status, run.result) == (RunStatus.COMPLETED, "as you like")


async def test_a_pause_lets_running_steps_finish_and_begins_none() -> None:
    began, proceed = asyncio.Event(), asyncio.Event()

    async def slow(value: int) -> int:
        began.set()
        await proceed.wait()
        return value

    @workflow
    async def w(ctx: Context) -> list[int]:
        both = await ctx.parallel(ctx.step("a").run(slow, 1), ctx.step("b").run(slow, 2))
        return [*both, await ctx.step("c").run(same, 3)]

    async with fake_server(w) as server:
        run = server.start(w)
        server.claim(run)
        await asyncio.wait_for(began.wait(), LOADED_MACHINE_S)
        server.pause(run)
        proceed.set()
        await server.until_left(run)
        assert run.status is RunStatus.PAUSED
        assert {step_id: step.status for step_id, step in run.steps.items()} == {
            "a": StepStatus.COMPLETED,
            "b": StepStatus.COMPLETED,
        }
        server.resume(run)
        await server.finish(run)
        assert run.result == [1, 2, 3]


async def test_a_run_that_waits_is_paused_at_once() -> None:
    @workflow
    async def w(ctx: Context) -> str:
        await ctx.sleep("short", "900ms")
        return "over"

    async with fake_server(w) as server:
        run = server.start(w)
        server.claim(run)
        while "short" not in run.steps:  # noqa: ASYNC110  the fake answers within a few passes of the loop
            await asyncio.sleep(0)
        server.pause(run)
        await server.until_left(run)
        assert run.status is RunStatus.PAUSED
        server.resume(run)
        await server.finish(run)
        assert run.result == "over"


async def test_a_lost_lease_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    began = asyncio.Event()

    async def forever() -> None:
        began.set()
        await asyncio.Event().wait()

    @workflow
    async def w(ctx: Context) -> None:
        await ctx.step("forever").run(forever)

    async with fake_server(w) as server:
        run = server.start(w)
        port = server.claim(run)
        await asyncio.wait_for(began.wait(), LOADED_MACHINE_S)
        assert port.execution is not None
        port.execution.abandon("")
        await asyncio.wait_for(port.closed.wait(), LOADED_MACHINE_S)
    records = [record for record in caplog.records if record.levelname == "WARNING"]
    [message] = [record.getMessage() for record in records]
    assert message.startswith(f"w 'wid', run {run.run_id} is abandoned: its lease was lost.")


async def test_cancelled_at_any_moment_it_cleans_up_once_and_ends() -> None:
    """With and without the loss of the worker in the middle of the cleanup."""
    undone: list[str] = []

    async def undo(name: str) -> str:
        undone.append(name)
        return name

    @workflow
    async def w(ctx: Context) -> str:
        try:
            await ctx.step("first").run(same, 1)
            await ctx.parallel(
                ctx.race(ctx.step("a").run(same, 2), ctx.sleep("hour", "1h")),
                ctx.step("b").run(same, 3),
                ctx.sleep("s", "1ms"),
            )
            await ctx.sleep("night", "8h")
            return "over"
        except asyncio.CancelledError:
            async with ctx.cleanup():
                await ctx.step("undo").run(undo, "one")
                await ctx.step("undo").run(undo, "two")
            raise

    for kept, lost, moment in [
        (kept, lost, moment) for kept in (0, 10) for lost in (False, True) for moment in range(12)
    ]:
        undone.clear()
        async with fake_server(w, kept_runs_max=kept, kept_s=100_000) as server:
            run = server.start(w)
            server.moment = lambda port, what, server=server: server.changes.set()
            server.claim(run)
            while len(run.log) < moment and run.status is RunStatus.RUNNING:
                server.changes.clear()
                await server.changes.wait()
            server.cancel(run)
            if lost and run.status is RunStatus.RUNNING:
                while not undone and run.status is RunStatus.RUNNING:  # noqa: ASYNC110  any moment will do
                    await asyncio.sleep(0)
                if run.status is RunStatus.RUNNING and run.port is not None and run.port.execution is not None:
                    run.lease += 1  # the worker is taken for dead
                    run.port.execution.abandon("cut")
                    run.become(RunStatus.PENDING)
            if run.status is RunStatus.RUNNING:
                await server.until_left(run)
            await server.finish(run)
            assert run.status is RunStatus.CANCELLED, (kept, lost, moment, run.error)
            assert run.steps["undo"].seq
            assert run.steps["undo#2"].seq
            assert undone.count("two") == 1
            assert undone.count("one") <= 1 + lost

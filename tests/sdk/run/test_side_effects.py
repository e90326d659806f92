"""Status, heartbeats, steps that run once, patches, and runs that continue as new ones."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from kagzi.core.error_details import ErrorKind
from kagzi.core.errors import InvalidArgument, ResourceExhausted, StepError
from kagzi.core.states import RunStatus, StepStatus
from kagzi.sdk.workflow.context import Context
from kagzi.sdk.workflow.current import current_step
from kagzi.sdk.workflow.decorator import workflow
from kagzi.sdk.workflow.retry import Retry
from kagzi.sdk.workflow.step import step
from kagzi.sdk.workflow.workflow import Workflow
from tests.support.timeouts import LOADED_MACHINE_S

from .fake import fake_server


async def nothing() -> None: ...


async def test_the_last_status_counts_and_few_are_written() -> None:
    @workflow
    async def w(ctx: Context) -> None:
        for n in range(100):
            ctx.set_status(f"turn {n}", progress=n / 100)
            await ctx.step("s").run(nothing)
        for bad in (lambda: ctx.set_status("x" * 2_000), lambda: ctx.set_status("x", progress=2)):
            with pytest.raises((ResourceExhausted, InvalidArgument)):
                bad()

    async with fake_server(w) as server:
        run = await server.run(w)
        assert run.status is RunStatus.COMPLETED, run.error
        assert run.status_text == ("turn 99", 0.99)
        assert sum(entry == "SetStatus" for entry in run.log) <= 3


async def test_heartbeats_of_async_and_sync_steps_and_what_the_next_attempt_finds() -> None:
    recalled: list[object] = []

    def in_thread() -> None:
        info = current_step()
        recalled.append(info.heartbeat_details)
        info.heartbeat({"row": info.attempt})
        if info.attempt < 3:
            raise ConnectionError("again")

    async def on_loop() -> str:
        current_step().heartbeat("half way")
        return current_step().idempotency_key

    @workflow
    async def w(ctx: Context) -> str:
        await ctx.step("thread", retry=Retry.fixed(3, "1ms")).run(in_thread)
        return await ctx.step("loop").run(on_loop)

    async with fake_server(w) as server:
        run = await server.run(w)
        assert recalled == [None, {"row": 1}, {"row": 2}]
        assert ("loop", "half way") in run.heartbeats
        assert run.result == f"{run.run_id}/loop"


async def test_details_of_a_lost_worker_are_there_for_the_next() -> None:
    recalled: list[object] = []
    reported = asyncio.Event()

    async def long() -> None:
        recalled.append(current_step().heartbeat_details)
        current_step().heartbeat(7)
        if len(recalled) == 1:
            reported.set()
            await asyncio.Event().wait()

    @workflow
    async def w(ctx: Context) -> None:
        await ctx.step("long").run(long)

    async with fake_server(w) as server:
        run = server.start(w)
        port = server.claim(run)
        await asyncio.wait_for(reported.wait(), LOADED_MACHINE_S)
        while not run.heartbeats:  # noqa: ASYNC110  the fake answers within a few passes of the loop
            await asyncio.sleep(0)
        assert port.execution is not None
        port.execution.abandon("cut")
        await server.finish(run)
        assert recalled == [None, 7]


async def test_a_step_that_runs_once_is_lost_rather_than_done_again() -> None:
    began, bodies = asyncio.Event(), list[int]()

    @step(once=True)
    async def pay() -> None:
        bodies.append(1)
        began.set()
        await asyncio.Event().wait()

    @workflow
    async def w(ctx: Context) -> str:
        try:
            await pay()
        except StepError as error:
            return error.kind
        return ""

    async with fake_server(w) as server:
        run = server.start(w)
        port = server.claim(run)
        await asyncio.wait_for(began.wait(), LOADED_MACHINE_S)
        assert run.steps["pay"].status is StepStatus.RUNNING  # durable before the body runs
        assert run.begins["pay"].once
        assert port.execution is not None
        port.execution.abandon("cut")
        await server.finish(run)
        assert run.result == ErrorKind.LOST
        assert bodies == [1]


async def test_once_is_not_retried_and_refuses_a_policy() -> None:
    async def fails() -> None:
        raise ConnectionError("no")

    @workflow
    async def w(ctx: Context) -> int:
        with pytest.raises(InvalidArgument, match="at most once"):
            ctx.step("x", once=True, retry=Retry.attempts(2))
        try:
            await ctx.step("x", once=True).run(fails)
        except StepError as error:
            return error.attempts
        return 0

    async with fake_server(w) as server:
        assert (await server.run(w)).result == 1


Code = Callable[[Context], Awaitable[list[object]]]


def evolving(first: Code) -> tuple[Workflow[None, list[object]], list[Code]]:
    """A workflow whose code can be replaced while runs are open."""
    deployed = [first]

    async def flow(ctx: Context) -> list[object]:
        return await deployed[0](ctx)

    return Workflow(flow), deployed


async def test_changed_is_false_for_runs_that_were_past_it_and_true_for_others() -> None:
    async def old(ctx: Context) -> list[object]:
        await ctx.step("a").run(nothing)
        await ctx.sleep("night", "8h")
        return []

    async def new(ctx: Context) -> list[object]:
        early = ctx.changed("early")
        await ctx.step("a").run(nothing)
        await ctx.sleep("night", "8h")
        late = ctx.changed("late")
        if late:
            await ctx.step("b").run(nothing)
        await ctx.sleep("another", "8h")
        return [early, late, ctx.changed("late")]

    flow, deployed = evolving(old)
    async with fake_server(flow, kept_runs_max=0) as server:
        run = server.start(flow)
        server.claim(run)
        await server.until_left(run)
        deployed[0] = new
        await server.finish(run)
        assert run.result == [False, True, True]
        fresh = await server.run(flow)
        assert fresh.result == [True, True, True]
        assert "changed:early" in fresh.steps


async def test_continue_as_new_ends_the_run_and_hands_on_the_input() -> None:
    @workflow
    async def countdown(ctx: Context, n: int) -> str:
        await ctx.step("tick").run(nothing)
        if n > 0:
            ctx.continue_as_new(n - 1)
        return "lift-off"

    async with fake_server(countdown) as server:
        run = await server.run(countdown, 2)
        assert run.status is RunStatus.COMPLETED
        second = run.continued_as
        assert second is not None
        assert second.input is not None
        assert second.input.data == b"1"
        await server.finish(second)
        assert second.continued_as is not None
        await server.finish(second.continued_as)
        assert second.continued_as.result == "lift-off"

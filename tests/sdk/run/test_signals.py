"""Signals: typed, kept if early, consumed once and in order, decided by the server against the time limit."""

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from kagzi.core.errors import InvalidArgument
from kagzi.core.states import RunStatus, StepStatus
from kagzi.sdk.workflow.context import Context
from kagzi.sdk.workflow.decorator import workflow
from kagzi.sdk.workflow.signals import Signal
from tests.support.timeouts import LOADED_MACHINE_S

from .fake import fake_server


@dataclass
class Decision:
    approved: bool
    by: str


decision = Signal("decision", Decision)
number = Signal("number", int)


@workflow
async def decide(ctx: Context) -> str:
    answer = await ctx.wait_for(decision, timeout="3 days")
    return answer.by


@workflow
async def sum_of_two(ctx: Context) -> list[int]:
    return [await ctx.wait_for(number), await ctx.wait_for(number)]


async def test_a_signal_wakes_a_sleeping_run_and_is_read_as_its_type() -> None:
    for kept in (0, 10):
        async with fake_server(decide, kept_runs_max=kept) as server:
            run = server.start(decide)
            server.claim(run)
            await server.until_left(run)
            assert run.status is RunStatus.SLEEPING
            server.signal(run, "other", 1)
            assert run.status is RunStatus.SLEEPING
            server.signal(run, "decision", {"approved": True, "by": "ada"})
            await server.finish(run)
            assert run.result == "ada"
            assert run.step_ids == ["decision"]


async def test_early_signals_are_kept_and_taken_in_order() -> None:
    async with fake_server(sum_of_two) as server:
        run = server.start(sum_of_two)
        for value in (1, 2, 3):
            server.signal(run, "number", value)
        await server.finish(run)
        assert run.result == [1, 2]
        assert run.step_ids == ["number", "number#2"]
        assert [payload.data for _, payload in run.signals] == [b"3"]


async def test_a_signal_for_a_run_that_is_held_reaches_it_there() -> None:
    began, proceed = asyncio.Event(), asyncio.Event()

    async def long() -> str:
        began.set()
        await proceed.wait()
        return "done"

    @workflow
    async def w(ctx: Context) -> list[object]:
        return list(await ctx.parallel(ctx.step("long").run(long), waiter(ctx)))

    seen = asyncio.Event()

    async def waiter(ctx: Context) -> int:
        value = await ctx.wait_for(number)
        seen.set()
        return value

    async with fake_server(w) as server:
        run = server.start(w)
        server.claim(run)
        await asyncio.wait_for(began.wait(), LOADED_MACHINE_S)
        server.signal(run, "number", 7)
        await asyncio.wait_for(seen.wait(), LOADED_MACHINE_S)  # while the step is running
        proceed.set()
        await server.until_left(run)
        assert run.result == ["done", 7]


async def test_without_a_signal_in_time_it_is_a_timeout_or_the_default_and_so_on_replay() -> None:
    @workflow
    async def both(ctx: Context) -> list[object]:
        default = await ctx.wait_for(number, timeout="1h", default=None)
        try:
            await ctx.wait_for(number, timeout="1h")
        except TimeoutError as error:
            return [default, str(error)]
        return []

    async with fake_server(both, kept_runs_max=0) as server:
        run = await server.run(both)
        first = run.result
        assert first[0] is None
        assert first[1].startswith("signal 'number' did not arrive before 2023-")
        run.status = RunStatus.PENDING
        await server.finish(run)
        assert run.result == first


async def test_a_short_limit_is_waited_for_in_place() -> None:
    @workflow
    async def short(ctx: Context) -> str:
        return await ctx.wait_for(Signal("s", str), timeout="20ms", default="too late")

    async with fake_server(short) as server:
        run = server.start(short)
        server.claim(run)
        await server.until_left(run)
        assert run.result == "too late"
        assert run.lease == 1


async def test_a_timeout_that_leaves_the_function_names_its_step() -> None:
    async with fake_server(decide) as server:
        run = await server.run(decide)
        assert run.error is not None
        assert (run.error.type, run.error.subject, run.error.subject_id) == ("TimeoutError", "step", "decision")
        assert run.error.non_retryable


async def test_a_wait_that_was_given_up_takes_no_signal() -> None:
    @workflow
    async def w(ctx: Context) -> int:
        task = asyncio.create_task(aside(ctx))
        await ctx.sleep("while", "1h")
        task.cancel()
        await asyncio.wait([task])
        return await ctx.wait_for(number)

    async def aside(ctx: Context) -> int:
        return await ctx.wait_for(number)

    for kept in (0, 10):
        async with fake_server(w, kept_runs_max=kept, kept_s=100_000) as server:
            run = server.start(w)
            server.claim(run)
            await server.until_left(run)
            server.advance(3_600)
            server.claim(run)
            await server.until_left(run)
            assert run.steps["task[1]/number"].status is StepStatus.ABANDONED
            server.signal(run, "number", 5)
            await server.finish(run)
            assert run.result == 5
            run.status = RunStatus.PENDING
            await server.finish(run)
            assert run.result == 5


def test_a_signal_needs_a_name_and_a_default_needs_a_limit() -> None:
    with pytest.raises(InvalidArgument, match="must not contain"):
        Signal("a/b", int)


async def test_wrong_arguments_are_named() -> None:
    @workflow
    async def w(ctx: Context) -> list[str]:
        texts: list[str] = []
        wait_for: Any = ctx.wait_for
        for call in (lambda: wait_for("x"), lambda: wait_for(number, default=1)):
            try:
                await call()
            except InvalidArgument as error:
                texts.append(error.field)
        return texts

    async with fake_server(w) as server:
        assert (await server.run(w)).result == ["signal", "default"]

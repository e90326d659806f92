"""A signal whose value cannot be read pauses the run: no code has received it, so another value may take its place."""

import asyncio
from typing import Any

import msgspec

from kagzi.core.error_details import ErrorCode
from kagzi.core.records import Payload
from kagzi.core.run.misfits import misfit_of
from kagzi.core.states import RunStatus, StepStatus
from kagzi.sdk.workflow.context import Context
from kagzi.sdk.workflow.decorator import workflow
from kagzi.sdk.workflow.signals import Signal

from .fake import FakeServer, fake_server
from .fake_run import FakeRun

number = Signal("number", int)


async def same(value: Any) -> Any:
    return value


@workflow
async def takes_two(ctx: Context) -> list[int]:
    first = await ctx.wait_for(number)
    return [first, await ctx.step("between").run(same, 0), await ctx.wait_for(number, timeout="1 day", default=-1)]


def replace(run: FakeRun, step_id: str, value: Any) -> None:
    """As a server does it: the value is another one, with a number of its own, and the run goes on."""
    step = run.state.steps[step_id]
    step.output, step.seq = Payload(msgspec.json.encode(value)), run.state.next_result_seq()
    run.state.problem = None
    run.become(RunStatus.PENDING)


async def left(server: FakeServer, run: FakeRun) -> RunStatus:
    server.claim(run)
    await server.until_left(run)
    return run.status


async def test_a_run_is_paused_with_a_problem_that_says_which_signal_and_why() -> None:
    for early in (False, True):
        for kept in (0, 10):
            async with fake_server(takes_two, kept_runs_max=kept) as server:
                run = server.start(takes_two)
                if not early:
                    assert await left(server, run) is RunStatus.SLEEPING
                server.signal(run, "number", "five")
                assert await left(server, run) is RunStatus.PAUSED
                problem = run.problem
                assert problem is not None
                assert (problem.code, problem.subject, problem.subject_id) == (
                    ErrorCode.INVALID_ARGUMENT,
                    "signal",
                    "number",
                )
                misfit = misfit_of(problem)
                assert misfit is not None
                assert (misfit.step_id, misfit.seq, misfit.expected) == ("number", run.steps["number"].seq, "int")
                assert misfit.why == "Expected int, got str (at $)"
                assert f"{__file__}:" in problem.message


async def test_the_field_that_does_not_fit_is_named() -> None:
    class Decision(msgspec.Struct):
        approved: bool

    @workflow
    async def decide(ctx: Context) -> bool:
        return (await ctx.wait_for(Signal("decision", Decision))).approved

    async with fake_server(decide) as server:
        run = server.start(decide)
        server.signal(run, "decision", {"approved": "perhaps"})
        assert await left(server, run) is RunStatus.PAUSED
        assert run.problem is not None
        assert "$.approved" in run.problem.message
        assert "Decision" in run.problem.metadata["expected"]


async def test_with_another_value_it_goes_on_where_it_was() -> None:
    async with fake_server(takes_two) as server:
        run = server.start(takes_two)
        server.signal(run, "number", None)
        assert await left(server, run) is RunStatus.PAUSED
        replace(run, "number", 5)
        assert await left(server, run) is RunStatus.SLEEPING
        server.signal(run, "number", {})
        assert await left(server, run) is RunStatus.PAUSED
        replace(run, "number#2", 6)
        await server.finish(run)
        assert run.result == [5, 0, 6]
        assert run.step_ids == ["number", "between", "number#2"]


async def test_resumed_with_the_same_value_it_is_paused_again() -> None:
    async with fake_server(takes_two) as server:
        run = server.start(takes_two)
        server.signal(run, "number", [])
        for _ in range(3):
            assert await left(server, run) is RunStatus.PAUSED
            server.resume(run)
        assert set(run.steps) == {"number"}


async def test_code_cannot_swallow_it_and_go_on() -> None:
    @workflow
    async def careless(ctx: Context) -> str:
        try:
            await ctx.wait_for(number)
        except Exception:  # noqa: BLE001  that is what is tried
            return "swallowed"
        finally:
            await ctx.step("after").run(same, 1)
        return "fine"

    async with fake_server(careless) as server:
        run = server.start(careless)
        server.signal(run, "number", "x")
        assert await left(server, run) is RunStatus.PAUSED
        assert set(run.steps) == {"number"}
        replace(run, "number", 1)
        await server.finish(run)
        assert run.result == "fine"


async def test_its_neighbours_in_a_race_and_in_parallel_come_to_their_end() -> None:
    @workflow
    async def wide(ctx: Context) -> list[int]:
        return list(await ctx.parallel(ctx.wait_for(number), ctx.step("other").run(same, 2)))

    async with fake_server(wide) as server:
        run = server.start(wide)
        assert await left(server, run) is RunStatus.SLEEPING
        server.signal(run, "number", "x")
        assert await left(server, run) is RunStatus.PAUSED
        (step_id,) = [step_id for step_id in run.steps if step_id.endswith("number")]
        replace(run, step_id, 1)
        await server.finish(run)
        assert run.result == [1, 2]


async def test_a_cancelled_run_ends_although_its_signal_does_not_fit() -> None:
    endings: list[str] = []

    @workflow
    async def tidy(ctx: Context) -> None:
        try:
            await ctx.wait_for(number)
        except asyncio.CancelledError:
            async with ctx.cleanup():
                endings.append(await ctx.step("undo").run(same, "undone"))
            raise

    async with fake_server(tidy) as server:
        run = server.start(tidy)
        server.signal(run, "number", "x")
        assert await left(server, run) is RunStatus.PAUSED
        run.cancel_requested = True
        run.become(RunStatus.PENDING)
        await server.finish(run)
        assert run.status is RunStatus.CANCELLED
        assert endings == ["undone"]
        assert run.steps["undo"].status is StepStatus.COMPLETED

"""Code that does not fit the history: the run is paused and says where, instead of doing something else."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kagzi.core.error_details import ErrorKind
from kagzi.core.run.state import StepState
from kagzi.core.states import KindCode, RunStatus, StepCode
from kagzi.sdk.workflow.context import Context
from kagzi.sdk.workflow.signals import Signal
from kagzi.sdk.workflow.workflow import Workflow

from .fake import FakeRun, FakeServer, fake_server
from .programs import small_child

Code = Callable[[Context], Awaitable[Any]]
ran: list[str] = []


async def do(name: str) -> str:
    ran.append(name)
    return name


async def deploy(old: Code, new: Code) -> tuple[FakeServer, FakeRun]:
    """A run of the old code sleeps; then the new code takes it up."""
    deployed = [old]

    async def evolving(ctx: Context) -> Any:
        return await deployed[0](ctx)

    flow: Workflow[None, Any] = Workflow(evolving)
    async with fake_server(flow, small_child, kept_runs_max=0, build_id="b2") as server:
        run = server.start(flow)
        server.claim(run)
        await server.until_left(run)
        assert run.status is RunStatus.SLEEPING
        ran.clear()
        deployed[0] = new
        server.advance(100 * 3_600)
        server.claim(run)
        await server.until_left(run)
        deployed[0] = old
        return server, run


async def original(ctx: Context) -> str:
    await ctx.step("a").run(do, "a")
    await ctx.step("b").run(do, "b")
    await ctx.sleep("night", "8h")
    return await ctx.step("c").run(do, "c")


def assert_paused(run: FakeRun, *texts: str) -> None:
    assert run.status is RunStatus.PAUSED
    assert run.problem is not None
    assert run.problem.kind is ErrorKind.NONDETERMINISM
    assert run.problem.subject == "step"
    for text in texts:
        assert text in run.problem.message
    assert not ran


async def test_a_new_step_before_recorded_ones() -> None:
    async def inserted(ctx: Context) -> None:
        await ctx.step("a").run(do, "a")
        await ctx.step("new").run(do, "new")
        await ctx.step("b").run(do, "b")

    _, run = await deploy(original, inserted)
    assert_paused(run, "step 'new' at", "'b'", "ctx.changed", f"{__file__}:")
    assert run.problem is not None
    assert run.problem.subject_id == "new"


async def test_a_step_that_is_gone() -> None:
    async def shorter(ctx: Context) -> str:
        await ctx.step("a").run(do, "a")
        await ctx.sleep("night", "8h")
        return "ended"

    _, run = await deploy(original, shorter)
    assert_paused(run, "ended without reaching", "'b'")


async def test_another_kind() -> None:
    async def other(ctx: Context) -> None:
        await ctx.step("a").run(do, "a")
        await ctx.sleep("b", "1h")

    _, run = await deploy(original, other)
    assert_paused(run, "'b' is a sleep in the code", f"{__file__}:")


async def test_a_race_without_its_winner() -> None:
    async def racing(ctx: Context) -> None:
        await ctx.race(x=ctx.step("x").run(do, "x"), late=ctx.sleep("late", "9h"))
        await ctx.sleep("night", "8h")

    async def renamed(ctx: Context) -> None:
        await ctx.race(y=ctx.step("x").run(do, "x"), late=ctx.sleep("late", "9h"))
        await ctx.sleep("night", "8h")

    _, run = await deploy(racing, renamed)
    assert_paused(run, "won by branch 'x'")


async def test_code_that_fits_lets_it_go_on() -> None:
    async def broken(ctx: Context) -> None:
        await ctx.step("new").run(do, "new")

    server, run = await deploy(original, broken)
    assert run.status is RunStatus.PAUSED
    server.executor = server.new_executor()
    server.resume(run)
    await server.finish(run)
    assert run.result == "c"
    server.executor.close()


async def test_steps_of_branches_that_were_given_up_are_no_divergence() -> None:
    async def racing(ctx: Context) -> str:
        async def slow() -> str:
            await ctx.step("one").run(do, "one")
            await ctx.sleep("two", "2h")
            return await ctx.step("three").run(do, "three")

        won = await ctx.race(slow(), ctx.sleep("hour", "1h"))
        await ctx.sleep("night", "8h")
        return f"{won} {await ctx.step('end').run(do, 'end')}"

    _, run = await deploy(racing, racing)
    assert run.status is RunStatus.SLEEPING
    assert run.problem is None
    assert run.steps["race"].seq


# --- calls that moved -------------------------------------------------------------------------------------------------


async def charged(ctx: Context) -> str:
    await ctx.step("charge").run(do, "charge")
    await ctx.sleep("night", "8h")
    return await ctx.step("ship").run(do, "ship")


async def charge_in_gather(ctx: Context) -> str:
    async def one() -> str:
        return await ctx.step("charge").run(do, "charge")  # the line that is named

    await asyncio.gather(one())
    await ctx.sleep("night", "8h")
    return await ctx.step("ship").run(do, "ship")


async def charge_in_task(ctx: Context) -> str:
    await asyncio.create_task(ctx.step("charge").run(do, "charge"))  # it keeps the identity of its call
    await ctx.sleep("night", "8h")
    return await ctx.step("ship").run(do, "ship")


async def charge_in_helper(ctx: Context) -> str:
    async def helper() -> str:
        return await ctx.step("charge").run(do, "charge")

    await helper()
    await ctx.sleep("night", "8h")
    return await ctx.step("ship").run(do, "ship")


async def test_a_step_that_moved_into_a_gather_does_not_run_a_second_time() -> None:
    _, run = await deploy(charged, charge_in_gather)
    line = charge_in_gather.__code__.co_firstlineno + 2
    assert_paused(
        run, f"step 'task[1]/charge' at {__file__}:{line} is new", "'charge'", "'night'", "was moved", "ctx.changed"
    )
    assert set(run.steps) == {"charge", "night"}, "the code that does not fit recorded something"


@pytest.mark.parametrize("code", [charge_in_task, charge_in_helper])
async def test_a_call_that_keeps_its_identity_may_move(code: Code) -> None:
    _, run = await deploy(charged, code)
    assert run.status is RunStatus.COMPLETED
    assert ran == ["ship"]


async def test_the_first_code_goes_on_after_one_that_did_not_fit() -> None:
    server, run = await deploy(charged, charge_in_gather)
    server.executor = server.new_executor()
    server.resume(run)
    await server.finish(run)
    assert run.result == "ship"
    assert ran == ["ship"]
    server.executor.close()


@pytest.mark.parametrize("kind", ["sleep", "wait", "child", "race", "changed"])
async def test_nothing_else_is_recorded_by_code_that_does_not_fit(kind: str) -> None:
    async def first(ctx: Context) -> None:
        if kind == "sleep":
            await ctx.sleep("other", "1h")
        elif kind == "wait":
            await ctx.wait_for(Signal("go", int))
        elif kind == "child":
            await ctx.start_child(small_child, False)
        elif kind == "race":
            await ctx.race(asyncio.sleep(0), asyncio.sleep(0))
        else:
            assert not ctx.changed("it")
            await ctx.step("new").run(do, "new")

    async def other(ctx: Context) -> None:
        await asyncio.gather(first(ctx))
        await ctx.step("a").run(do, "a")

    _, run = await deploy(original, other)
    assert_paused(run, "is new to this run", "'a'")
    assert set(run.steps) == {"a", "b", "night"}


async def test_a_step_that_was_begun_is_missed_too() -> None:
    """Its body may have run."""
    blocked = asyncio.Event()

    async def forever() -> None:
        await blocked.wait()

    async def old(ctx: Context) -> None:
        await ctx.step("charge").run(forever)

    async def moved(ctx: Context) -> None:
        async def one() -> None:
            await ctx.step("charge").run(do, "charge")

        await asyncio.gather(one())

    deployed = [old]

    async def evolving(ctx: Context) -> None:
        await deployed[0](ctx)

    flow: Workflow[None, Any] = Workflow(evolving)
    async with fake_server(flow) as server:
        ran.clear()
        run = server.start(flow)
        port = server.claim(run)
        run.state.steps["charge"] = StepState(
            step_id="charge",
            name="charge",
            kind=KindCode.FUNCTION,
            status=StepCode.RUNNING,
            begun_seq=run.state.next_seq(),
            lease=run.state.lease,
            created_at=server.now,
        )
        assert port.execution is not None
        port.execution.abandon("killed")
        deployed[0] = moved
        server.claim(run)
        await server.until_left(run)
        assert_paused(run, "step 'task[1]/charge' at", "'charge' (begun)")


async def test_a_new_step_at_the_end_of_a_branch_needs_changed_and_changed_says_no() -> None:
    async def branch(ctx: Context, new: bool) -> None:
        await ctx.step("in branch").run(do, "in branch")
        if new and ctx.changed("new"):
            await ctx.step("new").run(do, "new")

    async def old(ctx: Context) -> None:
        await asyncio.gather(branch(ctx, False))
        await ctx.step("after").run(do, "after")
        await ctx.sleep("night", "8h")

    async def new(ctx: Context) -> None:
        await asyncio.gather(branch(ctx, True))
        await ctx.step("after").run(do, "after")
        await ctx.sleep("night", "8h")

    _, run = await deploy(old, new)
    assert run.status is RunStatus.COMPLETED, run.problem
    assert not ran


# --- what must not be taken for divergence ----------------------------------------------------------------------------


async def test_a_first_execution_waits_for_what_is_outside_kagzi(caplog: pytest.LogCaptureFixture) -> None:
    async def patient(ctx: Context) -> list[str]:
        async def slow() -> str:
            await asyncio.sleep(1.5)  # foreign; real time is the subject
            return await ctx.step("slow").run(do, "slow")

        async def late() -> str:
            await ctx.sleep("night", "8h")
            return await ctx.step("late").run(do, "late")

        return list(await asyncio.gather(slow(), late()))

    _, run = await deploy(patient, patient)
    assert run.status is RunStatus.COMPLETED, run.problem
    assert ran == ["late"]
    assert "step 'task[2]/late' is held back" in caplog.text
    assert "waits for something outside Kagzi" in caplog.text


@pytest.mark.parametrize("how", ["timeout", "wait_for"])
@pytest.mark.parametrize("what", ["queue", "wait", "step"])
async def test_a_first_execution_waits_for_a_timer_around_a_wait(how: str, what: str) -> None:
    never: asyncio.Event = asyncio.Event()

    async def impatient(ctx: Context) -> list[str]:
        async def wait() -> object:
            if what == "queue":
                return await asyncio.Queue[int]().get()
            if what == "wait":
                return await ctx.wait_for(Signal("go", int))
            return await ctx.step("hangs").run(never.wait)

        async def limited() -> str:
            with contextlib.suppress(TimeoutError):
                if how == "timeout":
                    async with asyncio.timeout(0.05):
                        await wait()
                else:
                    await asyncio.wait_for(wait(), 0.05)
            return await ctx.step("fallback").run(do, "fallback")

        async def late() -> str:
            await ctx.sleep("a moment", "500ms")  # so that the run does not leave before the timer goes off
            await ctx.sleep("night", "8h")
            return await ctx.step("late").run(do, "late")

        return list(await asyncio.gather(limited(), late()))

    _, run = await deploy(impatient, impatient)
    assert run.status is RunStatus.COMPLETED, run.problem
    assert ran == ["late"]


async def test_a_timer_longer_than_the_run_is_old_explains_nothing() -> None:
    async def new(ctx: Context) -> Any:
        async with asyncio.timeout(365 * 86_400):
            return await charge_in_gather(ctx)

    _, run = await deploy(charged, new)
    assert_paused(run, "step 'task[1]/charge'")


async def test_code_that_waits_for_what_was_given_up_does_not_wait_for_ever() -> None:
    async def racing(ctx: Context) -> None:
        await ctx.race(ctx.wait_for(Signal("go", int)), ctx.step("x").run(do, "x"))
        await ctx.sleep("night", "8h")

    async def waiting(ctx: Context) -> None:
        await ctx.wait_for(Signal("go", int))

    _, run = await deploy(racing, waiting)
    assert_paused(run, "waits for the recorded signal 'go'", "abandoned it", f"{__file__}:")

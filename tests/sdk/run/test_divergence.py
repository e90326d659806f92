"""Code that does not fit the history: the run is paused and says where, instead of doing something else."""

import warnings
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kagzi.core.errors import ErrorKind
from kagzi.core.states import RunStatus
from kagzi.sdk.context import Context
from kagzi.sdk.lint import KagziWarning, findings
from kagzi.sdk.registry import Registry
from kagzi.sdk.workflow import Workflow, workflow

from .fake import FakeRun, FakeServer, fake_server

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
    async with fake_server(flow, kept_runs_max=0, build_id="b2") as server:
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
    assert_paused(run, "won by its branch 'x'")


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


def test_lint_names_what_replay_would_not_survive() -> None:
    import datetime as dt
    import random
    import time
    from uuid import uuid4

    @workflow
    async def careless(ctx: Context) -> object:
        def body() -> float:
            return time.time()  # in a step: fine

        return [
            dt.datetime.now(),
            random.random(),
            uuid4(),
            time.sleep(0),  # noqa: ASYNC251  the subject
            open("x"),  # noqa: ASYNC230, PTH123  the subject
            await ctx.step("x").run(body),
            ctx.now(),
        ]

    found = findings(careless.fn)
    names = ["dt.datetime.now", "random.random", "uuid4", "time.sleep", "open"]
    assert sorted(finding.message.split(": ")[1].split("(")[0] for finding in found) == sorted(names)
    assert all(finding.file == __file__ and f"{__file__}:{finding.line}: " in finding.message for finding in found)
    assert all(
        "Use ctx." in finding.message or "await ctx.sleep" in finding.message or "step" in finding.message
        for finding in found
    )
    with pytest.warns(KagziWarning) as warned:
        Registry([careless])
    assert len(warned) == len(names)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Registry([Workflow(original)])

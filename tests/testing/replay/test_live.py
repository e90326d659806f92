"""Replays that go on beyond the history: bodies run here, and time passes at once."""

import asyncio
from typing import Any

import pytest

from kagzi import (
    ChildError,
    Context,
    InvalidArgument,
    Retry,
    RunStatus,
    Signal,
    StepError,
    StepKind,
    StepStatus,
    current_step,
    workflow,
)
from kagzi.testing import History, RecordedSignal, RecordedStep, Replayer
from kagzi.testing.replay.building import BUILT_AT

PROCEED = Signal("go", str)
bodies: list[str] = []


@pytest.fixture(autouse=True)
def no_bodies() -> None:
    bodies.clear()


def thread_body(text: str) -> str:
    bodies.append(current_step().step_id)
    return text.upper()


async def task_body(text: str) -> str:
    bodies.append(current_step().step_id)
    await asyncio.sleep(0)
    return text.upper()


async def flaky() -> int:
    bodies.append(f"flaky {current_step().attempt}")
    if current_step().attempt < 3:
        raise ConnectionError("not yet")
    return current_step().attempt


@workflow
async def journey(ctx: Context) -> list[Any]:
    begun = ctx.now()
    first = await ctx.step("first").run(thread_body, "a")
    await ctx.sleep("night", "8h")
    second = await ctx.step("second").run(task_body, "b")
    tries = await ctx.step("flaky", retry=Retry.fixed(5, "1h")).run(flaky)
    word = await ctx.wait_for(PROCEED, timeout="1 day", default="nobody")
    return [first, second, tries, word, round((ctx.now() - begun).total_seconds() / 3_600)]


FIRST = RecordedStep(id="first", value="recorded")
NIGHT = RecordedStep(id="night", kind=StepKind.SLEEP)


async def test_the_rest_of_a_run_is_executed_and_time_passes_at_once() -> None:
    replay = await Replayer([journey]).run(History.build(journey, steps=[FIRST, NIGHT]), stubs="live")
    assert (replay.outcome, replay.output) == ("completed", ["recorded", "B", 3, "nobody", 26])
    assert replay.executed == ("second", "flaky", "flaky", "flaky")
    assert bodies == ["second", "flaky 1", "flaky 2", "flaky 3"]
    assert [each.id for each in replay.steps] == ["first", "night"]


async def test_from_a_step_on_everything_is_live() -> None:
    whole = [FIRST, NIGHT, RecordedStep(id="second", value="old"), RecordedStep(id="flaky", value=1)]
    history = History.build(journey, steps=whole)
    replay = await Replayer([journey]).run(history, stubs="live", until="second")
    assert replay.output == ["recorded", "B", 3, "nobody", 26]
    assert replay.executed[0] == "second"
    with pytest.raises(InvalidArgument, match=r"until='third' is not a step of this history\. It has: first, night"):
        await Replayer([journey]).run(history, stubs="live", until="third")


async def test_a_signal_that_came_is_received() -> None:
    came = RecordedSignal(name="go", value="somebody", received_at=BUILT_AT)
    replay = await Replayer([journey]).run(History.build(journey, signals=[came]), stubs="live")
    assert replay.output == ["A", "B", 3, "somebody", 10]


@workflow
async def waits(ctx: Context) -> str:
    return await ctx.wait_for(PROCEED)


async def test_what_never_comes_leaves_the_run_open() -> None:
    replay = await Replayer([waits]).run(History.build(waits), stubs="live")
    assert (replay.outcome, replay.waits_for) == ("open", "signal 'go'")


@workflow
async def small(ctx: Context, number: int) -> int:
    await ctx.sleep("nap", "1h")
    if number < 0:
        raise ValueError("too small")
    return len(await ctx.step("work").run(thread_body, "x" * number))


@workflow
async def large(ctx: Context) -> list[Any]:
    own = ctx.step("own").run(task_body, "x")
    sizes = await ctx.parallel(ctx.child(small, 2), ctx.child(small, 3), own)
    try:
        await ctx.child(small, -1)
    except ChildError as error:
        return [*sizes, error.error.text]
    return []


async def test_children_are_executed_if_their_workflow_is_here() -> None:
    replay = await Replayer([large, small]).run(History.build(large), stubs="live")
    assert (replay.outcome, replay.output) == ("completed", [2, 3, "X", "ValueError: too small"])
    assert replay.executed == ("own",)
    alone = await Replayer([large]).run(History.build(large), stubs="live")
    assert alone.outcome == "open"
    assert "the end of child 'small'" in alone.waits_for


@workflow
async def races(ctx: Context) -> str:
    won = await ctx.race(work=ctx.step("work").run(task_body, "x"), late=ctx.sleep("late", "1h"))
    slow = await ctx.race(sleep=ctx.sleep("nap", "1h"), signal=ctx.wait_for(PROCEED))
    return f"{won.name} {slow.name}"


async def test_races_and_what_was_begun_before() -> None:
    replay = await Replayer([races]).run(History.build(races), stubs="live")
    assert (replay.outcome, replay.output) == ("completed", "work sleep")
    begun = RecordedStep(id="first", status=StepStatus.RUNNING)
    again = await Replayer([journey]).run(History.build(journey, steps=[begun]), stubs="live")
    assert again.output == ["A", "B", 3, "nobody", 34]


@workflow
async def gives_up(ctx: Context) -> str:
    try:
        await ctx.step("flaky", retry=Retry.fixed(2, "1h")).run(flaky)
    except StepError as error:
        return f"{error.attempts} attempts"
    return "never"


async def test_retries_are_those_of_a_server_and_nothing_is_left_running() -> None:
    before = asyncio.all_tasks()
    replay = await Replayer([gives_up]).run(History.build(gives_up, status=RunStatus.RUNNING), stubs="live")
    assert replay.output == "2 attempts"
    assert asyncio.all_tasks() == before

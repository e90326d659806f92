"""The replayer: recorded histories against local code, in process."""

import asyncio
from datetime import UTC, datetime
from typing import Any

from kagzi import Context, ErrorDetail, RunStatus, Signal, StepError, StepKind, StepStatus, Workflow, step, workflow
from kagzi.testing import History, RecordedStep, Replay, Replayer

PROCEED = Signal("go", str)
NEVER = "a body must not run in a replay"


async def replayed(code: Workflow[Any, Any], history: History, **options: Any) -> Replay:
    return await Replayer([code]).run(history, **options)


def body(*_: object) -> Any:
    raise AssertionError(NEVER)


@workflow("order")
async def order(ctx: Context, number: int) -> str:
    price = await ctx.step("price").run(body, number)
    await ctx.sleep("rest", "3 days")
    try:
        await ctx.step("charge").run(body, price)
    except StepError as error:
        return f"{error.error.message} at {ctx.now():%H:%M:%S}"
    word = await ctx.wait_for(PROCEED)
    return f"{price} {word}"


PRICE = RecordedStep(id="price", value="7 EUR")
REST = RecordedStep(id="rest", kind=StepKind.SLEEP)
CHARGE = RecordedStep(id="charge", value="ok")
GONE = RecordedStep(id="go", kind=StepKind.SIGNAL, value="now")


async def test_a_whole_history_comes_to_its_end() -> None:
    history = History.build(order, 1, steps=[PRICE, REST, CHARGE, GONE], status=RunStatus.COMPLETED, output="7 EUR now")
    replay = await replayed(order, history)
    assert (replay.outcome, replay.output, replay.as_recorded, replay.fits) == ("completed", "7 EUR now", True, True)
    assert [(each.id, each.value) for each in replay.steps] == [
        ("price", "7 EUR"), ("rest", None), ("charge", "ok"), ("go", "now"),
    ]  # fmt: skip
    assert replay.executed == ()


async def test_each_step_has_the_line_of_its_call() -> None:
    history = History.build(order, 1, steps=[PRICE, REST, CHARGE, GONE])
    replay = await replayed(order, history)
    first = order.fn.__code__.co_firstlineno
    assert [each.line - first for each in replay.steps] == [2, 3, 5, 8]
    assert {each.file for each in replay.steps} == {__file__}


async def test_a_recorded_failure_is_raised_and_now_is_its_time() -> None:
    at = datetime(2026, 5, 1, 12, 30, tzinfo=UTC)
    failed = RecordedStep(id="charge", error=ErrorDetail(type="Declined", message="no funds"), finished_at=at)
    replay = await replayed(order, History.build(order, 1, steps=[PRICE, REST, failed]))
    assert (replay.outcome, replay.output) == ("completed", "no funds at 12:30:00")
    assert replay.now_values == (at,)


async def test_what_is_not_recorded_is_not_done_and_the_run_is_open() -> None:
    assert (await replayed(order, History.build(order, 1))).waits_for == "step 'price' to be executed"
    replay = await replayed(order, History.build(order, 1, steps=[PRICE]))
    assert (replay.outcome, replay.waits_for, replay.fits) == ("open", "sleep 'rest'", True)
    until = datetime(2026, 1, 4, tzinfo=UTC)
    resting = RecordedStep(id="rest", kind=StepKind.SLEEP, status=StepStatus.RUNNING, wake_at=until)
    replay = await replayed(order, History.build(order, 1, steps=[PRICE, resting]))
    assert (replay.outcome, replay.waits_for) == ("open", "sleep 'rest' until 2026-01-04 00:00:00 UTC")
    replay = await replayed(order, History.build(order, 1, steps=[PRICE, REST, CHARGE]))
    assert (replay.outcome, replay.waits_for) == ("open", "signal 'go'")


@workflow("order")
async def renamed(ctx: Context, number: int) -> str:
    price = await ctx.step("cost").run(body, number)
    await ctx.sleep("rest", "3 days")
    return price


@workflow("order")
async def shortened(ctx: Context, number: int) -> str:
    price = await ctx.step("price").run(body, number)
    await ctx.step("charge").run(body, price)
    return price


async def test_code_that_makes_another_call_diverges_at_its_line() -> None:
    history = History.build(order, 1, steps=[PRICE, REST, CHARGE])
    replay = await replayed(renamed, history)
    divergence = replay.divergence
    assert replay.outcome == "diverged"
    assert divergence is not None
    assert not replay.fits
    assert (divergence.step, divergence.recorded, divergence.actual) == (
        "cost",
        "step 'price'",
        "the code calls 'cost'",
    )
    assert (divergence.file, divergence.line) == (__file__, renamed.fn.__code__.co_firstlineno + 2)
    assert 'if ctx.changed("add-cost"):' in divergence.patch
    assert 'await ctx.step("cost").run(body, number)' in divergence.patch
    assert divergence.patch in divergence.remedy


async def test_code_that_leaves_a_call_out_diverges_where_it_goes_on() -> None:
    replay = await replayed(shortened, History.build(order, 1, steps=[PRICE, REST, CHARGE]))
    divergence = replay.divergence
    assert divergence is not None
    assert (divergence.step, divergence.recorded) == ("rest", "sleep 'rest'")
    assert divergence.line == shortened.fn.__code__.co_firstlineno + 3
    assert 'if not ctx.changed("remove-rest"):' in divergence.patch


@step
async def decorated(number: int) -> int:
    raise AssertionError(NEVER)


@workflow
async def at_once(ctx: Context) -> list[Any]:
    first = await asyncio.gather(
        ctx.step("a").run(body),
        decorated(1),
    )
    return [*first, *await ctx.map("each", [1, 2], decorated), str(ctx.uuid()), ctx.random()]


async def test_calls_that_no_code_of_the_user_awaits_have_their_lines_too() -> None:
    names = ["a", "decorated", "each[0]", "each[1]"]
    history = History.build(at_once, steps=[RecordedStep(id=name, value=number) for number, name in enumerate(names)])
    replay = await replayed(at_once, history)
    first = at_once.fn.__code__.co_firstlineno
    assert replay.outcome == "completed"
    assert [(each.id, each.line - first) for each in replay.steps] == [
        ("a", 3), ("decorated", 4), ("each[0]", 6), ("each[1]", 6),
    ]  # fmt: skip
    again = await replayed(at_once, history)
    assert (again.uuid_values, again.random_values) == (replay.uuid_values, replay.random_values)
    assert again.output == replay.output


@workflow
async def fails(ctx: Context) -> None:
    await ctx.step("a").run(body)
    raise LookupError("nothing there")


async def test_a_function_that_fails() -> None:
    error = ErrorDetail(type="LookupError", message="nothing there")
    history = History.build(fails, steps=[RecordedStep(id="a")], status=RunStatus.FAILED, error=error)
    replay = await replayed(fails, history)
    assert (replay.outcome, replay.as_recorded) == ("failed", True)
    assert replay.error is not None
    assert replay.error.text == "LookupError: nothing there"


async def test_nothing_is_left_running() -> None:
    before = asyncio.all_tasks()
    await replayed(order, History.build(order, 1, steps=[PRICE]))
    await replayed(at_once, History.build(at_once))
    assert asyncio.all_tasks() == before


@workflow("at-once")
async def at_once_otherwise(ctx: Context) -> list[Any]:
    return await ctx.parallel([
        ctx.step("a").run(body),
        ctx.step("b").run(body),
    ])  # fmt: skip


async def test_a_call_that_a_branch_is_made_of_is_named_by_its_own_line() -> None:
    steps = [RecordedStep(id="a", begun_seq=1, seq=3), RecordedStep(id="decorated", begun_seq=2, seq=4)]
    divergence = (await replayed(at_once_otherwise, History.build(at_once, steps=steps))).divergence
    assert divergence is not None
    line = at_once_otherwise.fn.__code__.co_firstlineno + 4
    assert (divergence.step, divergence.line) == ("b", line)
    assert f"step 'b' at {__file__}:{line} is new to this run" in divergence.message, "what a worker says, too"

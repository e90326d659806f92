"""Runs that are written down by hand: what a RecordedRun takes, and what it says of a workflow that does not fit."""

import asyncio
from datetime import UTC, datetime

import pytest

from kagzi import Context, ErrorDetail, InvalidArgument, PreconditionFailed, Signal, StepError, StepKind, workflow
from kagzi.testing import RecordedRun, Replayer

answer = Signal("answer", int)


async def double(number: int) -> int:
    return 2 * number


@workflow
async def both(ctx: Context, number: int) -> list[str]:
    ended: list[str] = []

    async def call(name: str) -> None:
        await ctx.step(name).run(double, number)
        ended.append(f"{name} {ctx.now():%S}")

    await ctx.parallel(call("one"), call("other"))
    return ended


@workflow
async def careful(ctx: Context, number: int) -> str:
    try:
        return str(await ctx.step("double").run(double, number))
    except StepError as error:
        return f"{error.error.text} {error.attempts} {error.error.exhausted}"


@workflow
async def asks(ctx: Context) -> str:
    return f"{await ctx.wait_for(answer)} at {ctx.now()} as {ctx.workflow_id} of {dict(ctx.labels)}"


def test_the_order_says_what_ended_first() -> None:
    run = RecordedRun(both, 2)
    run.step("parallel[0]/one", returns=4, at="2s", order=(1, 4))
    run.step("parallel[1]/other", returns=4, at="1s", order=(2, 3))
    assert run.replay().output == ["other 01", "one 02"]
    run = RecordedRun(both, 2)
    run.step("parallel[0]/one", returns=4, at="1s")
    run.step("parallel[1]/other", returns=4, at="2s")
    assert run.replay().output == ["one 01", "other 02"]


def test_calls_that_say_nothing_come_after_all_that_stands_before_them() -> None:
    run = RecordedRun(careful, 2)
    run.step("a", order=(5, 9))
    run.step("b", order=(6, 7))
    run.step("c")
    run.step("d", order=(10, 12))
    run.step("e", begun=True)
    steps = run.history().steps
    assert [(step.id, step.begun_seq, step.seq) for step in steps] == [
        ("a", 1, 4), ("b", 2, 3), ("c", 5, 6), ("d", 7, 8), ("e", 9, 0),
    ]  # fmt: skip


def test_an_exception_is_recorded_as_a_step_that_raised_it_would_be() -> None:
    run = RecordedRun(careful, 1)
    run.step("double", raises=ConnectionError("no line"), exhausted=True, attempts=3)
    assert run.replay().output == "ConnectionError: no line 3 True"
    run = RecordedRun(careful, 1)
    run.step("double", raises=ErrorDetail(type="shop.Declined", message="no"))
    assert run.replay().output == "Declined: no 1 False"


def test_times_are_durations_since_the_start_or_times() -> None:
    facts = {"workflow_id": "order-1", "labels": {"team": "a"}, "created_at": datetime(2026, 3, 1, tzinfo=UTC)}
    for at in ("1h", "2026-03-01T01:00:00Z", datetime(2026, 3, 1, 1, tzinfo=UTC)):
        run = RecordedRun(asks, **facts)  # type: ignore[arg-type]
        run.signal("answer", 42, at=at)
        assert run.replay().output == "42 at 2026-03-01 01:00:00+00:00 as order-1 of {'team': 'a'}"
    with pytest.raises(InvalidArgument, match="created_at='soon' is not a time"):
        RecordedRun(asks, created_at="soon")
    with pytest.raises(InvalidArgument, match="has no time zone"):
        RecordedRun(asks, created_at="2026-03-01T00:00:00")


def test_other_arguments_are_named() -> None:
    run = RecordedRun(careful, 2)
    run.step("double", args=[3], returns=6)
    with pytest.raises(
        AssertionError, match=r"step 'double' is called with args=\[2\], but was called with args=\[3\]"
    ):
        run.replay()


def test_a_workflow_that_does_not_fit_is_shown_with_its_line_and_the_remedy() -> None:
    run = RecordedRun(careful, 2)
    run.step("triple", returns=6)
    with pytest.raises(AssertionError, match=r"test_recorded.py:\d+: .*'double'.*'triple'") as refused:
        run.replay()
    assert "ctx.changed(" in str(refused.value)


def test_a_run_without_its_end_is_open() -> None:
    assert RecordedRun(asks).replay().outcome == "open"
    run = RecordedRun(careful, 2)
    run.step("double", begun=True)
    assert run.replay().outcome == "open"
    run = RecordedRun(asks)
    run.abandoned(StepKind.SLEEP, "nap")
    assert run.replay().outcome == "open"


def test_a_call_stands_there_once() -> None:
    run = RecordedRun(careful, 2)
    run.step("double", returns=4)
    with pytest.raises(InvalidArgument, match=r"'double' is there twice\. The second one is 'double#2'"):
        run.step("double", returns=4)


async def test_in_an_event_loop_it_says_what_to_write_instead() -> None:
    run = RecordedRun(careful, 2)
    run.step("double", returns=4)
    with pytest.raises(PreconditionFailed, match="await Replayer"):
        run.replay()
    assert (await Replayer([careful]).run(run.history())).output == "4"
    assert (await asyncio.to_thread(run.replay)).output == "4"

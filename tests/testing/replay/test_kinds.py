"""Everything a workflow may do, replayed: cancelled, continued, patched, raced; encoded values; long histories; code
that waits for what does not come."""

import asyncio
import threading
from dataclasses import replace
from typing import Any, cast

import pytest

from kagzi import (
    ChildError,
    Context,
    ErrorDetail,
    ErrorKind,
    InvalidArgument,
    Kagzi,
    PreconditionFailed,
    RunStatus,
    Signal,
    StepKind,
    StepStatus,
    Worker,
    workflow,
)
from kagzi.crypto import AesGcm
from kagzi.testing import History, RecordedStep, Replay, Replayer
from kagzi.testing.replay.building import BUILT_AT
from tests.support.timeouts import LOADED_MACHINE

NUMBER = Signal("number", int)


def body(*_: object) -> Any:
    raise AssertionError("a body must not run in a replay")


@workflow
async def tidies(ctx: Context) -> str:
    try:
        await ctx.wait_for(NUMBER)
    finally:
        async with ctx.cleanup():
            await ctx.step("tidy").run(body)
    return "never"


WAIT = RecordedStep(id="number", kind=StepKind.SIGNAL, status=StepStatus.RUNNING)


async def test_a_cancelled_run_comes_to_its_cancellation() -> None:
    error = ErrorDetail(kind=ErrorKind.CANCELLED, message="enough")
    history = History.build(
        tidies, steps=[WAIT, RecordedStep(id="tidy")], status=RunStatus.CANCELLED, error=error, cancel_reason="enough"
    )
    replay = await Replayer([tidies]).run(history)
    assert (replay.outcome, replay.as_recorded) == ("cancelled", True)
    assert replay.error is not None
    assert replay.error.message == "enough"
    assert [each.id for each in replay.steps] == ["number", "tidy"]


async def test_a_run_that_is_being_cancelled_and_one_that_was_terminated() -> None:
    going = History.build(tidies, steps=[WAIT], cancel_requested=True)
    assert (await Replayer([tidies]).run(going)).waits_for == "step 'tidy' to be executed"
    terminated = ErrorDetail(kind=ErrorKind.TERMINATED, message="killed")
    gone = History.build(tidies, steps=[WAIT], status=RunStatus.CANCELLED, error=terminated)
    replay = await Replayer([tidies]).run(gone)
    assert (replay.outcome, replay.waits_for, replay.as_recorded) == ("open", "signal 'number'", None)


async def test_a_run_that_failed_in_its_cleanup_was_told_that_it_is_cancelled() -> None:
    failed = RecordedStep(id="tidy", error=ErrorDetail(type="OSError", message="full"))
    history = History.build(
        tidies,
        steps=[WAIT, failed],
        status=RunStatus.FAILED,
        error=ErrorDetail(type="OSError", message="full"),
        cancel_requested=True,
    )
    replay = await Replayer([tidies]).run(history)
    assert replay.outcome == "failed"


@workflow
async def counts(ctx: Context, number: int) -> str:
    if number:
        await ctx.step("count").run(body)
        ctx.continue_as_new(number - 1)
    return "done"


async def test_a_run_that_continued_as_new() -> None:
    replay = await Replayer([counts]).run(History.build(counts, 3, steps=[RecordedStep(id="count")]))
    assert (replay.outcome, replay.output) == ("continued", 2)


@workflow
async def patched(ctx: Context) -> list[Any]:
    new = ctx.changed("faster")
    return [new, await ctx.step("fast" if new else "slow").run(body)]


async def test_patches_take_the_code_that_is_recorded() -> None:
    new = [RecordedStep(id="changed:faster", kind=StepKind.PATCH), RecordedStep(id="fast", value=1)]
    assert (await Replayer([patched]).run(History.build(patched, steps=new))).output == [True, 1]
    old = [RecordedStep(id="slow", value=2)]
    assert (await Replayer([patched]).run(History.build(patched, steps=old))).output == [False, 2]


@workflow
async def raced(ctx: Context) -> str:
    won = await ctx.race(quick=ctx.step("quick").run(body), slow=ctx.sleep("slow", "1h"))
    return f"{won.name} {won.value}"


RACE = RecordedStep(id="race", kind=StepKind.RACE, value="quick", begun_seq=4, seq=4)
QUICK = RecordedStep(id="quick", value=7, begun_seq=1, seq=3)
SLOW = RecordedStep(id="slow", kind=StepKind.SLEEP, status=StepStatus.ABANDONED, begun_seq=2, seq=4)


async def test_races_have_their_winners_and_a_winner_that_is_gone_is_a_divergence() -> None:
    assert (await Replayer([raced]).run(History.build(raced, steps=[QUICK, SLOW, RACE]))).output == "quick 7"
    other = replace(RACE, value="gone")
    replay = await Replayer([raced]).run(History.build(raced, steps=[QUICK, SLOW, other]))
    assert replay.divergence is not None
    assert "won by branch 'gone'" in replay.divergence.message
    assert replay.divergence.line == raced.fn.__code__.co_firstlineno + 2


@workflow
async def parent(ctx: Context) -> Any:
    try:
        return await ctx.child(counts, 1)
    except ChildError as error:
        return error.error.text


async def test_children_give_their_recorded_results_and_errors() -> None:
    done = RecordedStep(id="counts", kind=StepKind.CHILD, value="done")
    assert (await Replayer([parent]).run(History.build(parent, steps=[done]))).output == "done"
    error = ErrorDetail(subject="run", cause=ErrorDetail(type="ValueError", message="no"))
    failed = RecordedStep(id="counts", kind=StepKind.CHILD, error=error)
    assert (await Replayer([parent]).run(History.build(parent, steps=[failed]))).output == "ValueError: no"
    begun = RecordedStep(id="counts", kind=StepKind.CHILD, status=StepStatus.RUNNING)
    replay = await Replayer([parent]).run(History.build(parent, steps=[begun]))
    assert (replay.outcome, replay.waits_for) == ("open", "the end of child 'counts'")


@workflow
async def takes_number(ctx: Context) -> int:
    return await ctx.wait_for(NUMBER)


async def test_a_signal_that_does_not_fit_is_a_divergence_at_the_wait() -> None:
    steps = [RecordedStep(id="number", kind=StepKind.SIGNAL, value="seven")]
    replay = await Replayer([takes_number]).run(History.build(takes_number, steps=steps))
    assert replay.divergence is not None
    assert "does not fit" in replay.divergence.message
    assert replay.divergence.line == takes_number.fn.__code__.co_firstlineno + 2


async def test_the_kind_of_a_step_has_changed() -> None:
    replay = await Replayer([takes_number]).run(History.build(takes_number, steps=[RecordedStep(id="number", value=1)]))
    assert replay.divergence is not None
    assert "is a signal in the code, but this run recorded it as a function" in replay.divergence.message


@workflow
async def rebuilt(ctx: Context) -> Any:
    await asyncio.gather(ctx.step("one").run(body), ctx.step("three").run(body))


async def test_code_that_waits_without_having_reached_what_is_recorded_has_diverged() -> None:
    steps = [RecordedStep(id="one", status=StepStatus.RUNNING, begun_seq=1), RecordedStep(id="two", begun_seq=2, seq=3)]
    replay = await Replayer([rebuilt]).run(History.build(rebuilt, steps=steps))
    assert replay.divergence is not None
    assert replay.divergence.recorded in ("step 'one'", "step 'two'")


# --- until ------------------------------------------------------------------------------------------------------------


@workflow
async def three(ctx: Context) -> str:
    for _ in range(3):
        await ctx.step("a").run(body)
    return "end"


async def test_a_replay_stops_at_a_step() -> None:
    steps = [RecordedStep(id=name) for name in ("a", "a#2", "a#3")]
    history = History.build(three, steps=steps, status=RunStatus.COMPLETED, output="end")
    replay = await Replayer([three]).run(history, until="a#2")
    assert (replay.outcome, [each.id for each in replay.steps], replay.as_recorded) == ("until", ["a"], None)
    with pytest.raises(
        InvalidArgument, match=r"until='b': the code came to its end \(completed\).*It made: a, a#2, a#3"
    ):
        await Replayer([three]).run(history, until="b")
    with pytest.raises(InvalidArgument, match="must be"):
        await Replayer([three]).run(history, stubs=cast("Any", "alive"))


# --- codecs -----------------------------------------------------------------------------------------------------------


@workflow
async def secret(ctx: Context, word: str) -> str:
    return f"{await ctx.step('say').run(str.upper, word)} {await ctx.wait_for(NUMBER)}"


async def test_encoded_histories_need_their_codec() -> None:
    codec = AesGcm(keys={"k": b"0" * 32})
    async with Kagzi.connect(":memory:", codec=codec) as client:
        run = await client.start(secret, "hush")
        await run.signal(NUMBER, 7)
        async with Worker(":memory:", workflows=[secret], codec=codec):
            assert await run.result(timeout=LOADED_MACHINE) == "HUSH 7"
        history = await History.fetch(client, run)
    assert b"hush" not in history.to_bytes()
    replay = await Replayer([secret]).run(history)
    assert (replay.output, replay.as_recorded) == ("HUSH 7", True)
    assert [each.value for each in replay.steps] == ["HUSH", 7]
    lines = history.to_bytes().splitlines(keepends=True)
    plain = History.read(lines, "a test", namespace="default")
    assert (await Replayer([secret], codec=codec).run(plain)).output == "HUSH 7"
    with pytest.raises(PreconditionFailed, match=r"cannot be decoded.*codec="):
        await Replayer([secret]).run(plain)


# --- what takes long, or for ever -------------------------------------------------------------------------------------


@workflow
async def long(ctx: Context, count: int) -> int:
    return sum([await ctx.step("add").run(body) for _ in range(count)])


@workflow
async def wide(ctx: Context, count: int) -> int:
    return sum(await ctx.map("add", range(count), body))


async def test_histories_of_ten_thousand_steps() -> None:
    count = 10_000
    ids = ["add", *(f"add#{number}" for number in range(2, count + 1))]
    history = History.build(long, count, steps=[RecordedStep(id=each, value=1) for each in ids])
    assert (await Replayer([long]).run(history)).output == count
    ids = [f"add[{number}]" for number in range(count)]
    steps = [RecordedStep(id=each, value=1, begun_seq=n + 1, seq=count + n + 1) for n, each in enumerate(ids)]
    assert (await Replayer([wide]).run(History.build(wide, count, steps=steps))).output == count


@workflow
async def hangs(ctx: Context, how: str) -> None:
    match how:
        case "future":
            await asyncio.get_running_loop().create_future()
        case "sleep":
            await asyncio.sleep(1_000)
        case "spin":
            while True:  # noqa: ASYNC110  that is the mistake
                await asyncio.sleep(0)
        case _:
            async with asyncio.timeout(1_000):
                await ctx.wait_for(NUMBER)


@pytest.mark.parametrize("how", ["future", "sleep", "spin", "timer"])
@pytest.mark.parametrize("status", [RunStatus.RUNNING, RunStatus.FAILED])
async def test_code_that_waits_for_what_does_not_come_is_open(how: str, status: RunStatus) -> None:
    before, threads = asyncio.all_tasks(), threading.active_count()
    replay: Replay = await Replayer([hangs], outside_wait="300ms").run(History.build(hangs, how, status=status))
    assert replay.outcome == "open"
    assert replay.waits_for
    assert asyncio.all_tasks() == before
    assert threading.active_count() == threads


@workflow
async def in_order(ctx: Context) -> list[Any]:
    order: list[Any] = []

    async def one(name: str) -> None:
        order.append((await ctx.step(name).run(body), ctx.now().second))

    await ctx.parallel(one(name) for name in "abc")
    return order


async def test_results_are_delivered_in_their_recorded_order_at_their_times() -> None:
    """Not in that of the calls."""
    steps = [
        RecordedStep(
            id=f"parallel[{place}]/{name}",
            value=name,
            begun_seq=place + 1,
            seq=seq,
            finished_at=BUILT_AT.replace(second=10 * seq),
        )
        for place, (name, seq) in enumerate([("a", 5), ("b", 4), ("c", 3)])
    ]
    replay = await Replayer([in_order]).run(History.build(in_order, steps=steps))
    assert replay.output == [["c", 30], ["b", 40], ["a", 50]]
    assert [moment.second for moment in replay.now_values] == [30, 40, 50]

"""Steps as a timeline draws them: any stretch of a run, by columns, without what the steps hold."""

import msgspec
import pytest

from kagzi.core.error_details import ErrorDetail
from kagzi.core.events import EventKind
from kagzi.core.pages.pauses import Pause
from kagzi.core.pages.timeline import TIMELINE_ATTEMPTS, Timeline, TimelineQuery, TimelineStep
from kagzi.core.records import RunKey
from kagzi.core.retry.policy import RetryPolicy
from kagzi.core.run.outcomes import Begun, Recorded, RetryScheduled, RunClosed, StepFailed, TimerSet
from kagzi.core.states import StepKind, StepStatus

from .verbs import (
    CLEANUP_US,
    LEASE_US,
    StoreHarness,
    begin,
    complete,
    complete_run,
    continue_as,
    diverged,
    fail,
    hand_back,
    sleep,
    the,
    wait_signal,
)

OFTEN = RetryPolicy(maximum_attempts=100, initial_interval_ms=1_000, maximum_interval_ms=1_000, jitter=0.0)
LONG = ErrorDetail(type="shop.Declined", message="first line\nsecond line", traceback="long", non_retryable=True)


async def timeline(harness: StoreHarness, run: RunKey, **query: object) -> Timeline:
    answer = await harness.store.timeline(run, TimelineQuery(**query))  # pyright: ignore[reportArgumentType]
    assert answer is not None
    return answer


def ids(answer: Timeline) -> list[str]:
    return [step.step_id for step in answer.steps]


async def test_it_reads_any_stretch_of_a_run(harness: StoreHarness) -> None:
    holding = await harness.running()
    for number in range(10):
        the(Begun, await harness.do(begin(holding, f"s{number}", name="odd" if number % 2 else "even")))
        the(Recorded, await harness.do(complete(holding, f"s{number}", "x" * 1_000)))
    run = holding.run
    everything = await timeline(harness, run)
    assert ids(everything) == [f"s{number}" for number in reversed(range(10))]
    assert (everything.older, everything.newer) == (False, False)
    seqs = {step.step_id: step.begun_seq for step in everything.steps}

    newest = await timeline(harness, run, size=3)
    assert (ids(newest), newest.older, newest.newer) == (["s9", "s8", "s7"], True, False)
    before = await timeline(harness, run, before=seqs["s7"], size=3)
    assert (ids(before), before.older, before.newer) == (["s6", "s5", "s4"], True, True)
    oldest = await timeline(harness, run, before=seqs["s2"], size=3)
    assert (ids(oldest), oldest.older, oldest.newer) == (["s1", "s0"], False, True)
    after = await timeline(harness, run, after=seqs["s7"], size=3)
    assert (ids(after), after.older, after.newer) == (["s8", "s9"], True, False)
    first = await timeline(harness, run, after=0, size=2)
    assert (ids(first), first.older, first.newer) == (["s0", "s1"], False, True)

    around = await timeline(harness, run, around="s5", size=3)
    assert (ids(around), around.older, around.newer) == (["s6", "s5", "s4"], True, True)
    at_the_end = await timeline(harness, run, around="s9", size=4)
    assert (ids(at_the_end), at_the_end.older, at_the_end.newer) == (["s9", "s8", "s7", "s6"], True, False)
    assert ids(await timeline(harness, run, around="s0", size=4)) == ["s1", "s0"]
    assert not (await timeline(harness, run, around="no-such-step")).knows_around
    assert ids(await timeline(harness, run, name="odd", size=2)) == ["s9", "s7"]

    assert await harness.store.timeline(RunKey("other", run.run_id), TimelineQuery()) is None
    assert await harness.store.timeline(RunKey("default", "no-run"), TimelineQuery()) is None


async def test_a_step_is_its_columns(harness: StoreHarness) -> None:
    holding = await harness.running()
    began = harness.now
    the(Begun, await harness.do(begin(holding, "charge", retry=OFTEN, parallel_group_id="group")))
    harness.clock.advance(s=1)
    the(RetryScheduled, await harness.do(fail(holding, "charge")))
    failed = harness.now
    harness.clock.advance(s=5)
    again = harness.now
    the(Begun, await harness.do(begin(holding, "charge", 2)))
    seq = the(StepFailed, await harness.do(fail(holding, "charge", LONG, attempt=2))).seq
    nap = the(TimerSet, await harness.do(sleep(holding, "nap", s=60)))
    the(TimerSet, await harness.do(wait_signal(holding, "approved")))
    child = await harness.child(holding)

    steps = {step.step_id: step for step in (await timeline(harness, holding.run)).steps}
    assert steps["charge"] == TimelineStep(
        step_id="charge",
        name="charge",
        kind=StepKind.FUNCTION,
        status=StepStatus.FAILED,
        begun_seq=3,
        created_at=began,
        attempt=2,
        seq=seq,
        started_at=again,
        finished_at=again,
        attempts=((began, failed, "worker-1"),),
        error="Declined: first line",
        parallel_group_id="group",
        worker_id="worker-1",
    )
    assert (steps["nap"].kind, steps["nap"].wake_at) == (StepKind.SLEEP, nap.wake_at)
    assert (steps["approved"].kind, steps["approved"].status) == (StepKind.SIGNAL, StepStatus.RUNNING)
    assert steps["child"].child_run_id == child.run_id

    assert ids(await timeline(harness, holding.run, kinds=(StepKind.SLEEP, StepKind.CHILD))) == ["child", "nap"]
    assert ids(await timeline(harness, holding.run, statuses=(StepStatus.FAILED,))) == ["charge"]
    assert ids(await timeline(harness, holding.run, statuses=(StepStatus.ABANDONED,))) == []
    the(RunClosed, await harness.do(complete_run(holding)))
    ended = await timeline(harness, holding.run, statuses=(StepStatus.ABANDONED,))
    assert ids(ended) == ["child", "approved", "nap"]  # what was open when its run ended
    assert {step.status for step in ended.steps} == {StepStatus.ABANDONED}
    assert ids(await timeline(harness, holding.run, statuses=(StepStatus.RUNNING,))) == []


@pytest.mark.parametrize("attempts", [TIMELINE_ATTEMPTS + 5])
async def test_of_many_attempts_it_tells_the_latest(harness: StoreHarness, attempts: int) -> None:
    holding = await harness.running()
    times: list[tuple[int, int, str]] = []
    for attempt in range(1, attempts + 1):
        the(Begun, await harness.do(begin(holding, "charge", attempt, retry=OFTEN)))
        began = harness.now
        harness.clock.advance(s=0.5)
        the(RetryScheduled, await harness.do(fail(holding, "charge", attempt=attempt)))
        times.append((began, harness.now, "worker-1"))
        harness.clock.advance(s=1)
    (step,) = (await timeline(harness, holding.run)).steps
    assert step.attempts == tuple(times[-TIMELINE_ATTEMPTS:])
    assert (step.attempt, step.status) == (attempts + 1, StepStatus.PENDING)


# --- pauses -----------------------------------------------------------------------------------------------------------


async def pauses(harness: StoreHarness, run: RunKey) -> list[Pause]:
    return list((await timeline(harness, run)).pauses)


async def test_it_tells_when_the_run_was_paused_and_why(harness: StoreHarness) -> None:
    holding = await harness.running()
    run = holding.run

    def later() -> int:
        return harness.clock.advance(s=1)

    requested_at = later()
    await harness.pause(run)
    reason = "wait a little"
    assert await pauses(harness, run) == [Pause(started_at=requested_at, finished_at=None, reason=reason)]
    later()
    the(RunClosed, await harness.do(hand_back(holding)))
    first = Pause(started_at=requested_at, finished_at=later(), reason=reason)
    await harness.resume(run)
    await harness.resume(run)  # a lost answer
    assert await pauses(harness, run) == [first]

    problem = diverged(await harness.hold(run))
    refused_at = later()
    await harness.do(problem)
    second = Pause(started_at=refused_at, finished_at=None, reason=problem.problem.message)
    assert await pauses(harness, run) == [first, second]
    page = await harness.store.events_of(run, 0, 100)
    assert page is not None
    kinds = [EventKind.RUN_PAUSED, EventKind.RUN_RESUMED, EventKind.RUN_PAUSED]
    assert [(event.kind, event.at) for event in page.events] == list(
        zip(kinds, [requested_at, first.finished_at, refused_at], strict=True)
    )
    repaired_at = later()
    assert await harness.new_build("build-2")
    assert (await pauses(harness, run))[1:] == [msgspec.structs.replace(second, finished_at=repaired_at)]
    await harness.do(diverged(await harness.hold(run, build_id="build-2"), "build-2"))
    cancelled = later()
    await harness.cancel(run)
    later()
    assert (await pauses(harness, run))[2].finished_at == cancelled


async def test_what_no_person_paused_is_told_too(harness: StoreHarness) -> None:
    lost = await harness.running()
    harness.clock.advance(us=LEASE_US + CLEANUP_US)
    await harness.fire(claim_cap=1)
    [pause] = await pauses(harness, lost.run)
    assert (pause.started_at, pause.finished_at) == (harness.now, None)
    assert "lost its worker" in pause.reason

    before = await harness.running()
    await harness.pause(before.run)
    after = RunKey(before.run.namespace, harness.ids.run_id(harness.now))
    the(RunClosed, await harness.do(continue_as(before, after.run_id)))
    assert [(each.started_at, each.finished_at) for each in await pauses(harness, after)] == [(harness.now, None)]
    assert [each.finished_at for each in await pauses(harness, before.run)] == [harness.now]

"""A signal's value that does not fit pauses its run; then it is replaced or dropped, and nothing of that is lost or
done twice."""

import pytest

from kagzi.core.error_details import ErrorCode, ErrorDetail
from kagzi.core.events import EventKind
from kagzi.core.records import RunKey, RunLease
from kagzi.core.run.commands import SignalReplacement
from kagzi.core.run.misfits import Misfit, problem_of
from kagzi.core.run.outcomes import Fetched, Parked, SignalBound, TimerSet
from kagzi.core.states import RunStatus, StepStatus
from kagzi.store.protocol import Signalled, SignalReplaced

from .test_events import events
from .verbs import (
    StoreHarness,
    begin,
    by_id,
    complete,
    complete_run,
    continue_as,
    diverged,
    fail_run,
    fetch,
    hand_back,
    park,
    payload,
    refused,
    sleep,
    the,
    wait_signal,
)

K = EventKind


def problem(seq: int, step_id: str = "approved", name: str = "approved") -> ErrorDetail:
    misfit = Misfit(signal=name, step_id=step_id, seq=seq, expected="int", why="Expected int, got str")
    return problem_of(misfit, "flow.py:7")


async def change(
    harness: StoreHarness, run: RunKey, value: str | None, name: str = "approved", request_id: str = ""
) -> object:
    """None drops."""
    wanted = SignalReplacement(
        name=name, payload=None if value is None else payload(value), request_id=request_id or harness.ids.token()
    )
    outcome, harness.effects = await harness.store.replace_signal(
        "default", run_id=run.run_id, change=wanted, now=harness.now
    )
    return outcome


async def paused_by_signal(harness: StoreHarness, *, early: bool = False, s: float | None = None) -> RunLease:
    """A run whose worker could not read the signal: it came before the wait (`early`), or after."""
    holding = await harness.running()
    if early:
        await harness.signal(holding.run, value="wrong", request_id="first")
        seq = the(SignalBound, await harness.do(wait_signal(holding, s=s))).seq
    else:
        the(TimerSet, await harness.do(wait_signal(holding, s=s)))
        await harness.signal(holding.run, value="wrong", request_id="first")
        (step,) = the(Fetched, await harness.do(fetch(holding))).results
        seq = step.seq
    await harness.do(diverged(holding, problem=problem(seq)))
    record = await harness.run(holding.run)
    assert record.status is RunStatus.PAUSED
    assert record.problem is not None
    assert record.problem.subject_id == "approved"
    return holding


@pytest.mark.parametrize("early", [False, True])
async def test_a_replaced_value_is_what_the_next_holder_gets(harness: StoreHarness, early: bool) -> None:
    old = await paused_by_signal(harness, early=early)
    before = (await harness.steps(old.run))["approved"]
    harness.clock.advance(s=1)
    replaced = await change(harness, old.run, "right", request_id="second")
    assert replaced == SignalReplaced(old.run, RunStatus.PENDING, resumed=True)
    record = await harness.run(old.run)
    assert (record.status, record.problem) == (RunStatus.PENDING, None)
    claimed = await harness.claim_one()
    step = by_id(claimed.history.steps)["approved"]
    assert (step.status, step.output, step.at) == (StepStatus.COMPLETED, payload("right"), harness.now)
    assert step.seq > before.seq
    seen = (await harness.steps(old.run))["approved"]
    (rejected,) = seen.attempts
    assert "'second'" in rejected.error.message
    assert rejected.error.metadata["replaced"] == "second"
    reported = [event for event in await events(harness, old.run) if event.kind is not K.SIGNAL_AWAITED]
    assert [(event.kind, event.attempt, event.output) for event in reported] == [
        (K.SIGNAL_RECEIVED, 1, None),
        (K.RUN_PAUSED, 0, None),
        (K.SIGNAL_REJECTED, 1, None),
        (K.SIGNAL_RECEIVED, 2, payload("right")),
        (K.RUN_RESUMED, 0, None),
    ]
    later = await events(harness, old.run, after=before.seq)
    assert [event.seq for event in later] == [event.seq for event in reported[1:]]


@pytest.mark.parametrize("early", [False, True])
async def test_a_dropped_value_leaves_the_wait_open(harness: StoreHarness, early: bool) -> None:
    old = await paused_by_signal(harness, early=early)
    replaced = await change(harness, old.run, None)
    assert replaced == SignalReplaced(old.run, RunStatus.PENDING, resumed=True)
    new = await harness.hold(old.run)
    the(TimerSet, await harness.do(wait_signal(new)))
    the(Parked, await harness.do(park(new, "approved")))
    assert (await harness.signal(old.run, value="right")).delivered
    claimed = await harness.claim_one()
    assert by_id(claimed.history.steps)["approved"].output == payload("right")
    assert [event.kind for event in await events(harness, old.run)][-5:] == [
        K.SIGNAL_RECEIVED,
        K.RUN_PAUSED,
        K.SIGNAL_REJECTED,
        K.RUN_RESUMED,
        K.SIGNAL_RECEIVED,
    ]


async def test_a_wait_whose_value_was_dropped_still_times_out(harness: StoreHarness) -> None:
    old = await paused_by_signal(harness, s=60)
    await change(harness, old.run, None)
    new = await harness.hold(old.run)
    the(Parked, await harness.do(park(new, "approved")))
    harness.clock.advance(s=60)
    await harness.fire()
    step = by_id((await harness.claim_one()).history.steps)["approved"]
    assert step.status is StepStatus.FAILED
    assert step.error is not None
    assert step.error.code is ErrorCode.TIMEOUT


async def test_the_next_value_that_was_kept_takes_the_place_of_a_dropped_one(harness: StoreHarness) -> None:
    old = await paused_by_signal(harness)
    await harness.signal(old.run, value="second")
    await harness.signal(old.run, value="third")
    await change(harness, old.run, None)
    new = await harness.hold(old.run)
    assert (await harness.steps(old.run))["approved"].output == payload("second")
    bound = the(SignalBound, await harness.do(wait_signal(new, step_id="approved#2")))
    assert bound.payload == payload("third")


async def test_repeated_it_is_done_once(harness: StoreHarness) -> None:
    old = await paused_by_signal(harness)
    await harness.signal(old.run, value="second")
    await change(harness, old.run, None, request_id="drop")
    before = await harness.picture(old.run)
    again = await change(harness, old.run, None, request_id="drop")
    assert again == SignalReplaced(old.run, RunStatus.PENDING, resumed=False)
    assert await harness.picture(old.run) == before
    first = await harness.signal(old.run, value="wrong", request_id="first")
    assert first == Signalled(old.run, delivered=True), "the value that was dropped does not come again"
    assert await harness.picture(old.run) == before


async def test_a_request_id_is_for_one_signal(harness: StoreHarness) -> None:
    old = await paused_by_signal(harness)
    error = refused(await change(harness, old.run, "right", request_id="first"), ErrorCode.CONFLICT)
    assert (error.subject, error.subject_id) == ("request_id", "first")
    refused(await change(harness, old.run, None, request_id="first"), ErrorCode.CONFLICT)
    assert (await harness.run(old.run)).status is RunStatus.PAUSED


async def test_what_code_has_received_stays_as_it_is(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.signal(holding.run, value="taken")
    await harness.do(wait_signal(holding))
    before = await harness.picture(holding.run)
    for value in ("other", None):
        error = refused(await change(harness, holding.run, value), ErrorCode.PRECONDITION_FAILED)
        assert "kagzi fork" in error.message
        assert (error.subject, error.subject_id) == ("signal", "approved")
    await harness.do(hand_back(holding))
    await harness.pause(holding.run)
    refused(await change(harness, holding.run, "other"), ErrorCode.PRECONDITION_FAILED)
    assert (await harness.steps(holding.run)) == before[1]


async def test_nothing_that_could_be_replaced(harness: StoreHarness) -> None:
    old = await paused_by_signal(harness)
    error = refused(await change(harness, old.run, "x", name="other"), ErrorCode.PRECONDITION_FAILED)
    assert "no signal 'other'" in error.message
    await harness.terminate(old.run)
    refused(await change(harness, old.run, "x"), ErrorCode.PRECONDITION_FAILED)
    wanted = SignalReplacement(name="approved", payload=payload("x"), request_id="r")
    nobody = harness.ids.run_id(harness.now)
    for namespace, run_id in (("default", nobody), ("elsewhere", old.run.run_id)):
        outcome, _ = await harness.store.replace_signal(namespace, run_id=run_id, change=wanted, now=harness.now)
        assert outcome is None


async def test_a_value_that_nobody_waits_for_yet_is_replaced_in_its_place(harness: StoreHarness) -> None:
    holding = await harness.running()
    for value in ("one", "two"):
        await harness.signal(holding.run, value=value)
    replaced = await change(harness, holding.run, "uno")
    assert replaced == SignalReplaced(holding.run, RunStatus.RUNNING, resumed=False)
    got = [the(SignalBound, await harness.do(wait_signal(holding, step_id=step_id))).payload for step_id in ("a", "b")]
    assert got == [payload("uno"), payload("two")]


async def test_a_value_that_nobody_waits_for_yet_is_dropped(harness: StoreHarness) -> None:
    holding = await harness.running(workflow_id="mine")
    for value in ("one", "two"):
        await harness.signal(holding.run, value=value)
    wanted = SignalReplacement(name="approved", payload=None, request_id="drop")
    for _ in range(2):
        dropped, _ = await harness.store.replace_signal("default", workflow_id="mine", change=wanted, now=harness.now)
        assert dropped == SignalReplaced(holding.run, RunStatus.RUNNING, resumed=False)
    assert the(SignalBound, await harness.do(wait_signal(holding))).payload == payload("two")
    new_run_id = harness.ids.run_id(harness.now)
    await harness.do(continue_as(holding, new_run_id))
    new = await harness.hold(RunKey("default", new_run_id))
    the(TimerSet, await harness.do(wait_signal(new)))


async def test_a_rejected_value_does_not_come_back_with_a_retry(harness: StoreHarness) -> None:
    old = await paused_by_signal(harness)
    await change(harness, old.run, "right")
    new = await harness.hold(old.run)
    await harness.write(begin(new, "late"), complete(new, "late"))
    await harness.do(fail_run(new))
    await harness.retry(old.run, "approved")
    third = await harness.hold(old.run)
    await harness.do(wait_signal(third))
    assert (await harness.steps(old.run))["approved"].output == payload("right")


async def test_another_build_may_be_able_to_read_it(harness: StoreHarness) -> None:
    old = await paused_by_signal(harness)
    assert await harness.new_build("build-1") == []
    assert (await harness.run(old.run)).status is RunStatus.PAUSED
    assert len(await harness.new_build("build-2")) == 1
    new = await harness.hold(old.run)
    assert (await harness.steps(old.run))["approved"].output == payload("wrong")
    refused(await change(harness, old.run, "right"), ErrorCode.PRECONDITION_FAILED)
    await harness.do(complete_run(new))


async def test_resumed_without_a_change_it_is_as_before(harness: StoreHarness) -> None:
    old = await paused_by_signal(harness)
    await harness.resume(old.run)
    new = await harness.hold(old.run)
    seq = (await harness.steps(old.run))["approved"].seq
    await harness.do(diverged(new, problem=problem(seq)))
    await change(harness, old.run, "right")
    assert (await harness.steps(old.run))["approved"].output == payload("right")


async def test_it_is_replaced_again_if_that_was_wrong_too(harness: StoreHarness) -> None:
    run = (await paused_by_signal(harness)).run
    for n in range(3):
        await change(harness, run, f"wrong {n}")
        holding = await harness.hold(run)
        seq = (await harness.steps(run))["approved"].seq
        await harness.do(diverged(holding, problem=problem(seq)))
    await change(harness, run, "right")
    step = (await harness.steps(run))["approved"]
    assert (step.output, len(step.attempts), step.attempt) == (payload("right"), 4, 5)
    kinds = [event.kind for event in await events(harness, run)]
    wrong = [K.SIGNAL_RECEIVED, K.RUN_PAUSED, K.SIGNAL_REJECTED]  # and resumed with the next value
    rounds = [*wrong, *[K.SIGNAL_RECEIVED, K.RUN_RESUMED, *wrong[1:]] * 3, K.SIGNAL_RECEIVED, K.RUN_RESUMED]
    assert kinds == [K.SIGNAL_AWAITED, *rounds]


async def test_results_that_came_meanwhile_stay(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.write(sleep(holding, "nap", s=5), wait_signal(holding))
    await harness.signal(holding.run, value="wrong")
    seq = (await harness.steps(holding.run))["approved"].seq
    await harness.do(diverged(holding, problem=problem(seq)))
    harness.clock.advance(s=5)
    await change(harness, holding.run, "right")
    new = await harness.hold(holding.run)
    results = {step.step_id for step in the(Fetched, await harness.do(fetch(new))).results}
    assert results == {"approved", "nap"}

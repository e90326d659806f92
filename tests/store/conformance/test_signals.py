"""Signals: buffered in order per name, kept if early, bound once to the oldest wait, idempotent by request id."""

import asyncio
import sys
from collections.abc import Callable
from typing import Any

import pytest

from kagzi.core.effects import NO_EFFECTS
from kagzi.core.error_details import ErrorCode, ErrorKind
from kagzi.core.records import Payload, RunKey, RunLease
from kagzi.core.run.commands import Command, SignalReplacement
from kagzi.core.run.outcomes import (
    Existing,
    Fetched,
    Known,
    LeaseLost,
    NotParked,
    Outcome,
    Parked,
    RunNotFound,
    SignalBound,
    Started,
    TimerSet,
)
from kagzi.core.states import RunStatus, StepKind, StepStatus, WaitReason
from kagzi.store.protocol import Signalled
from tests.support.clock import FakeClock
from tests.support.providers import CountingIds

from .invariants import check_invariants
from .places import Place
from .verbs import (
    StoreHarness,
    begin,
    by_id,
    complete,
    complete_run,
    fail_run,
    fetch,
    hand_back,
    leased,
    notified_of_result,
    park,
    payload,
    refused,
    stale,
    the,
    wait_signal,
    woken_by_result,
)

S = RunStatus


def received(outcome: Outcome) -> Payload:
    """What a wait got, told for the first time or again."""
    if isinstance(outcome, Known):
        assert outcome.step.status == StepStatus.COMPLETED
        assert outcome.step.output is not None
        return outcome.step.output
    return the(SignalBound, outcome).payload


async def waiting(harness: StoreHarness, *, s: float | None = None, **options: object) -> RunLease:
    """A run parked in a wait for "approved"; the lease is its last, worthless now."""
    holding = await harness.running(**options)
    the(TimerSet, await harness.do(wait_signal(holding, s=s)))
    the(Parked, await harness.do(park(holding, "approved")))
    return holding


# --- early, in order, once --------------------------------------------------------------------------------------------


async def test_a_signal_that_came_early_is_kept(harness: StoreHarness) -> None:
    run = await harness.start()
    signalled = await harness.signal(run, value="early")
    assert (signalled.run, signalled.delivered, harness.effects) == (run, False, NO_EFFECTS)
    holding = await harness.hold(run)
    bound = the(SignalBound, await harness.do(wait_signal(holding)))
    assert (bound.payload, bound.at) == (payload("early"), harness.now)
    step = (await harness.steps(run))["approved"]
    assert (step.kind, step.status, step.seq) == (StepKind.SIGNAL, StepStatus.COMPLETED, bound.seq)
    assert (step.output, step.finished_at, step.name) == (payload("early"), harness.now, "approved")


async def test_signals_of_a_name_are_taken_in_the_order_in_which_they_came(harness: StoreHarness) -> None:
    holding = await harness.running()
    for n in range(5):
        await harness.signal(holding.run, "item", f"{n}")
        await harness.signal(holding.run, "other", f"other-{n}")
    waits = [wait_signal(holding, "item", step_id=f"item#{n}") for n in range(5)]
    outcomes = [*await harness.write(*waits[:2]), *[await harness.do(wait) for wait in waits[2:]]]
    assert [received(outcome) for outcome in outcomes] == [payload(f"{n}") for n in range(5)]
    the(TimerSet, await harness.do(wait_signal(holding, "item", step_id="item#6")))
    assert received(await harness.do(wait_signal(holding, "other"))) == payload("other-0")
    await check_invariants(harness.store)


async def test_a_signal_sent_twice_under_one_request_id_is_one_signal(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.signal(holding.run, value="1", request_id="once")
    await harness.signal(holding.run, value="1", request_id="once")
    assert received(await harness.do(wait_signal(holding))) == payload("1")
    await harness.signal(holding.run, value="1", request_id="once")
    the(TimerSet, await harness.do(wait_signal(holding, step_id="approved#2")))
    await harness.signal(holding.run, value="1", request_id="once")
    assert (await harness.steps(holding.run))["approved#2"].status == StepStatus.RUNNING
    await harness.signal(holding.run, value="2", request_id="twice")
    assert (await harness.steps(holding.run))["approved#2"].output == payload("2")


async def test_one_request_id_may_be_used_for_several_runs(harness: StoreHarness) -> None:
    one, other = await harness.running(), await harness.running()
    for holding in (one, other):
        await harness.signal(holding.run, request_id="same")
        the(SignalBound, await harness.do(wait_signal(holding)))


async def test_a_repeated_wait_answers_what_was_recorded(harness: StoreHarness) -> None:
    holding = await harness.running()
    timer = the(TimerSet, await harness.do(wait_signal(holding, s=60)))
    assert timer.wake_at == harness.now + 60_000_000
    harness.clock.advance(s=1)
    assert the(TimerSet, await harness.do(wait_signal(holding, s=60))).wake_at == timer.wake_at
    new = await harness.take_over(holding)
    assert the(TimerSet, await harness.do(wait_signal(new, s=60))).wake_at == timer.wake_at
    await harness.signal(holding.run, value="1")
    await harness.signal(holding.run, value="2")
    assert received(await harness.do(wait_signal(new))) == payload("1")
    assert received(await harness.do(wait_signal(new, step_id="second"))) == payload("2")
    newer = await harness.take_over(new)
    assert received(await harness.do(wait_signal(newer))) == payload("1")


async def test_of_two_waits_for_one_name_the_older_is_served_first(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.write(wait_signal(holding, step_id="z"), wait_signal(holding, step_id="a"))
    await harness.do(park(holding, "z", "a"))
    await harness.signal(holding.run, value="1")
    steps = await harness.steps(holding.run)
    assert (steps["z"].output, steps["a"].status) == (payload("1"), StepStatus.RUNNING)
    await harness.signal(holding.run, value="2")
    assert (await harness.steps(holding.run))["a"].output == payload("2")


async def test_a_payload_is_kept_byte_for_byte(harness: StoreHarness) -> None:
    value = Payload(bytes(range(256)), {"type": "a/b", "é": "ü"})
    holding = await harness.running()
    request = harness.signal_request()
    request = type(request)(name="näme", payload=value, request_id=request.request_id)
    the(
        Signalled,
        (await harness.store.signal_run("default", run_id=holding.run.run_id, signal=request, now=harness.now))[0],
    )
    assert received(await harness.do(wait_signal(holding, "näme"))) == value


# --- whom it reaches --------------------------------------------------------------------------------------------------


async def test_a_signal_wakes_a_run_that_sleeps_for_it(harness: StoreHarness) -> None:
    last = await waiting(harness)
    record = await harness.run(last.run)
    assert (record.status, record.wait_reason, record.wake_at) == (S.SLEEPING, WaitReason.SIGNAL, None)
    assert record.waits == ("approved",)
    assert (await harness.poll()).next_due_at is None

    harness.clock.advance(s=5)
    signalled = await harness.signal(last.run)
    assert (signalled, harness.effects) == (Signalled(last.run, True), woken_by_result(last.run))
    record = await harness.run(last.run)
    assert (record.status, record.wait_reason, record.waits) == (S.PENDING, None, ())
    assert ("default", "hello") in (await harness.poll()).pending
    claimed = await harness.claim_one()
    step = by_id(claimed.history.steps)["approved"]
    assert (step.status, step.output, step.at) == (StepStatus.COMPLETED, payload("yes"), harness.now)
    assert step.begun_seq < step.seq <= claimed.last_seq


async def test_a_signal_of_another_name_wakes_nobody(harness: StoreHarness) -> None:
    last = await waiting(harness)
    signalled = await harness.signal(last.run, "rejected")
    assert (signalled.delivered, harness.effects) == (False, NO_EFFECTS)
    assert (await harness.run(last.run)).status == S.SLEEPING
    assert (await harness.steps(last.run))["approved"].status == StepStatus.RUNNING


async def test_a_leased_run_gets_the_result_and_its_holder_is_to_be_notified(harness: StoreHarness) -> None:
    holding = await harness.running()
    begun = the(TimerSet, await harness.do(wait_signal(holding)))
    await harness.signal(holding.run)
    assert harness.effects == notified_of_result(holding)
    assert (await harness.run(holding.run)).status == S.RUNNING
    fetched = the(Fetched, await harness.do(fetch(holding, known_seq=begun.seq)))
    not_parked = the(NotParked, await harness.do(park(holding, "approved", known_seq=begun.seq)))
    for (step,) in (fetched.results, not_parked.results):
        assert (step.step_id, step.status, step.output) == ("approved", StepStatus.COMPLETED, payload("yes"))
        assert step.seq > begun.seq


async def test_a_run_nobody_holds_finds_the_signal_when_it_is_claimed(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.do(wait_signal(holding))
    await harness.do(hand_back(holding))
    # It is PENDING already; whoever claims is told again, since a claim may just have passed it over while it was
    # locked.
    await harness.signal(holding.run)
    assert harness.effects == woken_by_result(holding.run)
    assert (await harness.run(holding.run)).status == S.PENDING
    claimed = await harness.claim_one()
    assert by_id(claimed.history.steps)["approved"].output == payload("yes")


async def test_a_paused_run_is_not_woken_and_finds_the_signal_when_it_goes_on(harness: StoreHarness) -> None:
    last = await waiting(harness)
    await harness.pause(last.run)
    await harness.signal(last.run)
    assert (harness.effects.pending, harness.effects.notices) == ((), ())
    assert (await harness.run(last.run)).status == S.PAUSED
    assert await harness.claim() == []
    await harness.resume(last.run)
    claimed = await harness.claim_one()
    assert by_id(claimed.history.steps)["approved"].output == payload("yes")


@pytest.mark.parametrize("end", [complete_run, fail_run])
async def test_a_run_that_has_ended_takes_no_signal(harness: StoreHarness, end: object) -> None:
    holding = await harness.running()
    await harness.do(wait_signal(holding))
    await harness.do(end(holding))  # type: ignore[operator]
    before = await harness.picture(holding.run)
    answer, _ = await harness.store.signal_run(
        "default", run_id=holding.run.run_id, signal=harness.signal_request(), now=harness.now
    )
    assert holding.run.run_id in refused(answer, ErrorCode.PRECONDITION_FAILED).message
    assert await harness.picture(holding.run) == before


async def test_an_id_whose_runs_have_all_ended_takes_no_signal(harness: StoreHarness) -> None:
    """Named by its workflow_id, too, an ended run is refused as one that has ended: it is there."""
    first = await harness.running(workflow_id="order-1")
    await harness.do(complete_run(first))
    latest = await harness.running(workflow_id="order-1")
    repeated = harness.signal_request()
    the(
        Signalled,
        (await harness.store.signal_run("default", workflow_id="order-1", signal=repeated, now=harness.now))[0],
    )
    await harness.do(fail_run(latest))
    answer, _ = await harness.store.signal_run(
        "default", workflow_id="order-1", signal=harness.signal_request(), now=harness.now
    )
    assert latest.run.run_id in refused(answer, ErrorCode.PRECONDITION_FAILED).message
    change = SignalReplacement(name="approved", payload=None, request_id="change-1")
    answer, _ = await harness.store.replace_signal("default", workflow_id="order-1", change=change, now=harness.now)
    assert latest.run.run_id in refused(answer, ErrorCode.PRECONDITION_FAILED).message
    again, _ = await harness.store.signal_run("default", workflow_id="order-1", signal=repeated, now=harness.now)
    assert the(Signalled, again).run == latest.run


async def test_a_run_that_is_not_there_takes_no_signal(harness: StoreHarness) -> None:
    run = await harness.start("order-1")
    request = harness.signal_request()
    now = harness.now
    nobody = harness.ids.run_id(now)
    assert await harness.store.signal_run("default", run_id=nobody, signal=request, now=now) == (None, NO_EFFECTS)
    assert await harness.store.signal_run("elsewhere", run_id=run.run_id, signal=request, now=now) == (None, NO_EFFECTS)
    assert await harness.store.signal_run("elsewhere", workflow_id="order-1", signal=request, now=now) == (
        None,
        NO_EFFECTS,
    )
    assert await harness.store.signal_run("default", workflow_id="order-2", signal=request, now=now) == (
        None,
        NO_EFFECTS,
    )


async def test_a_workflow_id_means_the_run_that_has_not_ended(harness: StoreHarness) -> None:
    old = await harness.running(workflow_id="order-1")
    await harness.do(complete_run(old))
    new = await harness.running(workflow_id="order-1")
    request = harness.signal_request()
    answer, _ = await harness.store.signal_run("default", workflow_id="order-1", signal=request, now=harness.now)
    assert the(Signalled, answer).run == new.run
    the(SignalBound, await harness.do(wait_signal(new)))


# --- against time -----------------------------------------------------------------------------------------------------


async def test_a_wait_that_comes_to_its_end_fails(harness: StoreHarness) -> None:
    last = await waiting(harness, s=60)
    record = await harness.run(last.run)
    wake_at = harness.now + 60_000_000
    assert (record.status, record.wait_reason, record.wake_at) == (S.SLEEPING, WaitReason.SIGNAL, wake_at)
    assert (await harness.poll()).next_due_at == wake_at
    harness.clock.set(wake_at - 1)
    assert (await harness.fire()).pending == ()
    harness.clock.set(wake_at)
    assert (await harness.fire()).pending == (("default", "hello"),)
    step = (await harness.steps(last.run))["approved"]
    assert step.status == StepStatus.FAILED
    assert step.error is not None
    assert (step.error.code, step.error.kind) == (ErrorCode.TIMEOUT, ErrorKind.TIMEOUT)
    assert step.error.type == "TimeoutError"
    assert "approved" in step.error.message
    claimed = await harness.claim_one()
    replayed = by_id(claimed.history.steps)["approved"]
    assert (replayed.status, replayed.error, replayed.seq) == (StepStatus.FAILED, step.error, step.seq)

    # Too late for this wait, in time for the next one.
    assert not (await harness.signal(last.run)).delivered
    assert (await harness.steps(last.run))["approved"] == step
    assert received(await harness.do(wait_signal(leased(claimed), step_id="approved#2"))) == payload("yes")


@pytest.mark.parametrize(("verb", "outcome"), [(park, NotParked), (fetch, Fetched)])
async def test_what_asks_for_results_ends_a_wait_that_is_due(
    harness: StoreHarness, verb: Callable[..., Command], outcome: type[Any]
) -> None:
    holding = await harness.running()
    begun = the(TimerSet, await harness.do(wait_signal(holding, s=5)))
    await harness.do(wait_signal(holding, "other"))
    harness.clock.advance(s=5)
    (step,) = the(outcome, await harness.do(verb(holding, "approved", "other", known_seq=begun.seq + 1))).results
    assert (step.step_id, step.status) == ("approved", StepStatus.FAILED)
    assert step.error is not None
    assert step.error.kind == ErrorKind.TIMEOUT
    assert (await harness.run(holding.run)).status == S.RUNNING
    the(Parked, await harness.do(park(holding, "other", known_seq=step.seq)))


async def test_a_signal_before_the_end_of_the_wait_wins(harness: StoreHarness) -> None:
    last = await waiting(harness, s=60)
    harness.clock.advance(us=59_999_999)
    assert (await harness.signal(last.run)).delivered
    harness.clock.advance(s=60)
    await harness.fire()
    step = (await harness.steps(last.run))["approved"]
    assert (step.status, step.output) == (StepStatus.COMPLETED, payload("yes"))


async def test_signal_against_time_has_one_outcome(harness: StoreHarness, second_harness: StoreHarness) -> None:
    for _ in range(15):
        last = await waiting(harness, s=1)
        harness.clock.advance(s=1)
        signalled, _ = await asyncio.gather(second_harness.signal(last.run), harness.fire(end_leases=False))
        step = (await harness.steps(last.run))["approved"]
        assert (step.status == StepStatus.COMPLETED) == signalled.delivered
        claimed = await harness.claim_one()
        assert by_id(claimed.history.steps)["approved"].seq == step.seq
        if not signalled.delivered:
            the(SignalBound, await harness.do(wait_signal(leased(claimed), step_id="next")))
        await harness.do(complete_run(leased(claimed)))


async def test_a_wait_of_no_time_takes_what_is_there(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.signal(holding.run)
    the(SignalBound, await harness.do(wait_signal(holding, s=0)))
    begun = await harness.do(wait_signal(holding, step_id="nothing", s=0))
    if isinstance(begun, TimerSet):
        (step,) = the(Fetched, await harness.do(fetch(holding, known_seq=begun.seq))).results
    else:
        step = the(Known, begun).step
    assert (step.step_id, step.status) == ("nothing", StepStatus.FAILED)


# --- many, and at once ------------------------------------------------------------------------------------------------


async def test_many_signals_at_once_are_each_bound_once(harness: StoreHarness, second_harness: StoreHarness) -> None:
    holding = await harness.running()
    waits = [wait_signal(holding, "item", step_id=f"item-{n:02}") for n in range(24)]

    async def wait_for_all() -> None:
        for n in range(0, 24, 4):
            await harness.write(*waits[n : n + 4])

    sending = [(harness, second_harness)[n % 2].signal(holding.run, "item", f"{n}") for n in range(24)]
    await asyncio.gather(wait_for_all(), *sending)
    outcomes = await harness.write(*waits)
    assert sorted(int(received(outcome).data) for outcome in outcomes) == list(range(24))
    steps = await harness.steps(holding.run)
    assert {step.status for step in steps.values()} == {StepStatus.COMPLETED}
    await check_invariants(harness.store)


async def test_the_same_signal_from_many_at_once_is_one(harness: StoreHarness, second_harness: StoreHarness) -> None:
    last = await waiting(harness)
    await asyncio.gather(*((harness, second_harness)[n % 2].signal(last.run, request_id="same") for n in range(12)))
    holding = await harness.hold(last.run)
    the(TimerSet, await harness.do(wait_signal(holding, step_id="approved#2")))


async def test_a_signal_during_a_step_does_not_touch_the_step(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.write(begin(holding, "work"), wait_signal(holding))
    for n in range(20):
        await harness.signal(holding.run, value=f"{n}")
    steps = await harness.steps(holding.run)
    assert (steps["work"].status, steps["work"].attempt) == (StepStatus.RUNNING, 1)
    await harness.do(complete(holding, "work"))
    assert received(await harness.do(wait_signal(holding, step_id="next"))) == payload("1")


async def test_a_run_keeps_a_limited_number_of_signals(harness: StoreHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, module in list(sys.modules.items()):
        if name.startswith(("kagzi.core", "kagzi.store")) and hasattr(module, "SIGNALS_BUFFERED"):
            monkeypatch.setattr(module, "SIGNALS_BUFFERED", 5)
    holding = await harness.running()
    for n in range(5):
        await harness.signal(holding.run, value=f"{n}", request_id=f"{n}")
    request = harness.signal_request(request_id="one too many")

    async def one_more() -> object:
        return (await harness.store.signal_run("default", run_id=holding.run.run_id, signal=request, now=harness.now))[
            0
        ]

    assert "5" in refused(await one_more(), ErrorCode.RESOURCE_EXHAUSTED).message
    await harness.signal(holding.run, value="4", request_id="4")  # is there already
    assert received(await harness.do(wait_signal(holding))) == payload("0")
    the(Signalled, await one_more())


# --- signal-with-start ------------------------------------------------------------------------------------------------


async def test_a_run_may_be_started_with_a_signal(harness: StoreHarness) -> None:
    run = await harness.start("cart", signal=harness.signal_request(value="first"))
    holding = await harness.hold(run)
    assert received(await harness.do(wait_signal(holding))) == payload("first")


async def test_a_start_with_a_signal_gives_it_to_the_run_that_is_there(harness: StoreHarness) -> None:
    last = await waiting(harness, workflow_id="cart")
    command = harness.start_command("cart", signal=harness.signal_request(value="again"))
    existing = the(Existing, await harness.do(command))
    assert existing.run_id == last.run.run_id
    assert harness.effects == woken_by_result(last.run)
    assert len(await harness.runs()) == 1
    claimed = await harness.claim_one()
    assert by_id(claimed.history.steps)["approved"].output == payload("again")


async def test_a_start_with_a_signal_can_be_repeated(harness: StoreHarness) -> None:
    command = harness.start_command("cart", signal=harness.signal_request(value="once"))
    the(Started, await harness.do(command))
    for _ in range(2):
        the(Existing, await harness.do(command))
    holding = await harness.hold(command.run)
    assert received(await harness.do(wait_signal(holding))) == payload("once")
    the(TimerSet, await harness.do(wait_signal(holding, step_id="approved#2")))


async def test_racing_starts_with_signals_make_one_run_that_gets_them_all(
    harness: StoreHarness, second_harness: StoreHarness
) -> None:
    commands = [harness.start_command("cart", signal=harness.signal_request("item", f"{n}")) for n in range(12)]
    outcomes = await asyncio.gather(*((harness, second_harness)[n % 2].do(one) for n, one in enumerate(commands)))
    assert len({outcome.run_id for outcome in outcomes if isinstance(outcome, Started | Existing)}) == 1
    (record,) = await harness.runs()
    holding = await harness.hold(record.run)
    waits = await harness.write(*(wait_signal(holding, "item", step_id=f"{n}") for n in range(12)))
    assert sorted(int(received(outcome).data) for outcome in waits) == list(range(12))


# --- refusals ---------------------------------------------------------------------------------------------------------


async def test_only_the_holder_waits(harness: StoreHarness) -> None:
    holding = await harness.running()
    assert await harness.do(wait_signal(stale(holding))) == LeaseLost()
    foreign = RunLease(RunKey("elsewhere", holding.run.run_id), holding.lease)
    assert await harness.do(wait_signal(foreign)) == RunNotFound()
    assert await harness.steps(holding.run) == {}


async def test_a_step_of_another_kind_is_no_wait(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.do(begin(holding, "approved"))
    error = refused(await harness.do(wait_signal(holding)), ErrorCode.PRECONDITION_FAILED)
    assert {"function", "signal"} <= set(error.message.lower().rstrip(".").split())
    await harness.do(wait_signal(holding, step_id="other"))
    refused(await harness.do(begin(holding, "other")), ErrorCode.PRECONDITION_FAILED)


async def test_signals_outlive_the_process(durable_place: Place, clock: FakeClock, ids: CountingIds) -> None:
    store = await durable_place.open()
    harness = StoreHarness(store, clock, ids)
    last = await waiting(harness, workflow_id="asleep")
    early = await harness.start("early")
    await harness.signal(early, value="kept", request_id="r")
    await store.close()

    harness = StoreHarness(await durable_place.open(), clock, ids)
    await harness.signal(early, value="kept", request_id="r")
    holding = await harness.hold(early)
    assert received(await harness.do(wait_signal(holding))) == payload("kept")
    the(TimerSet, await harness.do(wait_signal(holding, step_id="approved#2")))
    assert (await harness.signal(last.run)).delivered
    assert (await harness.run(last.run)).status == S.PENDING

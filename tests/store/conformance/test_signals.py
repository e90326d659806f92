"""Signals: buffered in order per name, kept if early, bound once to the oldest wait, idempotent by request id."""

import asyncio
import sys

import pytest

from kagzi.core.error_details import ErrorCode, ErrorKind
from kagzi.core.records import Held, Payload, RunKey
from kagzi.core.run.commands import SignalReplacement
from kagzi.core.run.outcomes import (
    Existing,
    Known,
    LeaseLost,
    NotParked,
    Outcome,
    Parked,
    RunNotFound,
    SignalBound,
    Started,
    Stirred,
    TimerSet,
)
from kagzi.core.states import RunStatus, StepKind, StepStatus, WaitReason
from kagzi.store.protocol import Signalled
from tests.support.clock import FakeClock
from tests.support.seams import CountingIds

from .invariants import check_invariants
from .places import Place
from .verbs import (
    Cellar,
    ask,
    begin,
    by_id,
    complete,
    complete_run,
    fail_run,
    hand_back,
    held,
    park,
    payload,
    refused,
    stale,
    the,
    wait_signal,
)

S = RunStatus


def received(outcome: Outcome) -> Payload:
    """What a wait got, told for the first time or again."""
    if isinstance(outcome, Known):
        assert outcome.step.status == StepStatus.COMPLETED
        assert outcome.step.output is not None
        return outcome.step.output
    return the(SignalBound, outcome).payload


async def waiting(cellar: Cellar, *, s: float | None = None, **options: object) -> Held:
    """A run parked in a wait for "approved"; the lease is its last, worthless now."""
    holding = await cellar.running(**options)
    the(TimerSet, await cellar.do(wait_signal(holding, s=s)))
    the(Parked, await cellar.do(park(holding, "approved")))
    return holding


# --- early, in order, once ----------------------------------------------------------------------------------------------


async def test_a_signal_that_came_early_is_kept(cellar: Cellar) -> None:
    run = await cellar.start()
    signalled = await cellar.signal(run, value="early")
    assert (signalled.run, signalled.delivered, signalled.stirred) == (run, False, ())
    holding = await cellar.hold(run)
    bound = the(SignalBound, await cellar.do(wait_signal(holding)))
    assert (bound.payload, bound.at) == (payload("early"), cellar.now)
    step = (await cellar.steps(run))["approved"]
    assert (step.kind, step.status, step.seq) == (StepKind.SIGNAL, StepStatus.COMPLETED, bound.seq)
    assert (step.output, step.finished_at, step.name) == (payload("early"), cellar.now, "approved")


async def test_signals_of_a_name_are_taken_in_the_order_in_which_they_came(cellar: Cellar) -> None:
    holding = await cellar.running()
    for n in range(5):
        await cellar.signal(holding.run, "item", f"{n}")
        await cellar.signal(holding.run, "other", f"other-{n}")
    waits = [wait_signal(holding, "item", step_id=f"item#{n}") for n in range(5)]
    outcomes = [*await cellar.write(*waits[:2]), *[await cellar.do(wait) for wait in waits[2:]]]
    assert [received(outcome) for outcome in outcomes] == [payload(f"{n}") for n in range(5)]
    the(TimerSet, await cellar.do(wait_signal(holding, "item", step_id="item#6")))
    assert received(await cellar.do(wait_signal(holding, "other"))) == payload("other-0")
    await check_invariants(cellar.store)


async def test_a_signal_given_twice_under_one_request_id_is_one_signal(cellar: Cellar) -> None:
    holding = await cellar.running()
    await cellar.signal(holding.run, value="1", request_id="once")
    await cellar.signal(holding.run, value="1", request_id="once")
    assert received(await cellar.do(wait_signal(holding))) == payload("1")
    await cellar.signal(holding.run, value="1", request_id="once")
    the(TimerSet, await cellar.do(wait_signal(holding, step_id="approved#2")))
    await cellar.signal(holding.run, value="1", request_id="once")
    assert (await cellar.steps(holding.run))["approved#2"].status == StepStatus.RUNNING
    await cellar.signal(holding.run, value="2", request_id="twice")
    assert (await cellar.steps(holding.run))["approved#2"].output == payload("2")


async def test_one_request_id_may_be_used_for_several_runs(cellar: Cellar) -> None:
    one, other = await cellar.running(), await cellar.running()
    for holding in (one, other):
        await cellar.signal(holding.run, request_id="same")
        the(SignalBound, await cellar.do(wait_signal(holding)))


async def test_a_repeated_wait_answers_what_was_recorded(cellar: Cellar) -> None:
    holding = await cellar.running()
    timer = the(TimerSet, await cellar.do(wait_signal(holding, s=60)))
    assert timer.wake_at == cellar.now + 60_000_000
    cellar.clock.advance(s=1)
    assert the(TimerSet, await cellar.do(wait_signal(holding, s=600))).wake_at == timer.wake_at
    new = await cellar.take_over(holding)
    assert the(TimerSet, await cellar.do(wait_signal(new, s=600))).wake_at == timer.wake_at
    await cellar.signal(holding.run, value="1")
    await cellar.signal(holding.run, value="2")
    assert received(await cellar.do(wait_signal(new))) == payload("1")
    assert received(await cellar.do(wait_signal(new, step_id="second"))) == payload("2")
    newer = await cellar.take_over(new)
    assert received(await cellar.do(wait_signal(newer))) == payload("1")


async def test_of_two_waits_for_one_name_the_older_is_served_first(cellar: Cellar) -> None:
    holding = await cellar.running()
    await cellar.write(wait_signal(holding, step_id="z"), wait_signal(holding, step_id="a"))
    await cellar.do(park(holding, "z", "a"))
    await cellar.signal(holding.run, value="1")
    steps = await cellar.steps(holding.run)
    assert (steps["z"].output, steps["a"].status) == (payload("1"), StepStatus.RUNNING)
    await cellar.signal(holding.run, value="2")
    assert (await cellar.steps(holding.run))["a"].output == payload("2")


async def test_a_payload_is_kept_byte_for_byte(cellar: Cellar) -> None:
    value = Payload(bytes(range(256)), {"type": "a/b", "é": "ü"})
    holding = await cellar.running()
    given = cellar.signal_given()
    given = type(given)(name="näme", payload=value, request_id=given.request_id)
    the(Signalled, await cellar.store.signal_run("default", run_id=holding.run.run_id, signal=given, now=cellar.now))
    assert received(await cellar.do(wait_signal(holding, "näme"))) == value


# --- whom it reaches ----------------------------------------------------------------------------------------------------


async def test_a_signal_wakes_a_run_that_sleeps_for_it(cellar: Cellar) -> None:
    last = await waiting(cellar)
    record = await cellar.run(last.run)
    assert (record.status, record.wait_reason, record.wake_at) == (S.SLEEPING, WaitReason.SIGNAL, None)
    assert record.waits == ("approved",)
    assert (await cellar.look()).next_due_at is None

    cellar.clock.advance(s=5)
    signalled = await cellar.signal(last.run)
    assert signalled == Signalled(last.run, True, (Stirred(last.run, "hello", True),))
    record = await cellar.run(last.run)
    assert (record.status, record.wait_reason, record.waits) == (S.PENDING, None, ())
    assert ("default", "hello") in (await cellar.look()).pending
    claimed = await cellar.claim_one()
    step = by_id(claimed.history.steps)["approved"]
    assert (step.status, step.output, step.at) == (StepStatus.COMPLETED, payload("yes"), cellar.now)
    assert step.begun_seq < step.seq <= claimed.last_seq


async def test_a_signal_of_another_name_wakes_nobody(cellar: Cellar) -> None:
    last = await waiting(cellar)
    signalled = await cellar.signal(last.run, "rejected")
    assert (signalled.delivered, signalled.stirred) == (False, ())
    assert (await cellar.run(last.run)).status == S.SLEEPING
    assert (await cellar.steps(last.run))["approved"].status == StepStatus.RUNNING


async def test_a_run_in_hand_gets_the_result_and_its_holder_is_to_be_told(cellar: Cellar) -> None:
    holding = await cellar.running()
    begun = the(TimerSet, await cellar.do(wait_signal(holding)))
    signalled = await cellar.signal(holding.run)
    assert signalled.stirred == (Stirred(holding.run, "hello", False, holding.lease, "worker-1"),)
    assert (await cellar.run(holding.run)).status == S.RUNNING
    for question in (ask(holding, known_seq=begun.seq), park(holding, "approved", known_seq=begun.seq)):
        (step,) = the(NotParked, await cellar.do(question)).results
        assert (step.step_id, step.status, step.output) == ("approved", StepStatus.COMPLETED, payload("yes"))
        assert step.seq > begun.seq


async def test_a_run_nobody_holds_finds_the_signal_when_it_is_claimed(cellar: Cellar) -> None:
    holding = await cellar.running()
    await cellar.do(wait_signal(holding))
    await cellar.do(hand_back(holding))
    # It is PENDING already; whoever claims is told again, since a claim may just have passed it over while it was locked.
    (stirred,) = (await cellar.signal(holding.run)).stirred
    assert (stirred.run, stirred.woken, stirred.holder) == (holding.run, True, None)
    assert (await cellar.run(holding.run)).status == S.PENDING
    claimed = await cellar.claim_one()
    assert by_id(claimed.history.steps)["approved"].output == payload("yes")


async def test_a_paused_run_is_not_woken_and_finds_the_signal_when_it_goes_on(cellar: Cellar) -> None:
    last = await waiting(cellar)
    await cellar.pause(last.run)
    assert (await cellar.signal(last.run)).stirred == ()
    assert (await cellar.run(last.run)).status == S.PAUSED
    assert await cellar.claim() == []
    await cellar.resume(last.run)
    claimed = await cellar.claim_one()
    assert by_id(claimed.history.steps)["approved"].output == payload("yes")


@pytest.mark.parametrize("end", [complete_run, fail_run])
async def test_a_run_that_has_ended_takes_no_signal(cellar: Cellar, end: object) -> None:
    holding = await cellar.running()
    await cellar.do(wait_signal(holding))
    await cellar.do(end(holding))  # type: ignore[operator]
    before = await cellar.picture(holding.run)
    answer = await cellar.store.signal_run(
        "default", run_id=holding.run.run_id, signal=cellar.signal_given(), now=cellar.now
    )
    assert holding.run.run_id in refused(answer, ErrorCode.PRECONDITION_FAILED).message
    assert await cellar.picture(holding.run) == before


async def test_an_id_whose_runs_have_all_ended_takes_no_signal(cellar: Cellar) -> None:
    """Named by its workflow_id, too, an ended run is refused as one that has ended: it is there."""
    first = await cellar.running(workflow_id="order-1")
    await cellar.do(complete_run(first))
    latest = await cellar.running(workflow_id="order-1")
    repeated = cellar.signal_given()
    the(Signalled, await cellar.store.signal_run("default", workflow_id="order-1", signal=repeated, now=cellar.now))
    await cellar.do(fail_run(latest))
    answer = await cellar.store.signal_run(
        "default", workflow_id="order-1", signal=cellar.signal_given(), now=cellar.now
    )
    assert latest.run.run_id in refused(answer, ErrorCode.PRECONDITION_FAILED).message
    change = SignalReplacement(name="approved", payload=None, request_id="change-1")
    answer = await cellar.store.replace_signal("default", workflow_id="order-1", change=change, now=cellar.now)
    assert latest.run.run_id in refused(answer, ErrorCode.PRECONDITION_FAILED).message
    again = await cellar.store.signal_run("default", workflow_id="order-1", signal=repeated, now=cellar.now)
    assert the(Signalled, again).run == latest.run


async def test_a_run_that_is_not_there_takes_no_signal(cellar: Cellar) -> None:
    run = await cellar.start("order-1")
    given = cellar.signal_given()
    now = cellar.now
    nobody = cellar.ids.run_id(now)
    assert await cellar.store.signal_run("default", run_id=nobody, signal=given, now=now) is None
    assert await cellar.store.signal_run("elsewhere", run_id=run.run_id, signal=given, now=now) is None
    assert await cellar.store.signal_run("elsewhere", workflow_id="order-1", signal=given, now=now) is None
    assert await cellar.store.signal_run("default", workflow_id="order-2", signal=given, now=now) is None


async def test_a_workflow_id_means_the_run_that_has_not_ended(cellar: Cellar) -> None:
    old = await cellar.running(workflow_id="order-1")
    await cellar.do(complete_run(old))
    new = await cellar.running(workflow_id="order-1")
    given = cellar.signal_given()
    answer = await cellar.store.signal_run("default", workflow_id="order-1", signal=given, now=cellar.now)
    assert the(Signalled, answer).run == new.run
    the(SignalBound, await cellar.do(wait_signal(new)))


# --- against time -------------------------------------------------------------------------------------------------------


async def test_a_wait_that_comes_to_its_end_fails(cellar: Cellar) -> None:
    last = await waiting(cellar, s=60)
    record = await cellar.run(last.run)
    wake_at = cellar.now + 60_000_000
    assert (record.status, record.wait_reason, record.wake_at) == (S.SLEEPING, WaitReason.SIGNAL, wake_at)
    assert (await cellar.look()).next_due_at == wake_at
    cellar.clock.set(wake_at - 1)
    assert (await cellar.fire()).woken == ()
    cellar.clock.set(wake_at)
    assert (await cellar.fire()).woken == (("default", "hello"),)
    step = (await cellar.steps(last.run))["approved"]
    assert step.status == StepStatus.FAILED
    assert step.error is not None
    assert (step.error.code, step.error.kind) == (ErrorCode.TIMEOUT, ErrorKind.TIMEOUT)
    assert step.error.type == "TimeoutError"
    assert "approved" in step.error.message
    claimed = await cellar.claim_one()
    told = by_id(claimed.history.steps)["approved"]
    assert (told.status, told.error, told.seq) == (StepStatus.FAILED, step.error, step.seq)

    # Too late for this wait, in time for the next one.
    assert not (await cellar.signal(last.run)).delivered
    assert (await cellar.steps(last.run))["approved"] == step
    assert received(await cellar.do(wait_signal(held(claimed), step_id="approved#2"))) == payload("yes")


@pytest.mark.parametrize("stay", [False, True])
async def test_a_park_finds_a_wait_that_has_come_to_its_end(cellar: Cellar, stay: bool) -> None:
    holding = await cellar.running()
    begun = the(TimerSet, await cellar.do(wait_signal(holding, s=5)))
    await cellar.do(wait_signal(holding, "other"))
    cellar.clock.advance(s=5)
    question = park(holding, "approved", "other", known_seq=begun.seq + 1, stay=stay)
    (step,) = the(NotParked, await cellar.do(question)).results
    assert (step.step_id, step.status) == ("approved", StepStatus.FAILED)
    assert step.error is not None
    assert step.error.kind == ErrorKind.TIMEOUT
    assert (await cellar.run(holding.run)).status == S.RUNNING
    the(Parked, await cellar.do(park(holding, "other", known_seq=step.seq)))


async def test_a_signal_before_the_end_of_the_wait_beats_it(cellar: Cellar) -> None:
    last = await waiting(cellar, s=60)
    cellar.clock.advance(us=59_999_999)
    assert (await cellar.signal(last.run)).delivered
    cellar.clock.advance(s=60)
    await cellar.fire()
    step = (await cellar.steps(last.run))["approved"]
    assert (step.status, step.output) == (StepStatus.COMPLETED, payload("yes"))


async def test_signal_against_time_has_one_outcome(cellar: Cellar, second_cellar: Cellar) -> None:
    for _ in range(15):
        last = await waiting(cellar, s=1)
        cellar.clock.advance(s=1)
        signalled, _ = await asyncio.gather(second_cellar.signal(last.run), cellar.fire(end_leases=False))
        step = (await cellar.steps(last.run))["approved"]
        assert (step.status == StepStatus.COMPLETED) == signalled.delivered
        claimed = await cellar.claim_one()
        assert by_id(claimed.history.steps)["approved"].seq == step.seq
        if not signalled.delivered:
            the(SignalBound, await cellar.do(wait_signal(held(claimed), step_id="next")))
        await cellar.do(complete_run(held(claimed)))


async def test_a_wait_of_no_time_takes_what_is_there(cellar: Cellar) -> None:
    holding = await cellar.running()
    await cellar.signal(holding.run)
    the(SignalBound, await cellar.do(wait_signal(holding, s=0)))
    begun = await cellar.do(wait_signal(holding, step_id="nothing", s=0))
    if isinstance(begun, TimerSet):
        (step,) = the(NotParked, await cellar.do(ask(holding, known_seq=begun.seq))).results
    else:
        step = the(Known, begun).step
    assert (step.step_id, step.status) == ("nothing", StepStatus.FAILED)


# --- many, and at once --------------------------------------------------------------------------------------------------


async def test_many_signals_at_once_are_each_bound_once(cellar: Cellar, second_cellar: Cellar) -> None:
    holding = await cellar.running()
    waits = [wait_signal(holding, "item", step_id=f"item-{n:02}") for n in range(24)]

    async def wait_for_all() -> None:
        for n in range(0, 24, 4):
            await cellar.write(*waits[n : n + 4])

    sending = [(cellar, second_cellar)[n % 2].signal(holding.run, "item", f"{n}") for n in range(24)]
    await asyncio.gather(wait_for_all(), *sending)
    outcomes = await cellar.write(*waits)
    assert sorted(int(received(outcome).data) for outcome in outcomes) == list(range(24))
    steps = await cellar.steps(holding.run)
    assert {step.status for step in steps.values()} == {StepStatus.COMPLETED}
    await check_invariants(cellar.store)


async def test_the_same_signal_from_many_at_once_is_one(cellar: Cellar, second_cellar: Cellar) -> None:
    last = await waiting(cellar)
    await asyncio.gather(*((cellar, second_cellar)[n % 2].signal(last.run, request_id="same") for n in range(12)))
    holding = await cellar.hold(last.run)
    the(TimerSet, await cellar.do(wait_signal(holding, step_id="approved#2")))


async def test_a_signal_during_a_step_does_not_touch_the_step(cellar: Cellar) -> None:
    holding = await cellar.running()
    await cellar.write(begin(holding, "work"), wait_signal(holding))
    for n in range(20):
        await cellar.signal(holding.run, value=f"{n}")
    steps = await cellar.steps(holding.run)
    assert (steps["work"].status, steps["work"].attempt) == (StepStatus.RUNNING, 1)
    await cellar.do(complete(holding, "work"))
    assert received(await cellar.do(wait_signal(holding, step_id="next"))) == payload("1")


async def test_a_run_keeps_a_limited_number_of_signals(cellar: Cellar, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, module in list(sys.modules.items()):
        if name.startswith(("kagzi.core", "kagzi.store")) and hasattr(module, "SIGNALS_BUFFERED"):
            monkeypatch.setattr(module, "SIGNALS_BUFFERED", 5)
    holding = await cellar.running()
    for n in range(5):
        await cellar.signal(holding.run, value=f"{n}", request_id=f"{n}")
    given = cellar.signal_given(request_id="one too many")

    async def one_more() -> object:
        return await cellar.store.signal_run("default", run_id=holding.run.run_id, signal=given, now=cellar.now)

    assert "5" in refused(await one_more(), ErrorCode.RESOURCE_EXHAUSTED).message
    await cellar.signal(holding.run, value="4", request_id="4")  # is there already
    assert received(await cellar.do(wait_signal(holding))) == payload("0")
    the(Signalled, await one_more())


# --- signal-with-start --------------------------------------------------------------------------------------------------


async def test_a_run_may_be_started_with_a_signal(cellar: Cellar) -> None:
    run = await cellar.start("cart", signal=cellar.signal_given(value="first"))
    holding = await cellar.hold(run)
    assert received(await cellar.do(wait_signal(holding))) == payload("first")


async def test_a_start_with_a_signal_gives_it_to_the_run_that_is_there(cellar: Cellar) -> None:
    last = await waiting(cellar, workflow_id="cart")
    command = cellar.start_command("cart", signal=cellar.signal_given(value="again"))
    existing = the(Existing, await cellar.do(command))
    assert existing.run_id == last.run.run_id
    assert existing.stirred == (Stirred(last.run, "hello", True),)
    assert len(await cellar.runs()) == 1
    claimed = await cellar.claim_one()
    assert by_id(claimed.history.steps)["approved"].output == payload("again")


async def test_a_start_with_a_signal_can_be_repeated(cellar: Cellar) -> None:
    command = cellar.start_command("cart", signal=cellar.signal_given(value="once"))
    the(Started, await cellar.do(command))
    for _ in range(2):
        the(Existing, await cellar.do(command))
    holding = await cellar.hold(command.run)
    assert received(await cellar.do(wait_signal(holding))) == payload("once")
    the(TimerSet, await cellar.do(wait_signal(holding, step_id="approved#2")))


async def test_racing_starts_with_signals_make_one_run_that_gets_them_all(
    cellar: Cellar, second_cellar: Cellar
) -> None:
    commands = [cellar.start_command("cart", signal=cellar.signal_given("item", f"{n}")) for n in range(12)]
    outcomes = await asyncio.gather(*((cellar, second_cellar)[n % 2].do(one) for n, one in enumerate(commands)))
    assert len({outcome.run_id for outcome in outcomes if isinstance(outcome, Started | Existing)}) == 1
    (record,) = await cellar.runs()
    holding = await cellar.hold(record.run)
    waits = await cellar.write(*(wait_signal(holding, "item", step_id=f"{n}") for n in range(12)))
    assert sorted(int(received(outcome).data) for outcome in waits) == list(range(12))


# --- refusals -----------------------------------------------------------------------------------------------------------


async def test_only_the_holder_waits(cellar: Cellar) -> None:
    holding = await cellar.running()
    assert await cellar.do(wait_signal(stale(holding))) == LeaseLost()
    foreign = Held(RunKey("elsewhere", holding.run.run_id), holding.lease)
    assert await cellar.do(wait_signal(foreign)) == RunNotFound()
    assert await cellar.steps(holding.run) == {}


async def test_a_step_of_another_kind_is_no_wait(cellar: Cellar) -> None:
    holding = await cellar.running()
    await cellar.do(begin(holding, "approved"))
    error = refused(await cellar.do(wait_signal(holding)), ErrorCode.PRECONDITION_FAILED)
    assert {"function", "signal"} <= set(error.message.lower().rstrip(".").split())
    await cellar.do(wait_signal(holding, step_id="other"))
    refused(await cellar.do(begin(holding, "other")), ErrorCode.PRECONDITION_FAILED)


async def test_signals_outlive_the_process(durable_place: Place, clock: FakeClock, ids: CountingIds) -> None:
    store = await durable_place.open()
    cellar = Cellar(store, clock, ids)
    last = await waiting(cellar, workflow_id="asleep")
    early = await cellar.start("early")
    await cellar.signal(early, value="kept", request_id="r")
    await store.close()

    cellar = Cellar(await durable_place.open(), clock, ids)
    await cellar.signal(early, value="kept", request_id="r")
    holding = await cellar.hold(early)
    assert received(await cellar.do(wait_signal(holding))) == payload("kept")
    the(TimerSet, await cellar.do(wait_signal(holding, step_id="approved#2")))
    assert (await cellar.signal(last.run)).delivered
    assert (await cellar.run(last.run)).status == S.PENDING

"""A request by workflow id that is made again is the same request, also after its run has continued as a new one, or
has ended and another one was started."""

import asyncio

import pytest

from kagzi.core import limits
from kagzi.core.effects import NO_EFFECTS
from kagzi.core.error_details import ErrorCode
from kagzi.core.records import RunKey, RunLease
from kagzi.core.run.commands import SignalReplacement
from kagzi.core.run.outcomes import Existing, Refused, RunClosed, SignalBound, Started, TimerSet
from kagzi.core.run.wakes import Wake, Woken
from kagzi.core.states import RunStatus
from kagzi.store.protocol import Signalled, SignalReplaced

from .places import Place
from .verbs import (
    StoreHarness,
    complete_run,
    continue_as,
    fail_run,
    leased,
    payload,
    refused,
    the,
    wait_signal,
)


async def send(
    harness: StoreHarness, workflow_id: str = "cart", value: str = "yes", *, request_id: str
) -> Signalled | Refused | None:
    signal = harness.signal_request("item", value, request_id)
    outcome, harness.effects = await harness.store.signal_run(
        "default", workflow_id=workflow_id, signal=signal, now=harness.now
    )
    return outcome


async def replace(
    harness: StoreHarness, value: str | None, *, request_id: str, run_id: str = ""
) -> SignalReplaced | Refused | None:
    change = SignalReplacement(name="item", payload=None if value is None else payload(value), request_id=request_id)
    workflow_id = "" if run_id else "cart"
    outcome, _ = await harness.store.replace_signal(
        "default", run_id=run_id, workflow_id=workflow_id, change=change, now=harness.now
    )
    return outcome


async def continue_run(harness: StoreHarness, holding: RunLease) -> RunLease:
    """The holder's run continues as a new one, which is held, too."""
    harness.clock.advance(s=1)
    new = RunKey("default", harness.ids.run_id(harness.now))
    the(RunClosed, await harness.do(continue_as(holding, new.run_id)))
    return await harness.hold(new)


async def start_again(harness: StoreHarness, holding: RunLease) -> RunLease:
    """The holder's run ends, and another one with the same workflow id is started."""
    the(RunClosed, await harness.do(complete_run(holding)))
    harness.clock.advance(s=1)
    return await harness.running(workflow_id="cart")


FOLLOWED = pytest.mark.parametrize("follow", [continue_run, start_again])


async def consumed(harness: StoreHarness, *request_ids: str) -> RunLease:
    """A run that has had, and consumed, these signals."""
    holding = await harness.running(workflow_id="cart")
    for n, request_id in enumerate(request_ids):
        assert await send(harness, request_id=request_id) == Signalled(holding.run, delivered=False)
        the(SignalBound, await harness.do(wait_signal(holding, "item", step_id=f"{n}")))
    return holding


# --- signals ----------------------------------------------------------------------------------------------------------


@FOLLOWED
async def test_a_signal_that_an_earlier_run_has_had_is_not_taken_again(harness: StoreHarness, follow: object) -> None:
    first = await consumed(harness, "once", "twice")
    last = await follow(harness, await follow(harness, first))  # type: ignore[operator]
    the(TimerSet, await harness.do(wait_signal(last, "item")))
    before = await harness.picture(last.run)
    for request_id in ("once", "twice"):
        assert await send(harness, request_id=request_id) == Signalled(first.run, delivered=True)
        assert harness.effects == NO_EFFECTS
    assert await harness.picture(last.run) == before
    assert await send(harness, value="new", request_id="thrice") == Signalled(last.run, delivered=True)
    assert (await harness.steps(last.run))["item"].output == payload("new")
    the(RunClosed, await harness.do(complete_run(last)))
    assert await send(harness, request_id="once") == Signalled(first.run, delivered=True)  # all of them have ended
    refused(await send(harness, request_id="late"), ErrorCode.PRECONDITION_FAILED)


async def test_other_workflow_ids_namespaces_and_run_ids_have_requests_of_their_own(harness: StoreHarness) -> None:
    first = await consumed(harness, "once")
    last = await continue_run(harness, first)
    other = await harness.running(workflow_id="other")
    elsewhere = await harness.running(workflow_id="cart", namespace="elsewhere")
    assert await send(harness, "other", request_id="once") == Signalled(other.run, delivered=False)
    signal = harness.signal_request("item", "yes", "once")
    outcome, _ = await harness.store.signal_run("elsewhere", workflow_id="cart", signal=signal, now=harness.now)
    assert outcome == Signalled(elsewhere.run, delivered=False)
    # Whoever names a run means that run.
    assert await harness.signal(last.run, "item", request_id="once") == Signalled(last.run, delivered=False)


async def test_a_signal_that_was_passed_on_is_known_by_both_ids(harness: StoreHarness) -> None:
    first = await harness.running(workflow_id="cart")
    await send(harness, request_id="once")
    await replace(harness, "better", request_id="change")
    await send(harness, value="next", request_id="twice")
    second = await continue_run(harness, first)
    last = await continue_run(harness, second)
    for request_id in ("once", "twice"):
        again = the(Signalled, await send(harness, request_id=request_id))
        assert again == await harness.signal(first.run, "item", request_id=request_id)  # as it was named at first
    assert await replace(harness, "better", request_id="change", run_id=first.run.run_id) == SignalReplaced(
        last.run, RunStatus.RUNNING, resumed=False
    )
    waits = [wait_signal(last, "item", step_id=f"{n}") for n in range(3)]
    outcomes = await harness.write(*waits)
    assert [each.payload for each in outcomes if isinstance(each, SignalBound)] == [payload("better"), payload("next")]
    signal = harness.signal_request("item", "no", "new")
    answer, _ = await harness.store.signal_run("default", run_id=first.run.run_id, signal=signal, now=harness.now)
    refused(answer, ErrorCode.PRECONDITION_FAILED)


async def test_only_the_latest_runs_are_searched(harness: StoreHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    first = await consumed(harness, "once")
    second = await continue_run(harness, first)
    last = await continue_run(harness, second)
    assert await send(harness, request_id="once") == Signalled(first.run, delivered=True)
    for dialect in ("postgres", "sqlite"):
        monkeypatch.setattr(f"kagzi.store.{dialect}.write.signals.REQUEST_RUNS", 1)
    assert limits.REQUEST_RUNS > 100
    assert await send(harness, request_id="once") == Signalled(last.run, delivered=False)


async def test_a_repeat_meets_a_run_that_goes_on(place: Place, harness: StoreHarness) -> None:
    """From two servers, if there can be two: whichever comes first, the signal is taken once."""
    stores = [harness.store, await place.open() if place.shared else harness.store]
    for n in range(5):
        holding = await harness.running(workflow_id=f"cart-{n}")
        the(TimerSet, await harness.do(wait_signal(holding, "item")))
        new = RunKey("default", harness.ids.run_id(harness.now))
        signal = harness.signal_request("item", "yes", "once")
        sends = [
            store.signal_run("default", workflow_id=f"cart-{n}", signal=signal, now=harness.now)
            for store in (*stores, *stores)
        ]
        closed, *answers = await asyncio.gather(
            harness.insist(continue_as(holding, new.run_id)), *(sends[:3] if n % 2 else reversed(sends[:3]))
        )
        the(RunClosed, closed)
        for outcome, _ in (*answers, await sends[3]):
            the(Signalled, outcome)
        successor = await harness.hold(new)
        outcomes = await harness.write(*(wait_signal(successor, "item", step_id=f"{k}") for k in range(2)))
        received = [
            (await harness.steps(holding.run))["item"].output,
            *(type(each) is SignalBound for each in outcomes),
        ]
        assert sum(map(bool, received)) == 1, received


# --- replacements, wakes, retries, signals with starts ----------------------------------------------------------------


@FOLLOWED
async def test_a_replacement_that_an_earlier_run_has_had_is_not_made_again(
    harness: StoreHarness, follow: object
) -> None:
    first = await harness.running(workflow_id="cart")
    for request_id in ("a", "b"):
        await send(harness, request_id=request_id)
    assert await replace(harness, "better", request_id="change") == SignalReplaced(first.run, RunStatus.RUNNING, False)
    assert await replace(harness, None, request_id="drop") == SignalReplaced(first.run, RunStatus.RUNNING, False)
    the(SignalBound, await harness.do(wait_signal(first, "item")))
    last = await follow(harness, first)  # type: ignore[operator]
    await send(harness, value="new", request_id="c")
    for value, request_id in (("better", "change"), (None, "drop")):
        again = await replace(harness, value, request_id=request_id)
        assert the(SignalReplaced, again).run == first.run
    refused(await replace(harness, "other", request_id="drop"), ErrorCode.CONFLICT)
    assert the(SignalBound, await harness.do(wait_signal(last, "item"))).payload == payload("new")


@FOLLOWED
async def test_the_ended_run_that_a_request_woke_or_retried_is_found(harness: StoreHarness, follow: object) -> None:
    find = harness.store.ended_run_of_request
    first = await harness.asleep(workflow_id="cart", s=3_600)
    woken, _ = await harness.store.wake_run(first.run, Wake("nap", "wake"), harness.now)
    assert the(Woken, woken).woken
    holding = leased(await harness.claim_one())
    await harness.do(fail_run(holding))
    assert await harness.retry(first.run, request_id="retry") is RunStatus.PENDING
    assert await find("default", "cart", "wake", "wake") is None  # it is open: it knows by itself
    last = await follow(harness, leased(await harness.claim_one()))  # type: ignore[operator]
    assert last.run != first.run
    assert await find("default", "cart", "wake", "wake") == first.run
    assert await find("default", "cart", "retry", "retry") == first.run
    for ids in (("default", "cart", "wake", "retry"), ("default", "cart", "retry", "wake")):
        assert await find(*ids) is None  # type: ignore[arg-type]
    assert await find("elsewhere", "cart", "wake", "wake") is None
    assert await find("default", "other", "wake", "wake") is None


@FOLLOWED
async def test_a_signal_with_start_that_an_earlier_run_has_had_starts_and_signals_nothing(
    harness: StoreHarness, follow: object
) -> None:
    first = await harness.running(workflow_id="cart")
    command = harness.start_command("cart", signal=harness.signal_request("item", "yes", "once"))
    assert await harness.do(command) == Existing(first.run.run_id, "cart", RunStatus.RUNNING)
    the(SignalBound, await harness.do(wait_signal(first, "item")))
    last = await follow(harness, first)  # type: ignore[operator]
    before = await harness.picture(last.run)
    had = Existing(first.run.run_id, "cart", RunStatus.COMPLETED)
    assert await harness.do(command) == had
    assert await harness.picture(last.run) == before
    the(RunClosed, await harness.do(complete_run(last)))
    assert await harness.do(command) == had
    assert len(await harness.runs()) == 2
    fresh = harness.start_command("cart", signal=harness.signal_request("item", "yes", "twice"))
    the(Started, await harness.do(fresh))


async def test_a_signal_with_start_answers_the_run_that_it_made_whoever_has_the_signal(harness: StoreHarness) -> None:
    command = harness.start_command("cart", signal=harness.signal_request("item", "yes", "once"))
    the(Started, await harness.do(command))
    first = await harness.hold(command.run)
    second = await continue_run(harness, first)  # with the signal
    made = Existing(first.run.run_id, "cart", RunStatus.COMPLETED, repeated=True)
    assert await harness.do(command) == made
    the(SignalBound, await harness.do(wait_signal(second, "item")))
    assert await harness.do(command) == made
    last = await continue_run(harness, second)
    assert await harness.do(command) == made
    the(TimerSet, await harness.do(wait_signal(last, "item")))
    assert len(await harness.runs()) == 3

"""A signal belongs to the code that receives it: one that is bound to a wait that the code gives up goes back to its
place in the order."""

import pytest

from kagzi.core.records import RunLease
from kagzi.core.run.outcomes import Recorded, RunClosed, SignalBound, TimerSet
from kagzi.core.states import RunStatus, StepKind, StepStatus
from tests.support.providers import CountingIds

from .invariants import check_invariants
from .test_signals import received
from .verbs import (
    STEADY,
    StoreHarness,
    acknowledge_cancel,
    by_id,
    complete_run,
    continue_as,
    fail_run,
    fetch,
    leased,
    park,
    payload,
    race,
    the,
    wait_signal,
)

S = StepStatus


async def outputs(harness: StoreHarness, holding: RunLease) -> dict[str, str | None]:
    """The values of all waits, by step; None for those that have none."""
    steps = await harness.steps(holding.run)
    return {
        name: None if step.output is None else step.output.data.decode()
        for name, step in steps.items()
        if step.kind == StepKind.SIGNAL
    }


@pytest.mark.parametrize("early", [False, True])
async def test_the_next_wait_gets_what_a_loser_has_not_received(harness: StoreHarness, early: bool) -> None:
    holding = await harness.running()
    if early:
        await harness.signal(holding.run, "item", "1")
    await harness.do(wait_signal(holding, "item", step_id="a"))
    if not early:
        await harness.signal(holding.run, "item", "1")
    await harness.signal(holding.run, "item", "2")
    decided = the(Recorded, await harness.do(race(holding, "race", "other", "a")))
    lost = (await harness.steps(holding.run))["a"]
    assert (lost.status, lost.seq, lost.output) == (S.ABANDONED, decided.seq, None)
    waits = [wait_signal(holding, "item", step_id=name) for name in ("b", "c", "d")]
    first, second, third = [await harness.do(wait) for wait in waits]
    assert (received(first), received(second)) == (payload("1"), payload("2"))
    the(TimerSet, third)
    await check_invariants(harness.store)


async def test_a_later_wait_of_the_same_batch_gets_it(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.signal(holding.run, "item", "1")
    await harness.do(wait_signal(holding, "item", step_id="a"))
    await harness.write(race(holding, "a/withdrawn", "", "a"), wait_signal(holding, "item", step_id="b"))
    await harness.do(wait_signal(holding, "item", step_id="b"))  # its response may have been left to the next batch
    assert await outputs(harness, holding) == {"a": None, "b": "1"}


async def test_all_in_one_batch(harness: StoreHarness) -> None:
    holding = await harness.running()
    for value in ("1", "2", "3"):
        await harness.signal(holding.run, "item", value)
    a, b, c = [wait_signal(holding, "item", step_id=name) for name in "abc"]
    await harness.write(a, b, race(holding, "a/withdrawn", "", "a"), c)
    assert await outputs(harness, holding) == {"a": None, "b": "1", "c": "2"}
    assert received(await harness.do(wait_signal(holding, "item", step_id="d"))) == payload("3")
    await check_invariants(harness.store)


async def test_a_repeated_decision_takes_nothing_back_again(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.do(wait_signal(holding, "item", step_id="a"))
    await harness.signal(holding.run, "item", "1")
    decided = await harness.do(race(holding, "race", "other", "a"))
    the(SignalBound, await harness.do(wait_signal(holding, "item", step_id="b")))
    assert await harness.do(race(holding, "race", "other", "a")) == decided
    assert await outputs(harness, holding) == {"a": None, "b": "1"}
    the(TimerSet, await harness.do(wait_signal(holding, "item", step_id="c")))


async def test_a_wait_that_is_open_gets_it_at_once(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.write(*[wait_signal(holding, "item", step_id=name) for name in "abc"])
    await harness.write(wait_signal(holding, "other", step_id="x"))
    await harness.signal(holding.run, "item", "1")
    decided = the(Recorded, await harness.do(race(holding, "race", "other", "a")))
    step = (await harness.steps(holding.run))["b"]
    assert (step.status, step.output) == (S.COMPLETED, payload("1"))
    assert step.seq > decided.seq
    assert (await harness.run(holding.run)).awaits_signal == 2
    answer = await harness.do(fetch(holding, known_seq=decided.seq))
    assert [each.step_id for each in answer.results] == ["b"]  # type: ignore[union-attr]
    await check_invariants(harness.store)


async def test_values_that_were_bound_later_move_up(harness: StoreHarness) -> None:
    """Nothing of it was delivered: results are delivered in order."""
    holding = await harness.running()
    await harness.write(*[wait_signal(holding, "item", step_id=name) for name in "abcd"])
    await harness.write(wait_signal(holding, "other", step_id="x"))
    for value in ("1", "2", "3"):
        await harness.signal(holding.run, "item", value)
    await harness.signal(holding.run, "other", "y")
    before = await harness.steps(holding.run)
    await harness.do(race(holding, "race", "other", "a"))
    assert await outputs(harness, holding) == {"a": None, "b": "1", "c": "2", "d": "3", "x": "y"}
    after = await harness.steps(holding.run)
    assert [after[name].seq for name in "bc"] == [before[name].seq for name in "bc"]
    await check_invariants(harness.store)


async def test_a_wait_among_others_is_given_up(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.write(*[wait_signal(holding, "item", step_id=name) for name in "abc"])
    for value in ("1", "2", "3"):
        await harness.signal(holding.run, "item", value)
    await harness.do(race(holding, "race", "other", "b"))
    assert await outputs(harness, holding) == {"a": "1", "b": None, "c": "2"}
    await harness.do(race(holding, "race#2", "other", "c"))
    assert await outputs(harness, holding) == {"a": "1", "b": None, "c": None}
    bound = [received(await harness.do(wait_signal(holding, "item", step_id=name))) for name in "de"]
    assert bound == [payload("2"), payload("3")]


async def test_several_losers_of_several_names(harness: StoreHarness) -> None:
    holding = await harness.running()
    for name in ("item", "other"):
        await harness.write(*[wait_signal(holding, name, step_id=f"{name}#{n}") for n in range(3)])
        for value in ("1", "2"):
            await harness.signal(holding.run, name, f"{name}-{value}")
    await harness.do(race(holding, "race", "x", "item#0", "item#1", "item#2", "other#0"))
    others = {"other#0": None, "other#1": "other-1", "other#2": "other-2"}
    assert await outputs(harness, holding) == {f"item#{n}": None for n in range(3)} | others
    assert received(await harness.do(wait_signal(holding, "item"))) == payload("item-1")
    await check_invariants(harness.store)


async def test_a_wait_that_timed_out_has_nothing_to_give(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.do(wait_signal(holding, "item", step_id="a", s=1))
    harness.clock.advance(s=2)
    await harness.do(fetch(holding, "a"))
    await harness.do(race(holding, "race", "other", "a"))
    assert (await harness.steps(holding.run))["a"].status == S.FAILED
    assert not (await harness.signal(holding.run, "item", "1")).delivered


async def test_a_new_holder_sees_what_was_decided(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.write(*[wait_signal(holding, "item", step_id=name) for name in "ab"])
    await harness.signal(holding.run, "item", "1")
    await harness.do(race(holding, "a/withdrawn", "", "a"))
    new = await harness.take_over(holding)
    assert received(await harness.do(wait_signal(new, "item", step_id="b"))) == payload("1")
    await harness.do(race(new, "a/withdrawn", "", "a"))
    assert await outputs(harness, new) == {"a": None, "b": "1"}


# --- ends -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["complete", "fail", "cancel"])
async def test_at_the_end_of_a_run_it_is_unread(harness: StoreHarness, how: str) -> None:
    holding = await harness.running()
    await harness.write(*[wait_signal(holding, "item", step_id=name) for name in "abc"])
    for value in ("1", "2"):
        await harness.signal(holding.run, "item", value)
    if how == "cancel":
        await harness.store.cancel_run(holding.run, "", harness.now, harness.now)
    end_by = {"complete": complete_run, "fail": fail_run, "cancel": acknowledge_cancel}
    end = end_by[how](holding, open_waits=["b", "c", "unknown"])  # type: ignore[operator]
    closed = the(RunClosed, await harness.do(end))
    assert await harness.do(end) == closed
    steps = await harness.steps(holding.run)
    shown = [(steps[name].status, steps[name].seq) for name in "bc"]
    assert shown == [(S.ABANDONED, 0)] * 2  # as open waits of ended runs are
    assert await outputs(harness, holding) == {"a": "1", "b": None, "c": None}
    assert (await harness.run(holding.run)).unread_signals == 1
    await check_invariants(harness.store)


async def test_the_successor_gets_it_first(harness: StoreHarness) -> None:
    holding = await harness.running()
    for value in ("1", "2", "3", "4"):
        await harness.signal(holding.run, "item", value)
    await harness.write(*[wait_signal(holding, "item", step_id=name) for name in "abc"])
    new_run_id = CountingIds().run_id(harness.now, "default")
    await harness.do(continue_as(holding, new_run_id, open_waits=("b", "c")))
    successor = await harness.claim_one()
    assert successor.run.run_id == new_run_id
    next_ = await harness.write(*[wait_signal(leased(successor), "item", step_id=f"item#{n}") for n in range(4)])
    assert [received(each) for each in next_[:3]] == [payload("2"), payload("3"), payload("4")]
    the(TimerSet, next_[3])
    await check_invariants(harness.store)


async def test_a_run_that_tries_again_still_has_it(harness: StoreHarness) -> None:
    """The wait stays in its history."""
    holding = await harness.running(retry=STEADY)
    await harness.do(wait_signal(holding, "item", step_id="a"))
    await harness.signal(holding.run, "item", "1")
    closed = the(RunClosed, await harness.do(fail_run(holding, open_waits=["a"])))
    assert closed.status == RunStatus.SLEEPING
    assert await outputs(harness, holding) == {"a": "1"}


async def test_a_failed_run_that_is_retried_gets_it_again(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.write(*[wait_signal(holding, "item", step_id=name) for name in "ab"])
    for value in ("1", "2", "3"):
        await harness.signal(holding.run, "item", value)
    await harness.do(fail_run(holding, open_waits=["a", "b"]))
    await harness.store.retry_run(holding.run, "", "again", harness.now)
    claimed = await harness.claim_one()
    steps = by_id(claimed.history.steps)
    assert [steps[name].output for name in "ab"] == [payload("1"), payload("2")]
    assert steps["a"].seq < steps["b"].seq
    again = leased(claimed)
    assert received(await harness.do(wait_signal(again, "item", step_id="c"))) == payload("3")
    await harness.do(wait_signal(again, "item", step_id="d"))
    await harness.do(park(again, "d"))
    await check_invariants(harness.store)

"""The race record is durable before `race` returns and closes the losers in the same transaction."""

import json

import pytest

from kagzi.core.error_details import ErrorCode
from kagzi.core.run.outcomes import Known, LeaseLost, Parked, Recorded, TimerSet
from kagzi.core.states import RunStatus, StepKind, StepStatus

from .invariants import check_invariants
from .verbs import (
    STEADY,
    StoreHarness,
    begin,
    by_id,
    complete,
    complete_run,
    fail,
    fetch,
    finish,
    hand_back,
    leased,
    park,
    race,
    refused,
    sleep,
    stale,
    the,
    wait_signal,
)

S = StepStatus


async def test_the_winner_is_recorded_and_the_losers_are_closed(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.write(
        begin(holding, "a"),
        begin(holding, "b"),
        sleep(holding, "nap", s=60),
        wait_signal(holding, "approved", s=90),
        complete(holding, "a"),
    )
    before = harness.store.transactions
    harness.clock.advance(s=1)
    decided = the(Recorded, await harness.do(race(holding, "race", "a", "b", "nap", "approved")))
    assert harness.store.transactions - before <= 2
    steps = await harness.steps(holding.run)
    record = steps["race"]
    assert (record.kind, record.status, record.seq) == (StepKind.RACE, S.COMPLETED, decided.seq)
    assert record.output is not None
    assert json.loads(record.output.data) == "a"
    assert steps["a"].status == S.COMPLETED
    for name in ("b", "nap", "approved"):
        assert (steps[name].status, steps[name].finished_at) == (S.ABANDONED, harness.now)
        assert (steps[name].output, steps[name].error) == (None, None)
    await check_invariants(harness.store)


async def test_the_waits_of_losers_are_gone(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.write(sleep(holding, "nap", s=60), wait_signal(holding, "approved", s=30))
    await harness.write(begin(holding, "retrying", retry=STEADY), fail(holding, "retrying"))
    await harness.do(race(holding, "race", "winner", "nap", "approved", "retrying"))
    error = refused(await harness.do(park(holding, "nap")), ErrorCode.PRECONDITION_FAILED)
    assert "nothing to wait for" in error.message
    the(TimerSet, await harness.do(sleep(holding, "later", s=600)))
    assert the(Parked, await harness.do(park(holding, "later"))).wake_at == harness.now + 600_000_000
    assert (await harness.run(holding.run)).waits == ("later",)
    harness.clock.advance(s=120)
    assert (await harness.fire()).pending == ()
    steps = await harness.steps(holding.run)
    assert {steps[name].status for name in ("nap", "approved", "retrying")} == {S.ABANDONED}


async def test_a_signal_is_never_bound_to_a_loser(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.write(wait_signal(holding), race(holding, "race", "other", "approved"))
    assert not (await harness.signal(holding.run, value="kept")).delivered
    assert (await harness.steps(holding.run))["approved"].status == S.ABANDONED
    await harness.do(wait_signal(holding, step_id="approved#2"))
    step = (await harness.steps(holding.run))["approved#2"]
    assert step.output is not None
    assert step.output.data == b"kept"


async def test_a_loser_that_has_a_result_keeps_it(harness: StoreHarness) -> None:
    holding = await harness.running()
    first, second = await harness.done(holding, "a", "1"), await harness.done(holding, "b", "2")
    await harness.do(race(holding, "race", "a", "b"))
    steps = await harness.steps(holding.run)
    assert (steps["b"].status, steps["b"].seq) == (S.COMPLETED, second.seq)
    assert steps["a"].seq == first.seq


async def test_a_loser_takes_no_result_any_more(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.write(begin(holding, "b"), sleep(holding, "nap", s=1), race(holding, "race", "a", "b", "nap"))
    before = await harness.steps(holding.run)
    harness.clock.advance(s=2)
    for command in (complete(holding, "b"), fail(holding, "b"), finish(holding, "nap")):
        outcome = await harness.do(command)
        assert not isinstance(outcome, Recorded), f"{command} came to {outcome}"
    assert await harness.steps(holding.run) == before
    answer = await harness.do(fetch(holding))
    names = [step.step_id for step in answer.results]  # type: ignore[union-attr]
    assert "nap" not in names
    assert "b" not in names


async def test_a_loser_that_never_began_is_no_loss(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.done(holding, "a")
    the(Recorded, await harness.do(race(holding, "race", "a", "never begun")))
    assert set(await harness.steps(holding.run)) == {"a", "race"}


@pytest.mark.parametrize("again", ["same lease", "next lease"])
async def test_a_repeated_decision_answers_the_first(harness: StoreHarness, again: str) -> None:
    holding = await harness.running()
    await harness.write(begin(holding, "a"), begin(holding, "b"))
    decided = the(Recorded, await harness.do(race(holding, "race", "a", "b")))
    if again == "next lease":
        holding = await harness.take_over(holding)
    outcome = await harness.do(race(holding, "race", "b", "a"))
    seq = outcome.step.seq if isinstance(outcome, Known) else the(Recorded, outcome).seq
    assert seq == decided.seq
    steps = await harness.steps(holding.run)
    assert steps["race"].output is not None
    assert json.loads(steps["race"].output.data) == "a"
    assert (steps["a"].status, steps["b"].status) == (S.RUNNING, S.ABANDONED)


async def test_replay_gets_the_race_and_its_losers(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.write(begin(holding, "a"), begin(holding, "b"), complete(holding, "a"))
    await harness.write(race(holding, "race", "a", "b"), hand_back(holding))
    claimed = await harness.claim_one()
    steps = by_id(claimed.history.steps)
    assert steps["race"].output is not None
    assert json.loads(steps["race"].output.data) == "a"
    assert steps["b"].status == S.ABANDONED
    assert steps["a"].seq < steps["race"].seq
    await harness.do(complete_run(leased(claimed)))


async def test_the_run_may_end_with_its_race(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.write(begin(holding, "a"), begin(holding, "b"))
    outcomes = await harness.write(complete(holding, "a"), race(holding, "race", "a", "b"), complete_run(holding))
    assert (await harness.run(holding.run)).status == RunStatus.COMPLETED
    assert (await harness.steps(holding.run))["b"].status == S.ABANDONED
    assert len(outcomes) == 3


async def test_children_become_due_by_the_race_and_not_by_what_follows(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.child(holding, "child")
    await harness.write(begin(holding, "a"), complete(holding, "a"))
    await harness.write(race(holding, "race", "a", "child"))
    assert harness.effects.children_due
    await harness.write(begin(holding, "b"), fail(holding, "b"))
    assert not harness.effects.children_due


async def test_only_the_holder_decides(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.write(begin(holding, "a"), begin(holding, "race#2"))
    assert await harness.do(race(stale(holding), "race", "x", "a")) == LeaseLost()
    refused(await harness.do(race(holding, "race#2", "x", "a")), ErrorCode.PRECONDITION_FAILED)
    assert (await harness.steps(holding.run))["a"].status == S.RUNNING

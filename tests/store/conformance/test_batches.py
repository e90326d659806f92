"""Nothing blocks its neighbours (P12): each command of a batch is recorded or refused on its own, in order, in few
commits."""

from collections.abc import Callable

import msgspec
import pytest

from kagzi.core.error_details import ErrorCode
from kagzi.core.records import Lease, RunFilter, RunKey, RunLease
from kagzi.core.run.commands import Command
from kagzi.core.run.outcomes import (
    Begun,
    Existing,
    LeaseLost,
    NotParked,
    Outcome,
    Parked,
    Recorded,
    RetryScheduled,
    RunClosed,
    RunNotFound,
    Started,
)
from kagzi.core.run.refusals import never_begun, unstorable
from kagzi.core.states import RunStatus

from .verbs import (
    BOOM,
    StoreHarness,
    begin,
    complete,
    complete_run,
    fail,
    fail_run,
    leased,
    park,
    payload,
    refused,
    sleep,
    stale,
    the,
)

NUL = "nul\x00inside"
SURROGATE = "half \ud800 a message"


async def many_running(harness: StoreHarness, count: int) -> list[RunLease]:
    await harness.start_many(count)
    return [leased(one) for one in await harness.claim(limit=count)]


async def test_an_empty_batch_is_nothing(harness: StoreHarness) -> None:
    assert await harness.write() == []


@pytest.mark.parametrize("culprit", ["stale", "unknown run", "unknown step", "foreign namespace"])
async def test_one_refused_in_the_middle_of_a_hundred_leaves_ninety_nine(harness: StoreHarness, culprit: str) -> None:
    holdings = await many_running(harness, 100)
    await harness.write(*(begin(holding, "a") for holding in holdings))
    commands: list[Command] = [complete(holding, "a", f"output {n}") for n, holding in enumerate(holdings)]
    bad = holdings[50]
    commands[50] = {
        "stale": complete(stale(bad), "a", "ghost"),
        "unknown run": complete(RunLease(RunKey("default", harness.ids.run_id(0)), Lease(1, 1)), "a"),
        "unknown step": complete(bad, "never begun"),
        "foreign namespace": complete(RunLease(RunKey("elsewhere", bad.run.run_id), bad.lease), "a"),
    }[culprit]
    outcomes = await harness.write(*commands)
    expected = {
        "stale": LeaseLost(),
        "unknown run": RunNotFound(),
        "unknown step": never_begun("never begun"),
        "foreign namespace": RunNotFound(),
    }
    assert outcomes.pop(50) == expected[culprit]
    assert all(isinstance(outcome, Recorded) for outcome in outcomes)
    for n, holding in enumerate(holdings):
        step = (await harness.steps(holding.run))["a"]
        assert step.output == (None if n == 50 else payload(f"output {n}"))


FIELDS = {
    "step id": "step_id",
    "step name": "name",
    "error": "error",
    "workflow id": "workflow_id",
    "workflow type": "workflow_type",
    "namespace": "namespace",
    "request id": "request_id",
    "label": "labels",
    "version": "version",
    "run id": "run_id",
}


def bad_text_commands(harness: StoreHarness, holding: RunLease, text: str) -> dict[str, Command]:
    return {
        "step id": begin(holding, text),
        "step name": begin(holding, "named", name=text),
        "error": fail(holding, "open", msgspec.structs.replace(BOOM, message=text)),
        "workflow id": harness.start_command(text),
        "workflow type": harness.start_command(workflow_type=text),
        "namespace": harness.start_command(namespace=text),
        "request id": harness.start_command(request_id=text),
        "label": harness.start_command(labels={"team": text}),
        "version": harness.start_command(version=text),
        "run id": begin(RunLease(RunKey("default", text), holding.lease), "a"),
    }


@pytest.mark.parametrize("text", [NUL, SURROGATE], ids=["NUL", "surrogate"])
@pytest.mark.parametrize("field", FIELDS)
async def test_text_that_cannot_be_stored_is_refused_alone(harness: StoreHarness, field: str, text: str) -> None:
    holdings = await many_running(harness, 10)
    bad = await harness.running()
    await harness.do(begin(bad, "open"))
    commands: list[Command] = []
    for n, holding in enumerate(holdings):
        commands += [begin(holding, "a"), complete(holding, "a", f"{n}")]
    commands.insert(7, bad_text_commands(harness, bad, text)[field])
    outcomes = await harness.write(*commands, harness.start_command("neighbour"))
    culprit = outcomes.pop(7)
    assert isinstance(outcomes.pop(), Started)
    assert [type(outcome) for outcome in outcomes] == [Begun, Recorded] * 10
    for n, holding in enumerate(holdings):
        assert (await harness.steps(holding.run))["a"].output == payload(f"{n}")
    if field == "error" and text == NUL:
        the(RetryScheduled, culprit)  # errors are JSON, where a NUL is escaped
    elif field == "run id":
        assert culprit == RunNotFound()  # there is no such run
    else:
        assert culprit == unstorable(FIELDS[field])
    the(Begun, await harness.do(begin(bad, "goes on")))


async def test_a_hundred_completions_cost_at_most_three_transactions(harness: StoreHarness) -> None:
    holdings = await many_running(harness, 100)
    await harness.write(*(begin(holding, "a") for holding in holdings))
    before = harness.store.transactions
    outcomes = await harness.write(*(complete(holding, "a") for holding in holdings))
    assert harness.store.transactions - before <= 3
    assert all(isinstance(outcome, Recorded) for outcome in outcomes)


async def test_a_hundred_begins_and_completions_of_steps_cost_at_most_three_transactions(harness: StoreHarness) -> None:
    holdings = await many_running(harness, 50)
    before = harness.store.transactions
    await harness.write(*(command for holding in holdings for command in (begin(holding, "a"), complete(holding, "a"))))
    assert harness.store.transactions - before <= 3


async def test_a_fan_out_of_one_run_costs_at_most_three_transactions(harness: StoreHarness) -> None:
    holding = await harness.running()
    names = [f"map[{n}]/work" for n in range(100)]
    before = harness.store.transactions
    await harness.write(*(begin(holding, name) for name in names))
    outcomes = await harness.write(*(complete(holding, name) for name in names))
    assert harness.store.transactions - before <= 2 * 3
    seqs = [the(Recorded, outcome).seq for outcome in outcomes]
    assert seqs == sorted(set(seqs)), "results of one run keep the order in which they were told"


async def test_a_hundred_starts_cost_at_most_three_transactions(harness: StoreHarness) -> None:
    before = harness.store.transactions
    await harness.start_many(100)
    assert harness.store.transactions - before <= 3


async def test_commands_of_one_run_take_effect_in_order(harness: StoreHarness) -> None:
    holding, other = await harness.running(), await harness.running()
    outcomes = await harness.write(
        begin(holding, "a"),
        begin(other, "a"),
        begin(holding, "b"),
        complete(holding, "b", "b first"),
        complete(other, "a"),
        complete(holding, "a", "then a"),
        sleep(holding, "nap", s=60),
        sleep(holding, "past", s=0),
        complete_run(other),
    )
    seqs = [outcomes[n].seq for n in (0, 2, 3, 5, 6, 7)]  # type: ignore[union-attr]
    assert seqs == sorted(set(seqs))
    assert the(RunClosed, outcomes[8]).status == RunStatus.COMPLETED
    steps = await harness.steps(holding.run)
    assert steps["b"].seq < steps["a"].seq < steps["past"].seq


async def test_what_follows_a_park_in_the_same_batch_is_refused_and_what_precedes_it_counts(
    harness: StoreHarness,
) -> None:
    holding = await harness.running()
    outcomes = await harness.write(
        begin(holding, "a"),
        complete(holding, "a"),
        sleep(holding, "nap", s=60),
        park(holding, "nap"),
        begin(holding, "after"),
    )
    the(Parked, outcomes[3])
    assert outcomes[4] == LeaseLost()
    assert set(await harness.steps(holding.run)) == {"a", "nap"}


async def test_a_park_that_is_refused_does_not_stop_the_batch(harness: StoreHarness) -> None:
    holding = await harness.running()
    outcomes = await harness.write(
        sleep(holding, "nap", s=60),
        begin(holding, "a"),
        complete(holding, "a"),
        park(holding, "nap", known_seq=0),
        begin(holding, "b"),
    )
    assert [step.step_id for step in the(NotParked, outcomes[3]).results] == ["a"]
    the(Begun, outcomes[4])


@pytest.mark.parametrize("ending", [fail_run, complete_run], ids=["failed", "completed"])
async def test_a_start_before_the_end_of_the_run_with_its_id_gets_that_run(
    harness: StoreHarness, ending: Callable[[RunLease], Command]
) -> None:
    holding = await harness.running(workflow_id="order-2")
    existing, closed = await harness.write(harness.start_command("order-2"), ending(holding))
    assert (the(Existing, existing).run_id, type(closed)) == (holding.run.run_id, RunClosed)


async def test_a_batch_of_everything_answers_each_its_own(harness: StoreHarness) -> None:
    one, two, three = await many_running(harness, 3)
    outcomes: list[Outcome] = await harness.write(
        harness.start_command("new"),
        begin(one, "a"),
        complete(stale(two), "a"),
        complete_run(two, "two"),
        harness.start_command("new"),
        complete(one, "a"),
        complete(three, "never"),
        sleep(three, "nap", s=5),
        park(three, "nap"),
        complete_run(one, "one"),
        complete_run(three),
    )
    kinds = "Started Begun LeaseLost RunClosed Existing Recorded Refused TimerSet Parked RunClosed LeaseLost"
    assert [type(outcome).__name__ for outcome in outcomes] == kinds.split()
    refused(outcomes[6], ErrorCode.PRECONDITION_FAILED)


async def test_a_thousand_starts_at_once(harness: StoreHarness) -> None:
    runs = await harness.start_many(1_000, labels={"batch": "big"})
    assert len(set(runs)) == 1_000
    assert await harness.store.count_runs("default", RunFilter(labels={"batch": "big"}), 10_000) == 1_000

"""RecordStep is BeginStep and CompleteStep in one command: whatever was there before, it comes to the same outcome, the
same rows and the same numbers."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from kagzi.core.error_details import ErrorCode
from kagzi.core.limits import PAYLOAD_BYTES
from kagzi.core.records import Payload, RunKey, RunLease
from kagzi.core.run.commands import BeginStep, Command, CompleteStep, RecordStep
from kagzi.core.run.outcomes import Begun, Known, LeaseLost, Outcome, Recorded, Refused, RetryScheduled, RunClosed
from kagzi.core.run.refusals import unstorable
from kagzi.core.states import RunStatus, StepStatus

from .places import Place
from .test_alike_repeats import LEAVINGS, SITUATIONS, STEPS, batches, claim_all
from .test_steps import limit_steps
from .verbs import (
    AT_ONCE,
    StoreHarness,
    begin,
    complete,
    complete_run,
    fail,
    hand_back,
    payload,
    record,
    refused,
    sleep,
    stale,
    the,
)

CASES = [(state, attempt) for state in STEPS for attempt in (0, 1, 2)]
_ONE_RUN = RunKey("default", "")
OPTIONS: dict[str, Any] = {"name": "charge", "retry": AT_ONCE, "timeout_ms": 5_000, "input": Payload(b"7", {"a": "b"})}


async def prepare(harness: StoreHarness, situation: str) -> list[RunLease]:
    """Two runs for each case, with the step as the case wants it, in the hands of the one who speaks next."""
    states = [STEPS[state] for state, _ in (*CASES, *CASES)]
    runs = await harness.start_many(len(states))
    first = await claim_all(harness)
    old = [first[run.run_id] for run in runs]
    for place in range(max(map(len, STEPS.values()))):
        pairs = zip(states, old, strict=True)
        for batch in batches([made[place](token) for made, token in pairs if place < len(made)]):
            await harness.write(*batch)
    harness.clock.advance(s=1)
    if situation in LEAVINGS:
        for batch in batches([LEAVINGS[situation](token) for token in old]):
            await harness.write(*batch)
    elif situation == "cancelled":
        for run in runs:
            await harness.cancel(run, "enough")
    elif situation != "held":
        harness.clock.advance(s=7_200)
        while (await harness.fire(claim_cap=100)).more:
            pass
        if situation.endswith("new holder"):
            new = await claim_all(harness)
            return [new[run.run_id] for run in runs]
    return old


def as_one(outcomes: Sequence[Outcome], run_id: str) -> object:
    """What a pair of commands comes to, as one: the refusal of the begin, or the outcome of the completion."""
    outcome = outcomes[-1] if isinstance(outcomes[0], (Begun, Known, Recorded)) else outcomes[0]
    if isinstance(outcome, Refused):
        error = msgspec.structs.replace(outcome.error, message=outcome.error.message.replace(run_id, "RUN"))
        return msgspec.structs.replace(error, subject_id=error.subject_id.replace(run_id, "RUN"))
    return outcome


@pytest.mark.parametrize("situation", [each for each in SITUATIONS if each not in ("parked", "failed", "diverged")])
async def test_it_is_a_begin_and_a_completion(harness: StoreHarness, situation: str) -> None:
    holdings = await prepare(harness, situation)
    pairs, single = holdings[: len(CASES)], holdings[len(CASES) :]
    cases = list(zip(CASES, pairs, single, strict=True))
    begun = await harness.write(*(begin(twin, "x", attempt, **OPTIONS) for (_, attempt), twin, _ in cases))
    completed = await harness.write(*(complete(twin, "x", attempt=attempt) for (_, attempt), twin, _ in cases))
    outcomes = await harness.write(
        *(record(holding, "x", attempt=attempt, **OPTIONS) for (_, attempt), _, holding in cases)
    )
    for (case, twin, holding), *pair, outcome in zip(cases, begun, completed, outcomes, strict=True):
        assert as_one([outcome], holding.run.run_id) == as_one(pair, twin.run.run_id), case
        assert await what_is_seen(harness, holding) == await what_is_seen(harness, twin), case


async def what_is_seen(harness: StoreHarness, holding: RunLease) -> object:
    """Two runs that were claimed at once differ by their ids only."""
    run, steps = await harness.picture(holding.run)
    return (run.status, run.attempt, run.lost_leases, run.finished_at), [
        msgspec.structs.replace(step, run=_ONE_RUN) for step in steps.values()
    ]


async def test_it_takes_two_numbers_and_the_next_command_the_third(harness: StoreHarness) -> None:
    holding = await harness.running()
    outcomes = await harness.write(
        record(holding, "a"), begin(holding, "b"), record(holding, "c"), sleep(holding, "d", s=9)
    )
    assert [outcome.seq for outcome in outcomes if hasattr(outcome, "seq")] == [2, 3, 5, 6]
    steps = await harness.steps(holding.run)
    assert {name: (step.begun_seq, step.seq) for name, step in steps.items()} == {
        "a": (1, 2),
        "b": (3, 0),
        "c": (4, 5),
        "d": (6, 0),
    }


# --- repeats ----------------------------------------------------------------------------------------------------------


async def test_repeated_it_is_answered_as_before(harness: StoreHarness) -> None:
    holding = await harness.running()
    first = the(Recorded, await harness.do(record(holding, "a")))
    picture = await harness.picture(holding.run)
    harness.clock.advance(s=1)
    assert await harness.do(record(holding, "a")) == first
    assert (await harness.write(record(holding, "a"), record(holding, "a", "another output"))) == [first, first]
    assert await harness.picture(holding.run) == picture
    assert the(Recorded, await harness.do(record(holding, "b"))).seq == first.seq + 2, "repeats burn no numbers"


async def test_a_message_is_repeated_whole(harness: StoreHarness) -> None:
    """As a worker does after a reconnect: all that it sent is sent again, in its order."""
    holding = await harness.running()
    message = [record(holding, "a"), begin(holding, "b"), record(holding, "c"), complete_run(holding)]
    outcomes = await harness.write(*message)
    picture = await harness.picture(holding.run)
    again = await harness.write(*message)
    assert [type(outcome) for outcome in again] == [Recorded, LeaseLost, Recorded, RunClosed]
    assert [again[0], again[2], again[3]] == [outcomes[0], outcomes[2], outcomes[3]]
    assert await harness.picture(holding.run) == picture


@pytest.mark.parametrize("together", [True, False])
async def test_after_a_begin_that_was_recorded_it_completes_that(harness: StoreHarness, together: bool) -> None:
    holding = await harness.running()
    commands = [begin(holding, "a"), record(holding, "a")]
    outcomes = await harness.write(*commands) if together else [await harness.do(command) for command in commands]
    assert the(Recorded, outcomes[1]).seq == 2
    step = (await harness.steps(holding.run))["a"]
    assert (step.begun_seq, step.seq, step.status) == (1, 2, StepStatus.COMPLETED)


async def test_begin_and_completion_after_it_are_repeats(harness: StoreHarness) -> None:
    """The same operations, unfolded for a server that does not know this one."""
    holding = await harness.running()
    recorded = await harness.do(record(holding, "a"))
    known, repeated = await harness.write(begin(holding, "a"), complete(holding, "a"))
    assert the(Known, known).step.begun_seq == 1
    assert repeated == recorded


async def test_a_later_attempt_is_recorded_as_such(harness: StoreHarness) -> None:
    holding = await harness.running()
    _, failed = await harness.write(begin(holding, "a", retry=AT_ONCE), fail(holding, "a"))
    assert the(RetryScheduled, failed).next_attempt == 2
    refused(await harness.do(record(holding, "a", attempt=1)), ErrorCode.PRECONDITION_FAILED)
    the(Recorded, await harness.do(record(holding, "a", "second", attempt=2)))
    step = (await harness.steps(holding.run))["a"]
    assert (step.attempt, step.output) == (2, payload("second"))
    assert [each.attempt for each in step.attempts] == [1]


# --- refusals ---------------------------------------------------------------------------------------------------------


async def test_a_lost_lease_records_nothing(harness: StoreHarness) -> None:
    old = await harness.running()
    the(Begun, await harness.do(begin(old, "begun")))
    new = await harness.take_over(old)
    picture = await harness.picture(old.run)
    for holding in (old, stale(new)):
        outcomes = await harness.write(record(holding, "a"), record(holding, "begun"))
        assert outcomes == [LeaseLost(), LeaseLost()]
    assert await harness.picture(old.run) == picture
    seqs = [the(Recorded, outcome).seq for outcome in await harness.write(record(new, "begun"), record(new, "a"))]
    steps = await harness.steps(old.run)
    assert [steps[name].seq for name in ("begun", "a")] == seqs
    assert steps["begun"].attempt == 1, "a lost worker is not a failed attempt"


async def test_what_its_old_holder_recorded_is_not_recorded_again(harness: StoreHarness) -> None:
    old = await harness.running()
    await harness.do(record(old, "a", "first"))
    new = await harness.take_over(old)
    refused(await harness.do(record(new, "a", "second")), ErrorCode.PRECONDITION_FAILED)
    the(Recorded, await harness.do(record(old, "a", "first")))
    assert (await harness.steps(old.run))["a"].output == payload("first")


async def test_a_run_that_is_to_be_cancelled_records_cleanups_only(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.cancel(holding.run, "enough")
    end = msgspec.structs.replace(complete_run(holding), after_step="a")
    outcomes = await harness.write(record(holding, "a"), end, record(holding, "undo", cleanup=True))
    for outcome in outcomes[:2]:
        assert refused(outcome, ErrorCode.CANCELLED).metadata["reason"] == "enough"
    the(Recorded, outcomes[2])
    assert set(await harness.steps(holding.run)) == {"undo"}


async def test_it_ends_a_run_in_one_batch(harness: StoreHarness) -> None:
    holding = await harness.running()
    end = msgspec.structs.replace(complete_run(holding), after_step="a")
    recorded, closed = await harness.write(record(holding, "a"), end)
    assert (the(Recorded, recorded).seq, the(RunClosed, closed).seq) == (2, 3)
    assert (await harness.run(holding.run)).status is RunStatus.COMPLETED


async def test_a_run_that_is_to_be_paused_still_records(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.pause(holding.run)
    the(Recorded, await harness.do(record(holding, "a")))
    the(RunClosed, await harness.do(hand_back(holding)))
    assert (await harness.run(holding.run)).status is RunStatus.PAUSED
    assert await harness.do(record(holding, "b")) == LeaseLost()
    assert set(await harness.steps(holding.run)) == {"a"}


async def test_it_counts_as_one_step(harness: StoreHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    limit_steps(monkeypatch, 3)
    holding = await harness.running()
    outcomes = await harness.write(*(record(holding, f"s{number}") for number in range(4)))
    assert [type(outcome) for outcome in outcomes] == [Recorded, Recorded, Recorded, Refused]
    refused(outcomes[3], ErrorCode.RESOURCE_EXHAUSTED)
    assert the(Recorded, await harness.do(record(holding, "s1"))) == outcomes[1], "a repeat is not one more"


async def test_the_largest_input_and_output_are_kept(harness: StoreHarness) -> None:
    holding = await harness.running()
    large = Payload(b"x" * PAYLOAD_BYTES)
    the(Recorded, await harness.do(record(holding, "a", large, input=large)))
    step = (await harness.steps(holding.run))["a"]
    assert (step.input, step.output) == (large, large)


@pytest.mark.parametrize(
    ("field", "command"),
    [
        ("name", {"name": "half \ud800"}),
        ("output.metadata", {"output": Payload(b"1", {"note": "half \ud800"})}),
        ("parent_step_id", {"parent_step_id": "a\0b"}),
    ],
)
async def test_what_cannot_be_stored_is_refused_alone(
    harness: StoreHarness, field: str, command: dict[str, Any]
) -> None:
    holding, neighbour = await harness.running(), await harness.running()
    outcomes = await harness.write(record(neighbour, "a"), record(holding, "b", **command), record(neighbour, "c"))
    assert outcomes[1] == unstorable(field)
    assert [the(Recorded, outcome).seq for outcome in (outcomes[0], outcomes[2])] == [2, 4]
    assert not await harness.steps(holding.run)


# --- with others ------------------------------------------------------------------------------------------------------


async def test_a_batch_of_all_kinds_keeps_the_order_of_each_run(harness: StoreHarness) -> None:
    one, two = await harness.running(), await harness.running()
    await harness.do(begin(two, "old"))
    outcomes = await harness.write(
        begin(one, "a"),
        record(two, "x"),
        record(one, "b"),
        complete(two, "old"),
        complete(one, "a"),
        record(two, "y"),
        sleep(one, "nap", s=60),
        record(one, "c"),
    )
    assert [getattr(outcome, "seq", 0) for outcome in outcomes] == [1, 3, 3, 4, 4, 6, 5, 7]
    steps = await harness.steps(one.run)
    assert [(steps[name].begun_seq, steps[name].seq) for name in ("a", "b", "nap", "c")] == [
        (1, 4),
        (2, 3),
        (5, 0),
        (6, 7),
    ]


@pytest.mark.parametrize("closing", [False, True])
async def test_a_batch_of_them_is_one_transaction_and_few_statements(harness: StoreHarness, closing: bool) -> None:
    holdings = [await harness.running() for _ in range(50)]
    await harness.do(begin(holdings[0], "open"))
    commands: list[Command] = []
    for holding in holdings:
        commands.append(record(holding, "a"))
        if closing:
            commands.append(msgspec.structs.replace(complete_run(holding), after_step="a"))
    store = harness.store
    statements, transactions = store.statements, store.transactions
    outcomes = await harness.write(*commands)
    assert all(isinstance(outcome, (Recorded, RunClosed)) for outcome in outcomes)
    assert store.transactions - transactions == 1
    # SQLite writes 64, 32, 16 ... rows of steps at once, and then the rows of the runs.
    assert store.statements - statements <= (1 if store.name == "postgresql" else 6)


async def test_with_a_begin_in_the_batch_it_is_still_one_transaction(harness: StoreHarness) -> None:
    holdings = [await harness.running() for _ in range(6)]
    statements, transactions = harness.store.statements, harness.store.transactions
    commands: list[Command] = [record(holding, "a") for holding in holdings[:3]]
    commands += [begin(holding, "a") for holding in holdings[3:]]
    outcomes = await harness.write(*commands)
    assert [type(outcome) for outcome in outcomes] == [Recorded] * 3 + [Begun] * 3
    assert harness.store.transactions - transactions == 1
    assert harness.store.statements - statements <= (1 if harness.store.name == "postgresql" else 4)


async def test_two_servers_record_a_step_once(postgres_alone: Place, clock: Any, ids: Any) -> None:
    """The worker lost its server in the middle and says it again to another one."""
    first = StoreHarness(await postgres_alone.open(), clock, ids)
    second = StoreHarness(await postgres_alone.open(), clock, ids)
    holding = await first.running()
    recorded = await first.do(record(holding, "a"))
    assert await second.do(record(holding, "a")) == recorded
    assert the(Recorded, await second.do(record(holding, "b"))).seq == 4
    assert the(Recorded, await first.do(record(holding, "c"))).seq == 6
    new = await second.take_over(holding)
    assert await first.do(record(holding, "d")) == LeaseLost()
    the(Recorded, await first.do(record(new, "d")))
    assert [step.seq for step in (await second.steps(holding.run)).values()] == [2, 4, 6, 9]


def test_it_has_what_a_begin_and_a_completion_have() -> None:
    both = {*BeginStep.__struct_fields__, *CompleteStep.__struct_fields__}
    assert set(RecordStep.__struct_fields__) == both - {"once"}

"""Same id, same run (P8): for any number of callers, for repeated requests, in any state."""

import asyncio
from collections.abc import Sequence

import pytest

from kagzi.core.error_details import ErrorCode, ErrorKind
from kagzi.core.records import Lease, NamespaceRecord, Payload, RunKey, RunLease
from kagzi.core.retry.policy import RetryPolicy
from kagzi.core.run.commands import Command, OnConflict
from kagzi.core.run.outcomes import Busy, Existing, LeaseLost, Outcome, Recorded, RunClosed, Started
from kagzi.core.states import RunStatus, WaitReason

from .verbs import DAY_US, LEASE_US, StoreHarness, begin, complete, complete_run, fail_run, payload, refused, the

S = RunStatus


async def settled(harness: StoreHarness, *commands: Command) -> list[Outcome]:
    """Outcomes of a racing batch: what was Busy is tried again, as the engine does."""
    outcomes = list(await harness.write(*commands))
    for _ in range(50):
        busy = [n for n, outcome in enumerate(outcomes) if isinstance(outcome, Busy)]
        if not busy:
            return outcomes
        for n, outcome in zip(busy, await harness.write(*(commands[n] for n in busy)), strict=True):
            outcomes[n] = outcome
    raise AssertionError("still busy after 50 tries")


async def end(harness: StoreHarness, run: RunKey, status: RunStatus) -> None:
    (claimed,) = [one for one in await harness.claim(namespace=run.namespace) if one.run == run]
    holding = RunLease(claimed.run, claimed.lease)
    if status == S.CANCELLED:
        await harness.store.cancel_run(run, "", harness.now, harness.now)
        await harness.fire()
    else:
        the(RunClosed, await harness.do(complete_run(holding) if status == S.COMPLETED else fail_run(holding)))
    assert (await harness.run(run)).status == status


async def test_a_start_is_kept_with_all_it_came_with(harness: StoreHarness) -> None:
    policy = RetryPolicy(maximum_attempts=7, non_retryable_errors=("A", "B"), jitter=0.5)
    command = harness.start_command(
        "order-1",
        input=Payload(b"\x00\xff raw", {"encoding": "bytes"}),
        context=Payload(b"{}", {"traceparent": "00-1"}),
        version="2024.1",
        labels={"team": "blå", "quote'\"": "; drop table runs --"},
        priority=-3,
        deadline_at=harness.now + DAY_US,
        retry=policy,
    )
    assert await harness.do(command) == Started(command.run.run_id, "order-1", S.PENDING, harness.now)
    record = await harness.run(command.run)
    assert record == await harness.store.get_run("default", workflow_id="order-1")
    assert record.run == command.run
    assert (record.workflow_id, record.workflow_type, record.version) == ("order-1", "hello", "2024.1")
    assert (record.status, record.wait_reason, record.wake_at) == (S.PENDING, None, None)
    assert (record.attempt, record.last_seq, record.lost_leases) == (1, 0, 0)
    assert (record.created_at, record.started_at, record.finished_at) == (harness.now, None, None)
    assert record.labels == command.labels
    assert (record.priority, record.retry, record.deadline_at) == (-3, policy, harness.now + DAY_US)
    assert (record.input, record.context, record.output) == (command.input, command.context, None)
    assert (record.error, record.problem, record.worker_id, record.cancel_requested) == (None, None, None, False)


@pytest.mark.parametrize(
    "value", [None, Payload(b""), Payload(b"null"), Payload(b"x" * 2_000_000), Payload(b"{}", {"a": "b"})]
)
async def test_an_input_comes_back_as_it_was(harness: StoreHarness, value: Payload | None) -> None:
    run = await harness.start(input=value)
    stored = (await harness.run(run)).input
    assert (stored is None) == (value is None)
    assert (stored.data if stored else None) == (value.data if value else None)
    assert dict((stored and stored.metadata) or {}) == dict((value and value.metadata) or {})
    assert (await harness.claim_one()).input == stored


async def test_the_id_of_an_active_run_answers_that_run_and_keeps_its_input(harness: StoreHarness) -> None:
    run = await harness.start("order-1", input=payload("first"))
    again = await harness.do(harness.start_command("order-1", input=payload("second")))
    assert again == Existing(run.run_id, "order-1", S.PENDING)
    assert (await harness.run(run)).input == payload("first")
    assert len(await harness.runs()) == 1


async def test_an_active_run_is_active_in_every_open_state(harness: StoreHarness) -> None:
    delayed = await harness.start("delayed", start_at=harness.now + DAY_US)
    running = await harness.running(workflow_id="running")
    asleep = await harness.asleep(workflow_id="asleep")
    outcomes = await harness.write(*(harness.start_command(name) for name in ("delayed", "running", "asleep")))
    assert outcomes == [
        Existing(delayed.run_id, "delayed", S.SLEEPING),
        Existing(running.run.run_id, "running", S.RUNNING),
        Existing(asleep.run.run_id, "asleep", S.SLEEPING),
    ]


@pytest.mark.parametrize(
    ("on_conflict", "ended", "reused"),
    [
        ("existing", S.COMPLETED, False),
        ("existing", S.FAILED, False),
        ("existing_or_completed", S.COMPLETED, True),
        ("existing_or_completed", S.FAILED, False),
        ("existing_or_completed", S.CANCELLED, False),
        ("fail", S.COMPLETED, False),
        ("replace", S.FAILED, False),
    ],
)
async def test_the_id_of_an_ended_run(
    harness: StoreHarness, on_conflict: OnConflict, ended: RunStatus, reused: bool
) -> None:
    run = await harness.start("order-1")
    await end(harness, run, ended)
    outcome = await harness.do(harness.start_command("order-1", on_conflict=on_conflict))
    if reused:
        assert outcome == Existing(run.run_id, "order-1", ended)
    else:
        new = the(Started, outcome)
        assert new.run_id != run.run_id
        latest = await harness.store.get_run("default", workflow_id="order-1")
        assert latest is not None
        assert latest.run.run_id == new.run_id
    assert (await harness.run(run)).status == ended


async def test_existing_or_completed_prefers_the_active_run(harness: StoreHarness) -> None:
    await end(harness, await harness.start("order-1"), S.COMPLETED)
    active = await harness.start("order-1")
    outcome = await harness.do(harness.start_command("order-1", on_conflict="existing_or_completed"))
    assert outcome == Existing(active.run_id, "order-1", S.PENDING)


async def test_fail_refuses_a_taken_id(harness: StoreHarness) -> None:
    await harness.start("order-1")
    error = refused(await harness.do(harness.start_command("order-1", on_conflict="fail")), ErrorCode.CONFLICT)
    assert "order-1" in error.message
    assert len(await harness.runs()) == 1


async def test_replace_terminates_the_active_run_in_the_same_act(harness: StoreHarness) -> None:
    old = await harness.running(workflow_id="order-1")
    new = the(Started, await harness.do(harness.start_command("order-1", on_conflict="replace")))
    ended = await harness.run(old.run)
    assert (ended.status, ended.finished_at) == (S.CANCELLED, harness.now)
    assert ended.error is not None
    assert ended.error.kind == ErrorKind.TERMINATED
    assert await harness.do(begin(old, "late")) == LeaseLost()
    active = await harness.store.get_run("default", workflow_id="order-1")
    assert active is not None
    assert (active.run.run_id, active.status) == (new.run_id, S.PENDING)


@pytest.mark.parametrize("on_conflict", ["existing", "existing_or_completed", "fail"])
async def test_the_id_of_an_active_run_of_another_type_is_taken(harness: StoreHarness, on_conflict: OnConflict) -> None:
    await harness.start("order-1", workflow_type="ship")
    command = harness.start_command("order-1", workflow_type="bill", on_conflict=on_conflict)
    error = refused(await harness.do(command), ErrorCode.CONFLICT)
    assert "ship" in error.message
    assert "bill" in error.message


@pytest.mark.parametrize("ended", [None, S.COMPLETED, S.FAILED, S.CANCELLED])
@pytest.mark.parametrize("on_conflict", ["existing", "fail", "replace"])
async def test_a_repeated_request_answers_its_run_in_any_state(
    harness: StoreHarness, ended: RunStatus | None, on_conflict: OnConflict
) -> None:
    run = await harness.start("order-1", request_id="request-1", on_conflict=on_conflict)
    if ended is not None:
        await end(harness, run, ended)
    before = await harness.picture(run)
    repeated = harness.start_command("order-1", request_id="request-1", on_conflict=on_conflict)
    assert await harness.do(repeated) == Existing(run.run_id, "order-1", ended or S.PENDING, repeated=True)
    assert await harness.picture(run) == before
    assert len(await harness.runs()) == 1


async def test_a_request_id_of_another_type_is_no_repeat(harness: StoreHarness) -> None:
    """Whoever sent it would believe that it had started what it asked for."""
    run = await harness.start("order-1", request_id="request-1", workflow_type="ship")
    other = harness.start_command("order-2", request_id="request-1", workflow_type="bill")
    error = refused(await harness.do(other), ErrorCode.CONFLICT)
    assert error.subject_id == "request_id"
    started = f"request_id 'request-1' started a run of type 'ship', {run.run_id}, not 'bill'."
    assert error.message == f"{started} Use another request id."
    assert len(await harness.runs()) == 1
    same = harness.start_command("order-2", request_id="request-1", workflow_type="ship")
    assert await harness.do(same) == Existing(run.run_id, "order-1", S.PENDING, repeated=True)


async def test_the_very_same_start_repeated_makes_nothing_new(harness: StoreHarness) -> None:
    # The store was cut off after its commit: nobody knows, and the engine says the same command again.
    command = harness.start_command("order-1", assignment=harness.assignment())
    the(Started, await harness.do(command))
    before = await harness.picture(command.run)
    again = the(Existing, await harness.do(command))
    assert (again.run_id, again.status) == (command.run.run_id, S.RUNNING)
    assert await harness.picture(command.run) == before


async def test_a_repeated_request_is_known_although_its_generated_id_differs(harness: StoreHarness) -> None:
    run = await harness.start("generated-1", request_id="request-1")
    repeated = harness.start_command("generated-2", request_id="request-1")
    assert await harness.do(repeated) == Existing(run.run_id, "generated-1", S.PENDING, repeated=True)


async def test_the_request_decides_before_the_id_does(harness: StoreHarness) -> None:
    first = await harness.start("order-1", request_id="request-1")
    await harness.start("order-2", request_id="request-2")
    repeated = harness.start_command("order-2", request_id="request-1")
    assert await harness.do(repeated) == Existing(first.run_id, "order-1", S.PENDING, repeated=True)


async def test_duplicates_in_one_batch_answer_with_the_first(harness: StoreHarness) -> None:
    commands = [
        harness.start_command("order-1", request_id="a"),
        harness.start_command("order-1", request_id="b"),
        harness.start_command("order-2", request_id="a"),
        harness.start_command("order-3", request_id="c"),
        harness.start_command("order-1", request_id="a"),
    ]
    outcomes = await harness.write(*commands)
    first = commands[0].run.run_id
    assert [type(outcome) for outcome in outcomes] == [Started, Existing, Existing, Started, Existing]
    assert [the(Existing, outcomes[n]).run_id for n in (1, 2, 4)] == [first, first, first]
    assert len(await harness.runs()) == 2


async def test_in_one_batch_too_a_taken_id_is_refused_to_those_who_want_it_new(harness: StoreHarness) -> None:
    outcomes = await harness.write(
        harness.start_command("order-1"),
        harness.start_command("order-1", on_conflict="fail"),
        harness.start_command("order-1", workflow_type="other"),
        harness.start_command("order-2"),
    )
    the(Started, outcomes[0])
    refused(outcomes[1], ErrorCode.CONFLICT)
    refused(outcomes[2], ErrorCode.CONFLICT)
    the(Started, outcomes[3])


def check_one_winner(outcomes: Sequence[Outcome]) -> str:
    (winner,) = {outcome.run_id for outcome in outcomes if isinstance(outcome, Started | Existing)}
    assert sum(isinstance(outcome, Started) for outcome in outcomes) == 1
    assert all(isinstance(outcome, Started | Existing) for outcome in outcomes)
    return winner


@pytest.mark.parametrize("same", ["workflow_id", "request_id"])
async def test_racing_callers_get_one_run(harness: StoreHarness, second_harness: StoreHarness, same: str) -> None:
    for race in range(10):
        racing = []
        for caller in range(12):
            where = (harness, second_harness)[caller % 2]
            own = {"request_id": f"race-{race}"} if same == "request_id" else {}
            workflow_id = f"race-{race}" if same == "workflow_id" else ""
            racing.append(settled(where, where.start_command(workflow_id, **own)))
        outcomes = [outcome for (outcome,) in await asyncio.gather(*racing)]
        check_one_winner(outcomes)
    assert len(await harness.runs()) == 10


async def test_racing_batches_with_the_same_ids_in_opposite_order_get_one_run_each(
    harness: StoreHarness, second_harness: StoreHarness
) -> None:
    for race in range(5):
        names = [f"{race}-{n}" for n in range(20)]
        there = settled(harness, *(harness.start_command(name) for name in names))
        back = settled(second_harness, *(second_harness.start_command(name) for name in reversed(names)))
        first, second = await asyncio.gather(there, back)
        for ours, theirs in zip(first, reversed(second), strict=True):
            check_one_winner([ours, theirs])


async def test_a_delayed_start_sleeps_until_its_time(harness: StoreHarness) -> None:
    start_at = harness.now + 1_500_000
    command = harness.start_command(start_at=start_at)
    assert the(Started, await harness.do(command)).status == S.SLEEPING
    record = await harness.run(command.run)
    assert (record.status, record.wait_reason, record.wake_at) == (S.SLEEPING, WaitReason.TIME, start_at)
    harness.clock.set(start_at - 1)
    await harness.fire()
    assert await harness.claim() == []
    harness.clock.set(start_at)
    fired = await harness.fire()
    assert fired.pending == (("default", "hello"),)
    assert (await harness.claim_one()).run == command.run


async def test_a_start_whose_time_has_come_is_pending(harness: StoreHarness) -> None:
    command = harness.start_command(start_at=harness.now)
    assert the(Started, await harness.do(command)).status == S.PENDING
    assert (await harness.claim_one()).run == command.run


async def test_open_runs_are_limited_per_namespace_also_within_a_batch(harness: StoreHarness) -> None:
    await harness.store.put_namespace(NamespaceRecord(namespace="small", open_runs_limit=2), harness.now)
    commands = [harness.start_command(name, namespace="small") for name in ("a", "b", "c", "a")]
    outcomes = await harness.write(*commands)
    the(Started, outcomes[0])
    the(Started, outcomes[1])
    error = refused(outcomes[2], ErrorCode.RESOURCE_EXHAUSTED)
    assert "limit" in error.metadata
    assert "2" in error.message
    assert isinstance(outcomes[3], Existing), "a run that is there already needs no room"
    refused(await harness.do(harness.start_command("d", namespace="small")), ErrorCode.RESOURCE_EXHAUSTED)
    assert isinstance(await harness.do(harness.start_command("b", namespace="small")), Existing)
    await harness.start("c", namespace="roomy")

    (claimed, _) = await harness.claim(namespace="small")
    await harness.do(complete_run(RunLease(claimed.run, claimed.lease)))
    await harness.start("d", namespace="small")


async def test_a_disabled_namespace_starts_nothing(harness: StoreHarness) -> None:
    await harness.store.put_namespace(NamespaceRecord(namespace="closed", enabled=False), harness.now)
    outcomes = await harness.write(harness.start_command(namespace="closed"), harness.start_command())
    error = refused(outcomes[0], ErrorCode.PRECONDITION_FAILED)
    assert "closed" in error.message
    the(Started, outcomes[1])
    assert await harness.runs("closed") == []


async def test_a_namespace_comes_into_being_with_its_first_start(harness: StoreHarness) -> None:
    assert await harness.store.get_namespace("new") is None
    await harness.start(namespace="new")
    record = await harness.store.get_namespace("new")
    assert record is not None
    assert (record.enabled, record.created_at, record.open_runs_limit) == (True, harness.now, None)


async def test_a_matched_start_is_inserted_as_leased(harness: StoreHarness) -> None:
    assignment = harness.assignment("worker-7", "3")
    command = harness.start_command(assignment=assignment)
    assert the(Started, await harness.do(command)).status == S.RUNNING
    record = await harness.run(command.run)
    assert (record.status, record.worker_id, record.version) == (S.RUNNING, "worker-7", "3")
    assert record.started_at == harness.now
    assert await harness.claim(versions=("3",)) == []
    holding = RunLease(command.run, Lease(1, assignment.nonce))
    the(Recorded, (await harness.write(begin(holding, "a"), complete(holding, "a")))[1])
    assert (await harness.poll()).next_due_at == harness.now + LEASE_US


async def test_a_matched_start_that_exists_already_is_not_assigned_to_the_worker(harness: StoreHarness) -> None:
    run = await harness.start("order-1")
    assignment = harness.assignment()
    outcome = await harness.do(harness.start_command("order-1", assignment=assignment))
    assert outcome == Existing(run.run_id, "order-1", S.PENDING)
    assert await harness.do(begin(RunLease(run, Lease(1, assignment.nonce)), "a")) == LeaseLost()
    assert (await harness.claim_one()).lease.counter == 1


async def test_the_worker_may_continue_in_the_batch_that_creates_its_run(harness: StoreHarness) -> None:
    assignment = harness.assignment()
    command = harness.start_command(assignment=assignment)
    holding = RunLease(command.run, Lease(1, assignment.nonce))
    outcomes = await harness.write(command, begin(holding, "a"), complete(holding, "a"), complete_run(holding))
    assert the(Started, outcomes[0]).run_id == command.run.run_id
    the(Recorded, outcomes[2])
    assert the(RunClosed, outcomes[3]).status == S.COMPLETED


async def test_equal_ids_in_two_namespaces_are_two_runs(harness: StoreHarness) -> None:
    one = await harness.start("order-1", namespace="left", request_id="r")
    other = await harness.start("order-1", namespace="right", request_id="r")
    assert one.run_id != other.run_id


async def test_an_ended_id_is_free_again_also_beside_the_repeat_of_its_end(harness: StoreHarness) -> None:
    holding = await harness.running(workflow_id="order-1")
    await harness.do(complete_run(holding))
    outcomes = await harness.write(complete_run(holding), harness.start_command("order-1"))
    assert the(RunClosed, outcomes[0]).status == S.COMPLETED
    the(Started, outcomes[1])

"""What becomes of a start when its type is full: it waits, it is refused, or the oldest has to go."""

import asyncio
from typing import Any

import pytest

from kagzi.core.error_details import ErrorCode
from kagzi.core.run.outcomes import (
    ChildStarted,
    Existing,
    Parked,
    Refused,
    RetryScheduled,
    Started,
    StepFailed,
    TimerSet,
)
from kagzi.core.states import RunStatus
from kagzi.core.workflow_types.queues import TypeLimits

from .verbs import BOOM, StoreHarness, acknowledge_cancel, begin, complete_run, fail, leased, park, sleep, the


async def limit(harness: StoreHarness, workflow_type: str = "hello", **limits: Any) -> None:
    await harness.store.put_type_limits("default", workflow_type, TypeLimits(**limits), harness.now)


async def status(harness: StoreHarness, run_id: str) -> RunStatus:
    record = await harness.store.get_run("default", run_id=run_id)
    assert record is not None
    return record.status


async def test_a_full_type_refuses(harness: StoreHarness) -> None:
    await limit(harness, max_running=2, when_full="reject")
    holding = await harness.running()
    await harness.start()
    refused = the(Refused, await harness.do(harness.start_command())).error
    assert refused.code is ErrorCode.RESOURCE_EXHAUSTED
    assert refused.metadata["limit"] == "max_running"
    assert refused.retry_after_ms > 0
    assert (refused.subject, refused.subject_id) == ("workflow_type", "hello")
    await harness.do(complete_run(holding))
    the(Started, await harness.do(harness.start_command()))


async def test_a_full_key_refuses(harness: StoreHarness) -> None:
    await limit(harness, max_running_per_key=1, when_full="reject")
    await harness.start(concurrency_key="a")
    refused = the(Refused, await harness.do(harness.start_command(concurrency_key="a"))).error
    assert refused.metadata["limit"] == "max_running_per_key"
    assert "'a'" in refused.message
    await harness.start(concurrency_key="b")
    await harness.start_many(3)


async def test_a_full_type_still_answers_what_is_there(harness: StoreHarness) -> None:
    await limit(harness, max_running=1, when_full="reject")
    command = harness.start_command("order-1")
    started = the(Started, await harness.do(command))
    assert the(Existing, await harness.do(command)).run_id == started.run_id
    assert the(Existing, await harness.do(harness.start_command("order-1"))).run_id == started.run_id


async def test_starts_of_one_batch_fill_it(harness: StoreHarness) -> None:
    await limit(harness, max_running=3, when_full="reject")
    outcomes = await harness.write(*(harness.start_command() for _ in range(5)))
    assert [type(outcome) for outcome in outcomes] == [Started, Started, Started, Refused, Refused]


async def test_a_later_start_is_not_refused(harness: StoreHarness) -> None:
    await limit(harness, max_running=1, when_full="reject")
    await harness.start()
    started = the(Started, await harness.do(harness.start_command(start_at=harness.now + 1_000_000)))
    assert started.status is RunStatus.SLEEPING


async def test_many_who_start_at_once_do_not_overfill_it(harness: StoreHarness, second_harness: StoreHarness) -> None:
    await limit(harness, max_running=5, when_full="reject")
    commands = [harness.start_command() for _ in range(20)]
    outcomes = await asyncio.gather(
        *((harness, second_harness)[n % 2].insist(command) for n, command in enumerate(commands))
    )
    assert sum(isinstance(outcome, Started) for outcome in outcomes) == 5
    assert sum(isinstance(outcome, Refused) for outcome in outcomes) == 15


async def test_the_oldest_goes_when_it_had_not_begun(harness: StoreHarness) -> None:
    await limit(harness, max_running=1, when_full="cancel-oldest")
    first, second = harness.start_command(), harness.start_command()
    the(Started, await harness.do(first))
    the(Started, await harness.do(second))
    (end,) = harness.effects.ended
    assert (end.run, end.status) == (first.run, RunStatus.CANCELLED)
    assert await status(harness, first.run.run_id) is RunStatus.CANCELLED
    assert [one.run for one in await harness.claim()] == [second.run]


async def test_the_oldest_is_requested_to_stop_when_it_runs(harness: StoreHarness) -> None:
    await limit(harness, max_running_per_key=1, when_full="cancel-oldest")
    oldest = await harness.start(concurrency_key="a")
    await harness.start(concurrency_key="b")
    first = next(one for one in await harness.claim() if one.run == oldest)
    second = harness.start_command(concurrency_key="a")
    the(Started, await harness.do(second))
    (notice,) = harness.effects.notices
    assert (notice.leased, notice.event, notice.worker_id) == (leased(first), "cancel_requested", first.worker_id)
    assert harness.effects.ended == ()
    record = await harness.run(first.run)
    assert record.cancel_requested
    assert second.run.run_id in record.cancel_reason
    # The next one finds the second in its place, which had not begun.
    third = harness.start_command(concurrency_key="a")
    the(Started, await harness.do(third))
    assert [end.run for end in harness.effects.ended] == [second.run]
    assert await harness.claim() == []
    await harness.do(complete_run(leased(first)))
    assert [one.run for one in await harness.claim()] == [third.run]


@pytest.mark.parametrize("limited", [{"max_running": 1}, {"max_running_per_key": 1}], ids=str)
async def test_a_run_that_waits_is_replaced_too(harness: StoreHarness, limited: dict[str, int]) -> None:
    """It holds no permit, but it must not go on after the newer one."""
    await limit(harness, **limited, when_full="cancel-oldest")
    asleep = await harness.running(concurrency_key="a")
    the(TimerSet, await harness.do(sleep(asleep, "nap", s=3_600)))
    the(Parked, await harness.do(park(asleep, "nap")))
    backing_off = harness.start_command(concurrency_key="a")
    the(Started, await harness.do(backing_off))
    record = await harness.run(asleep.run)
    assert (record.status, record.cancel_requested) == (RunStatus.PENDING, True)
    assert backing_off.run.run_id in record.cancel_reason
    claimed = await harness.claim()
    assert asleep.run in [one.run for one in claimed], "it may clean up first"
    await harness.do(acknowledge_cancel(leased(next(one for one in claimed if one.run == asleep.run))))
    (second,) = [one for one in [*claimed, *await harness.claim()] if one.run == backing_off.run]
    await harness.do(begin(leased(second), "try"))
    the(RetryScheduled, await harness.do(fail(leased(second), "try", BOOM)))
    the(Parked, await harness.do(park(leased(second), "try")))
    third = await harness.start(concurrency_key="a")
    assert (await harness.run(second.run)).cancel_requested
    await harness.store.pause_run(third, "", harness.now)
    await harness.start(concurrency_key="a")
    assert await status(harness, third.run_id) is RunStatus.CANCELLED, "it had not begun"


async def test_a_start_whose_time_has_not_come_is_not_replaced(harness: StoreHarness) -> None:
    await limit(harness, max_running_per_key=1, when_full="cancel-oldest")
    later = await harness.start(concurrency_key="a", start_at=harness.now + 3_600_000_000)
    await harness.start(concurrency_key="a")
    assert await status(harness, later.run_id) is RunStatus.SLEEPING
    assert not (await harness.run(later)).cancel_requested


async def test_all_that_are_too_many_are_replaced(harness: StoreHarness) -> None:
    older = [await harness.running(concurrency_key="a") for _ in range(3)]
    await limit(harness, max_running_per_key=2, when_full="cancel-oldest")
    await harness.start(concurrency_key="a")
    assert [(await harness.run(one.run)).cancel_requested for one in older] == [True, True, False]


async def test_of_one_batch_the_last_stays(harness: StoreHarness) -> None:
    await limit(harness, max_running=1, when_full="cancel-oldest")
    commands = [harness.start_command() for _ in range(4)]
    for outcome in await harness.write(*commands):
        the(Started, outcome)
    assert {end.run for end in harness.effects.ended} == {command.run for command in commands[:3]}
    statuses = [await status(harness, command.run.run_id) for command in commands]
    assert statuses == [RunStatus.CANCELLED] * 3 + [RunStatus.PENDING]


async def test_who_replaces_a_run_does_not_push_out_another(harness: StoreHarness) -> None:
    await limit(harness, max_running=1, when_full="cancel-oldest")
    first = await harness.start("order-1")
    the(Started, await harness.do(harness.start_command("order-1", on_conflict="replace")))
    assert [end.run for end in harness.effects.ended] == [first]


async def test_a_refused_start_replaces_nothing(harness: StoreHarness) -> None:
    """The run it would have ended sleeps and leaves no room; so it goes on sleeping."""
    holding = await harness.asleep(workflow_id="order-1")
    await limit(harness, max_running=1, when_full="reject")
    await harness.start()
    the(Refused, await harness.do(harness.start_command("order-1", on_conflict="replace")))
    assert await status(harness, holding.run.run_id) is RunStatus.SLEEPING


@pytest.mark.parametrize("when_full", ["reject", "cancel-oldest"])
async def test_children_pass_the_same_admission(harness: StoreHarness, when_full: str) -> None:
    parent = await harness.running()
    await limit(harness, "child", max_running=1, when_full=when_full)
    first = await harness.child(parent, "one")
    outcome = await harness.do(harness.child_command(parent, "two"))
    if when_full == "reject":
        refused = the(StepFailed, outcome)
        assert (refused.error.code, refused.error.type) == (ErrorCode.RESOURCE_EXHAUSTED, "kagzi.ResourceExhausted")
        assert (await harness.steps(parent.run))["two"].error == refused.error
        await limit(harness, "child", max_running=2, when_full=when_full)
        assert await harness.do(harness.child_command(parent, "two")) == refused, "a repeat, when there is room"
        the(ChildStarted, await harness.do(harness.child_command(parent, "three")))
        return
    the(ChildStarted, outcome)
    assert [end.run for end in harness.effects.ended] == [first]
    assert await status(harness, first.run_id) is RunStatus.CANCELLED

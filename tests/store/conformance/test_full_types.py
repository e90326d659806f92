"""What becomes of a start when its type is full: it waits, it is refused, or the oldest has to go."""

import asyncio
from typing import Any

import pytest

from kagzi.core.error_details import ErrorCode
from kagzi.core.run.outcomes import ChildStarted, Existing, Refused, Started
from kagzi.core.states import RunStatus
from kagzi.core.workflow_types.queues import TypeLimits

from .verbs import Cellar, complete_run, held, the


async def limit(cellar: Cellar, workflow_type: str = "hello", **limits: Any) -> None:
    await cellar.store.put_type_limits("default", workflow_type, TypeLimits(**limits), cellar.now)


async def status(cellar: Cellar, run_id: str) -> RunStatus:
    record = await cellar.store.get_run("default", run_id=run_id)
    assert record is not None
    return record.status


async def test_a_full_type_refuses(cellar: Cellar) -> None:
    await limit(cellar, max_running=2, when_full="reject")
    holding = await cellar.running()
    await cellar.start()
    refused = the(Refused, await cellar.do(cellar.start_command())).error
    assert refused.code is ErrorCode.RESOURCE_EXHAUSTED
    assert refused.metadata["limit"] == "max_running"
    assert refused.retry_after_ms > 0
    assert (refused.subject, refused.subject_id) == ("workflow_type", "hello")
    await cellar.do(complete_run(holding))
    the(Started, await cellar.do(cellar.start_command()))


async def test_a_full_key_refuses(cellar: Cellar) -> None:
    await limit(cellar, max_running_per_key=1, when_full="reject")
    await cellar.start(concurrency_key="a")
    refused = the(Refused, await cellar.do(cellar.start_command(concurrency_key="a"))).error
    assert refused.metadata["limit"] == "max_running_per_key"
    assert "'a'" in refused.message
    await cellar.start(concurrency_key="b")
    await cellar.start_many(3)


async def test_a_full_type_still_answers_what_is_there(cellar: Cellar) -> None:
    await limit(cellar, max_running=1, when_full="reject")
    command = cellar.start_command("order-1")
    started = the(Started, await cellar.do(command))
    assert the(Existing, await cellar.do(command)).run_id == started.run_id
    assert the(Existing, await cellar.do(cellar.start_command("order-1"))).run_id == started.run_id


async def test_starts_of_one_batch_fill_it(cellar: Cellar) -> None:
    await limit(cellar, max_running=3, when_full="reject")
    outcomes = await cellar.write(*(cellar.start_command() for _ in range(5)))
    assert [type(outcome) for outcome in outcomes] == [Started, Started, Started, Refused, Refused]


async def test_a_later_start_is_not_refused(cellar: Cellar) -> None:
    await limit(cellar, max_running=1, when_full="reject")
    await cellar.start()
    started = the(Started, await cellar.do(cellar.start_command(start_at=cellar.now + 1_000_000)))
    assert started.status is RunStatus.SLEEPING


async def test_many_who_start_at_once_do_not_overfill_it(cellar: Cellar, second_cellar: Cellar) -> None:
    await limit(cellar, max_running=5, when_full="reject")
    commands = [cellar.start_command() for _ in range(20)]
    outcomes = await asyncio.gather(
        *((cellar, second_cellar)[n % 2].insist(command) for n, command in enumerate(commands))
    )
    assert sum(isinstance(outcome, Started) for outcome in outcomes) == 5
    assert sum(isinstance(outcome, Refused) for outcome in outcomes) == 15


async def test_the_oldest_goes_when_it_had_not_begun(cellar: Cellar) -> None:
    await limit(cellar, max_running=1, when_full="cancel-oldest")
    first, second = cellar.start_command(), cellar.start_command()
    the(Started, await cellar.do(first))
    started = the(Started, await cellar.do(second))
    (gone,) = started.ousted
    assert (gone.run, gone.ended, gone.status) == (first.run, True, RunStatus.CANCELLED)
    assert await status(cellar, first.run.run_id) is RunStatus.CANCELLED
    assert [one.run for one in await cellar.claim()] == [second.run]


async def test_the_oldest_is_asked_to_stop_when_it_runs(cellar: Cellar) -> None:
    await limit(cellar, max_running_per_key=1, when_full="cancel-oldest")
    oldest = await cellar.start(concurrency_key="a")
    await cellar.start(concurrency_key="b")
    first = next(one for one in await cellar.claim() if one.run == oldest)
    second = cellar.start_command(concurrency_key="a")
    (gone,) = the(Started, await cellar.do(second)).ousted
    assert (gone.run, gone.ended, gone.holder) == (first.run, False, first.lease)
    assert gone.worker_id == first.worker_id
    record = await cellar.run(first.run)
    assert record.cancel_requested
    assert second.run.run_id in record.cancel_reason
    # The next one finds the second in its place, which had not begun.
    third = cellar.start_command(concurrency_key="a")
    (gone,) = the(Started, await cellar.do(third)).ousted
    assert gone.run == second.run
    assert await cellar.claim() == []
    await cellar.do(complete_run(held(first)))
    assert [one.run for one in await cellar.claim()] == [third.run]


async def test_of_one_batch_the_last_stays(cellar: Cellar) -> None:
    await limit(cellar, max_running=1, when_full="cancel-oldest")
    commands = [cellar.start_command() for _ in range(4)]
    outcomes = [the(Started, outcome) for outcome in await cellar.write(*commands)]
    assert [len(outcome.ousted) for outcome in outcomes] == [0, 1, 1, 1]
    found = [await status(cellar, command.run.run_id) for command in commands]
    assert found == [RunStatus.CANCELLED] * 3 + [RunStatus.PENDING]


async def test_who_replaces_a_run_does_not_push_out_another(cellar: Cellar) -> None:
    await limit(cellar, max_running=1, when_full="cancel-oldest")
    await cellar.start("order-1")
    started = the(Started, await cellar.do(cellar.start_command("order-1", on_conflict="replace")))
    assert started.ousted == ()


async def test_a_refused_start_replaces_nothing(cellar: Cellar) -> None:
    """The run it would have ended sleeps and leaves no room; so it goes on sleeping."""
    holding = await cellar.asleep(workflow_id="order-1")
    await limit(cellar, max_running=1, when_full="reject")
    await cellar.start()
    the(Refused, await cellar.do(cellar.start_command("order-1", on_conflict="replace")))
    assert await status(cellar, holding.run.run_id) is RunStatus.SLEEPING


@pytest.mark.parametrize("when_full", ["reject", "cancel-oldest"])
async def test_children_go_through_the_same_door(cellar: Cellar, when_full: str) -> None:
    parent = await cellar.running()
    await limit(cellar, "child", max_running=1, when_full=when_full)
    first = await cellar.child(parent, "one")
    outcome = await cellar.do(cellar.child_command(parent, "two"))
    if when_full == "reject":
        assert the(Refused, outcome).error.code is ErrorCode.RESOURCE_EXHAUSTED
        return
    started = the(ChildStarted, outcome)
    assert [gone.run for gone in started.ousted] == [first]
    assert await status(cellar, first.run_id) is RunStatus.CANCELLED

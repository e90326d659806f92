"""A run that was started behind another begins in the transaction in which that one ends, however it ends."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kagzi.core.records import Held, RunKey
from kagzi.core.run.outcomes import Existing, RunClosed, Started, Stirred
from kagzi.core.states import RunStatus

from .invariants import check_run
from .verbs import (
    CLEANUP_US,
    DAY_US,
    Cellar,
    acknowledge_cancel,
    complete_run,
    fail_run,
    go_on_as,
    hand_back,
    the,
)

S = RunStatus

# Each ends the run it is given and answers who was stirred by that.
End = Callable[[Cellar, Held], Awaitable[tuple[Stirred, ...]]]


async def by_completing(cellar: Cellar, first: Held) -> tuple[Stirred, ...]:
    return the(RunClosed, await cellar.do(complete_run(first))).stirred


async def by_failing(cellar: Cellar, first: Held) -> tuple[Stirred, ...]:
    return the(RunClosed, await cellar.do(fail_run(first))).stirred


async def by_stopping(cellar: Cellar, first: Held) -> tuple[Stirred, ...]:
    await cellar.cancel(first.run)
    return the(RunClosed, await cellar.do(acknowledge_cancel(first))).stirred


async def by_terminating(cellar: Cellar, first: Held) -> tuple[Stirred, ...]:
    return (await cellar.terminate(first.run)).stirred


async def by_its_deadline(cellar: Cellar, first: Held) -> tuple[Stirred, ...]:
    cellar.clock.advance(us=DAY_US)
    return (await cellar.fire()).stirred


async def by_its_cancel_limit(cellar: Cellar, first: Held) -> tuple[Stirred, ...]:
    await cellar.cancel(first.run)
    cellar.clock.advance(us=CLEANUP_US)
    return (await cellar.fire()).stirred


async def by_being_replaced(cellar: Cellar, first: Held) -> tuple[Stirred, ...]:
    replacing = cellar.start_command("first", workflow_type="first", on_conflict="replace")
    return the(Started, await cellar.do(replacing)).stirred


ENDS = (
    by_completing,
    by_failing,
    by_stopping,
    by_terminating,
    by_its_deadline,
    by_its_cancel_limit,
    by_being_replaced,
)


async def first_run(cellar: Cellar) -> Held:
    return await cellar.running(workflow_id="first", workflow_type="first", deadline_at=cellar.now + DAY_US)


async def behind(cellar: Cellar, run: RunKey, **options: Any) -> RunKey:
    return await cellar.start(blocked_by=run.run_id, **options)


async def test_it_waits_without_a_time(cellar: Cellar) -> None:
    first = await first_run(cellar)
    second = await behind(cellar, first.run)
    record = await cellar.run(second)
    assert (record.status, record.blocked_by, record.wake_at) == (S.SLEEPING, first.run.run_id, None)
    cellar.clock.advance(s=60)
    await cellar.fire(end_leases=False)
    assert await cellar.claim() == []
    check_run(await cellar.run(second))


@pytest.mark.parametrize("end", ENDS)
async def test_it_begins_when_the_other_has_ended(cellar: Cellar, end: End) -> None:
    first = await first_run(cellar)
    second, third = await behind(cellar, first.run), await behind(cellar, first.run)
    stirred = await end(cellar, first)
    assert (await cellar.run(first.run)).status.ended
    assert {(each.run, each.workflow_type, each.woken) for each in stirred} == {
        (second, "hello", True),
        (third, "hello", True),
    }
    for run in (second, third):
        record = await cellar.run(run)
        assert (record.status, record.blocked_by, record.wait_reason) == (S.PENDING, None, None)
    assert {claimed.run for claimed in await cellar.claim()} == {second, third}


async def test_a_chain_goes_one_by_one(cellar: Cellar) -> None:
    first = await first_run(cellar)
    second = await behind(cellar, first.run)
    third = await behind(cellar, second)
    await by_completing(cellar, first)
    assert (await cellar.run(third)).status == S.SLEEPING
    await cellar.do(complete_run(await cellar.hold(second)))
    assert (await cellar.run(third)).status == S.PENDING


async def test_handing_back_is_no_end(cellar: Cellar) -> None:
    first = await first_run(cellar)
    second = await behind(cellar, first.run)
    assert the(RunClosed, await cellar.do(hand_back(first))).stirred == ()
    assert (await cellar.run(second)).status == S.SLEEPING


async def test_a_paused_one_begins_when_it_is_resumed(cellar: Cellar) -> None:
    first = await first_run(cellar)
    second = await behind(cellar, first.run)
    assert (await cellar.pause(second)).status == S.PAUSED
    assert await by_completing(cellar, first) == ()
    record = await cellar.run(second)
    assert (record.status, record.blocked_by) == (S.PAUSED, None)
    assert (await cellar.resume(second)).status == S.PENDING
    assert (await cellar.claim_one()).run == second


async def test_resumed_too_early_it_waits_on(cellar: Cellar) -> None:
    first = await first_run(cellar)
    second = await behind(cellar, first.run)
    await cellar.pause(second)
    assert (await cellar.resume(second)).status == S.SLEEPING
    record = await cellar.run(second)
    assert (record.status, record.blocked_by) == (S.SLEEPING, first.run.run_id)
    check_run(record)
    await by_completing(cellar, first)
    assert (await cellar.claim_one()).run == second


async def test_it_waits_for_the_successor(cellar: Cellar) -> None:
    first = await first_run(cellar)
    second = await behind(cellar, first.run)
    new = cellar.ids.run_id(cellar.now)
    assert the(RunClosed, await cellar.do(go_on_as(first, new))).stirred == ()
    record = await cellar.run(second)
    assert (record.status, record.blocked_by) == (S.SLEEPING, new)
    stirred = await by_completing(cellar, await cellar.hold(RunKey("default", new)))
    assert [each.run for each in stirred] == [second]


@pytest.mark.parametrize("paused", [False, True])
async def test_cancelled_before_it_began_it_has_nothing_to_clean_up(cellar: Cellar, paused: bool) -> None:
    first = await first_run(cellar)
    second = await behind(cellar, first.run)
    third = await behind(cellar, second)
    if paused:
        await cellar.pause(second)
    cancelled = await cellar.cancel(second)
    assert cancelled is not None
    assert cancelled.ended
    assert [each.run for each in cancelled.stirred] == [third]
    record = await cellar.run(second)
    assert (record.status, record.blocked_by) == (S.CANCELLED, None)
    assert await by_completing(cellar, first) == ()
    assert (await cellar.run(second)).status == S.CANCELLED


async def test_its_own_deadline_holds_while_it_waits(cellar: Cellar) -> None:
    first = await first_run(cellar)
    second = await behind(cellar, first.run, deadline_at=cellar.now + 1_000_000)
    cellar.clock.advance(s=1)
    assert [end.run for end in (await cellar.fire(end_leases=False)).ended] == [second]
    assert (await cellar.run(second)).blocked_by is None
    assert await by_completing(cellar, first) == ()
    assert (await cellar.run(second)).status == S.FAILED


async def test_a_repeated_start_answers_the_run_in_any_state(cellar: Cellar) -> None:
    first = await first_run(cellar)
    command = cellar.start_command(blocked_by=first.run.run_id)
    the(Started, await cellar.do(command))
    assert the(Existing, await cellar.do(command)).status == S.SLEEPING
    await by_completing(cellar, first)
    assert the(Existing, await cellar.do(command)).status == S.PENDING


async def test_many_of_them_in_one_batch_of_ends(cellar: Cellar) -> None:
    holding = [await cellar.running(workflow_type="first") for _ in range(5)]
    waiting = [await behind(cellar, first.run) for first in holding]
    closed = await cellar.write(*[complete_run(first) for first in holding])
    told = [each.run for outcome in closed for each in the(RunClosed, outcome).stirred]
    assert sorted(told, key=lambda run: run.run_id) == waiting
    assert {(await cellar.run(run)).status for run in waiting} == {S.PENDING}

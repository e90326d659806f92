"""One holder (P3): whoever does not hold the current lease changes nothing, on any verb."""

from collections.abc import Callable

import pytest

from kagzi.core.records import Held, Lease, RunKey
from kagzi.core.run.commands import Command
from kagzi.core.run.outcomes import Begun, LeaseLost, Recorded, RunClosed, RunNotFound
from kagzi.core.states import RunStatus, StepStatus

from .verbs import (
    Cellar,
    acknowledge_cancel,
    begin,
    complete,
    complete_run,
    fail,
    fail_run,
    finish,
    hand_back,
    park,
    sleep,
    stale,
    the,
)

EVERY_COMMAND: dict[str, Callable[[Held], Command]] = {
    "begin a new step": lambda holding: begin(holding, "new"),
    "begin an open step": lambda holding: begin(holding, "open"),
    "complete": lambda holding: complete(holding, "open"),
    "fail": lambda holding: fail(holding, "open"),
    "sleep": lambda holding: sleep(holding, "new nap", s=1),
    "finish sleep": lambda holding: finish(holding, "nap"),
    "park": lambda holding: park(holding, "nap"),
    "complete run": complete_run,
    "fail run": fail_run,
    "cancel run": acknowledge_cancel,
    "release": hand_back,
}
every_command = pytest.mark.parametrize("command", EVERY_COMMAND.values(), ids=EVERY_COMMAND.keys())


async def busy_run(cellar: Cellar) -> Held:
    """A run with an open step and a timer, begun under a lease before the current one, so that nothing is a repeat."""
    first = await cellar.running()
    await cellar.write(begin(first, "open"), sleep(first, "nap", s=3_600))
    return await cellar.take_over(first)


@every_command
async def test_a_stale_lease_changes_nothing(cellar: Cellar, command: Callable[[Held], Command]) -> None:
    old = await busy_run(cellar)
    new = await cellar.take_over(old)
    await cellar.cancel(old.run)
    before = await cellar.picture(old.run)
    assert await cellar.do(command(old)) == LeaseLost()
    assert await cellar.picture(old.run) == before
    the(Recorded, (await cellar.write(begin(new, "open"), complete(new, "open")))[1])


@every_command
async def test_a_lease_that_ran_out_is_stale_before_anybody_else_claims(
    cellar: Cellar, command: Callable[[Held], Command]
) -> None:
    old = await busy_run(cellar)
    cellar.clock.advance(s=60)
    assert old in (await cellar.fire()).lost
    before = await cellar.picture(old.run)
    assert await cellar.do(command(old)) == LeaseLost()
    assert await cellar.picture(old.run) == before


@every_command
async def test_a_reused_counter_with_another_nonce_is_refused(
    cellar: Cellar, command: Callable[[Held], Command]
) -> None:
    holding = await busy_run(cellar)
    before = await cellar.picture(holding.run)
    assert await cellar.do(command(stale(holding))) == LeaseLost()
    forged = Held(holding.run, Lease(holding.lease.counter + 1, holding.lease.nonce))
    assert await cellar.do(command(forged)) == LeaseLost()
    assert await cellar.picture(holding.run) == before


@every_command
async def test_a_foreign_namespace_sees_no_run(cellar: Cellar, command: Callable[[Held], Command]) -> None:
    holding = await busy_run(cellar)
    await cellar.start(namespace="elsewhere")
    before = await cellar.picture(holding.run)
    foreign = Held(RunKey("elsewhere", holding.run.run_id), holding.lease)
    unknown = Held(RunKey("default", cellar.ids.run_id(cellar.now)), holding.lease)
    assert await cellar.write(command(foreign), command(unknown)) == [RunNotFound(), RunNotFound()]
    assert await cellar.picture(holding.run) == before


@every_command
async def test_an_ended_run_takes_nothing_from_an_older_holder(
    cellar: Cellar, command: Callable[[Held], Command]
) -> None:
    old = await busy_run(cellar)
    new = await cellar.take_over(old)
    the(RunClosed, await cellar.do(complete_run(new)))
    before = await cellar.picture(old.run)
    assert await cellar.do(command(old)) == LeaseLost()
    assert await cellar.picture(old.run) == before


async def test_a_parked_run_takes_no_new_writes_from_its_last_holder(cellar: Cellar) -> None:
    holding = await cellar.asleep()
    before = await cellar.picture(holding.run)
    outcomes = await cellar.write(begin(holding, "new"), fail_run(holding), complete_run(holding))
    assert outcomes == [LeaseLost()] * 3
    assert await cellar.picture(holding.run) == before


async def test_stale_holders_neither_renew_nor_cut_nor_release(cellar: Cellar) -> None:
    old = await busy_run(cellar)
    new = await cellar.take_over(old)
    before = await cellar.picture(old.run)
    horizon = (await cellar.look()).next_due_at
    foreign = Held(RunKey("elsewhere", new.run.run_id), new.lease)
    losers = (old, stale(new), foreign)
    cellar.clock.advance(us=5)

    renewal = await cellar.renew(*losers)
    assert set(renewal.lost) == set(losers)
    await cellar.store.cut(losers, cellar.now)
    assert list(await cellar.store.release(losers, cellar.now)) == []

    assert await cellar.picture(old.run) == before
    assert (await cellar.look()).next_due_at == horizon
    assert (await cellar.fire()).lost == ()


async def test_in_one_batch_the_stale_are_refused_and_the_current_recorded(cellar: Cellar) -> None:
    old = await busy_run(cellar)
    new = await cellar.take_over(old)
    outcomes = await cellar.write(
        begin(new, "a"),
        complete(old, "open", "ghost"),
        complete(new, "a", "real"),
        begin(stale(new), "b"),
        complete_run(old),
    )
    assert [type(outcome) for outcome in outcomes] == [Begun, LeaseLost, Recorded, LeaseLost, LeaseLost]
    steps = await cellar.steps(new.run)
    assert set(steps) == {"open", "nap", "a"}
    assert steps["open"].status == StepStatus.RUNNING
    assert (await cellar.run(new.run)).status == RunStatus.RUNNING


async def test_only_the_first_release_counts(cellar: Cellar) -> None:
    old = await cellar.running()
    await cellar.store.release([old], cellar.now)
    new = (await cellar.claim_one()).lease
    await cellar.store.release([old], cellar.now)
    assert await cellar.do(hand_back(old)) == LeaseLost()
    assert (await cellar.run(old.run)).status == RunStatus.RUNNING
    the(Begun, await cellar.do(begin(Held(old.run, new), "a")))

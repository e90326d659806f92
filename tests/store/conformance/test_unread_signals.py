"""A run counts the signals that it has accepted and that no step has, whatever happens to it; also when it has ended.
`check_invariants` counts the signals again."""

import pytest

from kagzi.core.records import RunKey, RunLease
from kagzi.core.run.outcomes import Known, SignalBound, Started, TimerSet
from kagzi.core.states import RunStatus
from kagzi.store.sql_files import load_migrations

from .invariants import check_invariants
from .test_replacements import change, paused_by_signal
from .test_transfers import brought, exported, third
from .verbs import (
    StoreHarness,
    acknowledge_cancel,
    begin,
    complete,
    complete_run,
    continue_as,
    fail_run,
    leased,
    park,
    payload,
    the,
    wait_signal,
)

__all__ = ["third"]


async def unread(harness: StoreHarness, run: RunKey) -> int:
    await check_invariants(harness.store)
    return (await harness.run(run)).unread_signals


async def with_unread(harness: StoreHarness, number: int = 3, **options: object) -> RunLease:
    holding = await harness.running(**options)
    for n in range(number):
        await harness.signal(holding.run, value=f"{n}")
    return holding


async def some_unread_signals(harness: StoreHarness) -> None:
    """Runs with unread signals, open and ended."""
    for ended in (False, True):
        holding = await with_unread(harness)
        await harness.do(wait_signal(holding))
        if ended:
            await harness.do(complete_run(holding))
    await harness.running()


def count_unread_again(package: str) -> str:
    """What the migration that added the column does with the runs that were there."""
    [migration] = [each for each in load_migrations(package) if each.name == "unread_signals"]
    [update] = [part for part in migration.sql.split(";") if part.strip().startswith("UPDATE")]
    return update


async def test_each_signal_counts_until_a_step_has_it(harness: StoreHarness) -> None:
    holding = await with_unread(harness)
    assert await unread(harness, holding.run) == 3
    await harness.signal(holding.run, request_id="again")
    await harness.signal(holding.run, request_id="again")
    assert await unread(harness, holding.run) == 4, "a repeat counts once"
    the(SignalBound, await harness.do(wait_signal(holding)))
    the(Known, await harness.do(wait_signal(holding)))
    assert await unread(harness, holding.run) == 3, "a repeated wait has the same signal"
    await harness.write(*(wait_signal(holding, step_id=f"{n}") for n in range(5)))
    assert await unread(harness, holding.run) == 0


async def test_a_signal_that_a_step_waits_for_is_not_unread(harness: StoreHarness) -> None:
    holding = await harness.running()
    the(TimerSet, await harness.do(wait_signal(holding)))
    assert (await harness.signal(holding.run)).delivered
    assert await unread(harness, holding.run) == 0


async def test_waits_and_steps_of_one_batch_count(harness: StoreHarness) -> None:
    holding = await with_unread(harness)
    await harness.write(
        begin(holding, "a"), wait_signal(holding), complete(holding, "a"), wait_signal(holding, step_id="second")
    )
    assert await unread(harness, holding.run) == 1
    await harness.write(wait_signal(holding, step_id="third"), complete_run(holding))
    assert await unread(harness, holding.run) == 0


async def test_the_signal_of_a_start_is_unread(harness: StoreHarness) -> None:
    command = harness.start_command("cart", signal=harness.signal_request())
    plain, labelled = harness.start_command("plain"), harness.start_command("labelled", labels={"a": "b"})
    await harness.write(command, plain, labelled)
    assert [await unread(harness, each.run) for each in (command, plain, labelled)] == [1, 0, 0]
    the(SignalBound, await harness.do(wait_signal(await harness.hold(command.run))))
    assert await unread(harness, command.run) == 0


@pytest.mark.parametrize("end", [complete_run, fail_run, acknowledge_cancel])
async def test_a_run_that_has_ended_keeps_its_count(harness: StoreHarness, end: object) -> None:
    assert callable(end)
    holding = await with_unread(harness)
    if end is acknowledge_cancel:
        await harness.cancel(holding.run)
    await harness.write(begin(holding, "a"), complete(holding, "a"), end(holding))
    assert (await harness.run(holding.run)).status.ended
    assert await unread(harness, holding.run) == 3


async def test_an_end_by_somebody_else_keeps_its_count(harness: StoreHarness) -> None:
    terminated, late = await with_unread(harness), await harness.start(deadline_at=harness.now + 1_000)
    await harness.signal(late)
    await harness.terminate(terminated.run)
    harness.clock.advance(s=1)
    await harness.fire()
    never_claimed = await harness.start()
    await harness.signal(never_claimed)
    await harness.cancel(never_claimed)
    for run, number in ((terminated.run, 3), (late, 1), (never_claimed, 1)):
        assert await unread(harness, run) == number
        assert (await harness.run(run)).status.ended


async def test_a_count_goes_with_its_signals_when_a_run_continues_as_new(harness: StoreHarness) -> None:
    holding = await with_unread(harness)
    successor = harness.ids.run_id(harness.now)
    await harness.write(wait_signal(holding), continue_as(holding, successor))
    assert await unread(harness, holding.run) == 0
    assert await unread(harness, RunKey("default", successor)) == 2


async def test_the_signals_of_deleted_waits_are_unread_again(harness: StoreHarness) -> None:
    holding = await with_unread(harness)
    await harness.write(begin(holding, "a"), complete(holding, "a"))
    await harness.write(wait_signal(holding), wait_signal(holding, step_id="second"), fail_run(holding))
    assert await unread(harness, holding.run) == 1
    assert await harness.retry(holding.run, "a") is RunStatus.PENDING
    assert await unread(harness, holding.run) == 3


async def test_a_fork_has_none(harness: StoreHarness) -> None:
    holding = await with_unread(harness)
    await harness.write(begin(holding, "a"), complete(holding, "a"), complete_run(holding))
    forked = the(Started, await harness.fork(holding.run, "a"))
    assert await unread(harness, RunKey("default", forked.run_id)) == 0


async def test_dropped_signals_do_not_count_and_replaced_ones_do(harness: StoreHarness) -> None:
    holding = await with_unread(harness)
    await change(harness, holding.run, "other")
    assert await unread(harness, holding.run) == 3
    await change(harness, holding.run, None)
    assert await unread(harness, holding.run) == 2


async def test_the_signal_that_follows_a_dropped_one_is_delivered(harness: StoreHarness) -> None:
    holding = await paused_by_signal(harness)
    for n in range(2):
        await harness.signal(holding.run, value=f"{n}")
    await change(harness, holding.run, None)
    assert (await harness.steps(holding.run))["approved"].output == payload("0")
    assert await unread(harness, holding.run) == 1


@pytest.mark.parametrize("ended", [False, True])
async def test_an_import_counts_again(harness: StoreHarness, third: StoreHarness, ended: bool) -> None:
    holding = await with_unread(harness)
    await harness.do(wait_signal(holding))
    await harness.do(complete_run(holding) if ended else park(holding, "approved"))
    data = await exported(harness, holding.run)
    await brought(third, data, "elsewhere")
    [copy] = await check_invariants(third.store, "elsewhere")
    assert (copy.status.ended, copy.unread_signals) == (ended, 2)


async def test_a_claimed_run_with_unread_signals_ends_with_them(harness: StoreHarness) -> None:
    run = await harness.start()
    await harness.signal(run)
    holding = leased(await harness.claim_one())
    await harness.write(begin(holding, "a"), complete(holding, "a"), complete_run(holding))
    assert await unread(harness, run) == 1

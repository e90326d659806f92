"""Locks are taken in one order: any two verbs, on two connections, over the same runs, end without deadlock or damage."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from kagzi.core.records import Held
from kagzi.core.run.outcomes import Begun, Busy, Recorded
from tests.support.clock import FakeClock
from tests.support.patience import LOADED_MACHINE_S
from tests.support.seams import CountingIds

from .invariants import check_invariants
from .places import Place, connected
from .verbs import (
    LEASE_US,
    STEADY,
    Cellar,
    begin,
    complete,
    complete_run,
    fail,
    hand_back,
    held,
    park,
    race,
    sleep,
    the,
    wait_signal,
)

ROUNDS = 2
RUNS = 6

Act = Callable[[Cellar, Sequence[Held]], Awaitable[object]]


async def cancel(cellar: Cellar, holdings: Sequence[Held]) -> None:
    for holding in holdings:
        await cellar.cancel(holding.run)


async def signal(cellar: Cellar, holdings: Sequence[Held]) -> None:
    for holding in holdings:
        given = cellar.signal_given()
        await cellar.store.signal_run("default", run_id=holding.run.run_id, signal=given, now=cellar.now)


async def pause(cellar: Cellar, holdings: Sequence[Held]) -> None:
    for holding in holdings:
        await cellar.pause(holding.run)
        await cellar.resume(holding.run)


async def terminate(cellar: Cellar, holdings: Sequence[Held]) -> None:
    for holding in holdings:
        await cellar.terminate(holding.run)


async def end_children(cellar: Cellar, _holdings: Sequence[Held]) -> None:
    claimed = await cellar.claim(workflow_type="child")
    await cellar.write(*(complete_run(held(one)) for one in claimed))


async def claim(cellar: Cellar, holdings: Sequence[Held]) -> None:
    await cellar.claim(limit=len(holdings), worker_id="another")


ACTS: dict[str, Act] = {
    "cancel": cancel,
    "complete": lambda cellar, holdings: cellar.write(*(complete(holding, "open") for holding in holdings)),
    "fail": lambda cellar, holdings: cellar.write(*(fail(holding, "other") for holding in holdings)),
    "park": lambda cellar, holdings: cellar.write(*(park(holding, "nap") for holding in holdings)),
    "renew": lambda cellar, holdings: cellar.renew(*holdings),
    "fire": lambda cellar, _holdings: cellar.fire(),
    "release": lambda cellar, holdings: cellar.store.release(holdings, cellar.now),
    "claim": claim,
    "end": lambda cellar, holdings: cellar.write(*(complete_run(holding) for holding in holdings)),
    "start": lambda cellar, _holdings: cellar.write(*(cellar.start_command(f"id-{n}") for n in range(RUNS))),
    "signal": signal,
    "pause": pause,
    "terminate": terminate,
    "race": lambda cellar, holdings: cellar.write(*(race(holding, "race", "nap", "child") for holding in holdings)),
    "end children": end_children,
    "cascade": lambda cellar, _holdings: cellar.cascade(),
    "leave": lambda cellar, _holdings: cellar.store.worker_left("default", "worker-1", cellar.now, hand_back=True),
}


async def runs_in_hand(cellar: Cellar) -> list[Held]:
    """Runs with an open step, a failing one, a timer that is due, a child; half of them with a lease about to end."""
    await cellar.start_many(RUNS)
    holdings = [held(one) for one in await cellar.claim()]
    await cellar.write(
        *(
            command
            for holding in holdings
            for command in (
                begin(holding, "open"),
                begin(holding, "other", retry=STEADY),
                sleep(holding, "nap", s=1),
                wait_signal(holding),
                cellar.child_command(holding),
            )
        )
    )
    cellar.clock.advance(s=2)
    await cellar.store.cut(holdings[::2], cellar.now)
    return holdings


@pytest.mark.parametrize("first", list(ACTS))
async def test_any_two_verbs_end_without_deadlock(cellar: Cellar, second_cellar: Cellar, first: str) -> None:
    await cellar.register("worker-1")
    for second in list(ACTS)[list(ACTS).index(first) :]:
        for _ in range(ROUNDS):
            holdings = await runs_in_hand(cellar)
            backwards = holdings[::-1]
            async with asyncio.timeout(LOADED_MACHINE_S):
                # An error of any of them fails the test: a deadlock, a time-out, a broken constraint.
                await asyncio.gather(
                    ACTS[first](cellar, holdings),
                    ACTS[second](second_cellar, backwards),
                    ACTS[first](second_cellar, holdings[::2] + holdings[1::2]),
                    ACTS[second](cellar, holdings),
                )
    await check_invariants(cellar.store)


async def test_steps_of_one_run_from_two_connections_never_share_a_seq(cellar: Cellar, second_cellar: Cellar) -> None:
    holding = await cellar.running()
    batches = [[begin(holding, f"{n}-{m}") for m in range(5)] for n in range(16)]
    outcomes = await asyncio.gather(*((cellar, second_cellar)[n % 2].write(*batch) for n, batch in enumerate(batches)))
    seqs = [the(Begun, outcome).seq for batch in outcomes for outcome in batch if not isinstance(outcome, Busy)]
    assert len(seqs) == len(set(seqs))
    await check_invariants(cellar.store)


async def test_two_completions_of_one_attempt_at_once_leave_one_output(cellar: Cellar, second_cellar: Cellar) -> None:
    # Once completion checked, then acted: the loser overwrote the output.
    for n in range(10):
        holding = await cellar.running()
        await cellar.do(begin(holding, "a"))
        outcomes = await asyncio.gather(
            *((cellar, second_cellar)[m % 2].do(complete(holding, "a", f"{n}-{m}")) for m in range(4))
        )
        recorded = {outcome for outcome in outcomes if not isinstance(outcome, Busy)}
        (answer,) = recorded
        assert the(Recorded, answer).seq == (await cellar.steps(holding.run))["a"].seq
        assert len(await cellar.steps(holding.run)) == 1


async def test_a_locked_row_keeps_nobody_else_waiting(
    postgres_alone: Place, clock: FakeClock, ids: CountingIds
) -> None:
    cellar = Cellar(await postgres_alone.open(), clock, ids)
    await cellar.start_many(10)
    holdings = [held(one) for one in await cellar.claim()]
    await cellar.write(*(begin(holding, "a") for holding in holdings))
    async with connected(postgres_alone.address) as stranger, stranger.transaction(), asyncio.timeout(LOADED_MACHINE_S):
        await stranger.execute("select 1 from runs where run_id::text = $1 for update", holdings[4].run.run_id)
        outcomes = await cellar.write(*(complete(holding, "a") for holding in holdings))
        assert outcomes.pop(4) == Busy()
        assert all(isinstance(outcome, Recorded) for outcome in outcomes)
        clock.advance(us=LEASE_US + 1)
        fired = await cellar.fire()
        assert len(fired.lost) == 9
        assert len(await cellar.claim()) == 9
    assert isinstance(await cellar.do(complete(holdings[4], "a")), Recorded)
    await cellar.do(hand_back(holdings[4]))
    assert len(await cellar.claim()) == 1

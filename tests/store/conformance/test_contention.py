"""Locks are taken in one order: any two verbs, on two connections, over the same runs, end without deadlock or
damage.

Each pair meets once; KAGZI_TEST_ROUNDS says how often (`make interleavings`: twenty times).
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence

import pytest

from kagzi.core.records import RunLease
from kagzi.core.run.outcomes import Begun, Busy, Recorded
from tests.support.clock import FakeClock
from tests.support.providers import CountingIds
from tests.support.timeouts import LOADED_MACHINE_S

from .invariants import check_invariants
from .places import Place, connected
from .verbs import (
    LEASE_US,
    STEADY,
    StoreHarness,
    begin,
    complete,
    complete_run,
    fail,
    hand_back,
    leased,
    park,
    race,
    sleep,
    the,
    wait_signal,
)

ROUNDS = int(os.environ.get("KAGZI_TEST_ROUNDS", "1"))
RUNS = 6

Act = Callable[[StoreHarness, Sequence[RunLease]], Awaitable[object]]


async def cancel(harness: StoreHarness, holdings: Sequence[RunLease]) -> None:
    for holding in holdings:
        await harness.cancel(holding.run)


async def signal(harness: StoreHarness, holdings: Sequence[RunLease]) -> None:
    for holding in holdings:
        request = harness.signal_request()
        await harness.store.signal_run("default", run_id=holding.run.run_id, signal=request, now=harness.now)


async def pause(harness: StoreHarness, holdings: Sequence[RunLease]) -> None:
    for holding in holdings:
        await harness.pause(holding.run)
        await harness.resume(holding.run)


async def terminate(harness: StoreHarness, holdings: Sequence[RunLease]) -> None:
    for holding in holdings:
        await harness.terminate(holding.run)


async def end_children(harness: StoreHarness, _holdings: Sequence[RunLease]) -> None:
    claimed = await harness.claim(workflow_type="child")
    await harness.write(*(complete_run(leased(one)) for one in claimed))


async def claim(harness: StoreHarness, holdings: Sequence[RunLease]) -> None:
    await harness.claim(limit=len(holdings), worker_id="another")


ACTS: dict[str, Act] = {
    "cancel": cancel,
    "complete": lambda harness, holdings: harness.write(*(complete(holding, "open") for holding in holdings)),
    "fail": lambda harness, holdings: harness.write(*(fail(holding, "other") for holding in holdings)),
    "park": lambda harness, holdings: harness.write(*(park(holding, "nap") for holding in holdings)),
    "renew": lambda harness, holdings: harness.renew(*holdings),
    "fire": lambda harness, _holdings: harness.fire(),
    "release": lambda harness, holdings: harness.store.release(holdings, harness.now),
    "claim": claim,
    "end": lambda harness, holdings: harness.write(*(complete_run(holding) for holding in holdings)),
    "start": lambda harness, _holdings: harness.write(*(harness.start_command(f"id-{n}") for n in range(RUNS))),
    "signal": signal,
    "pause": pause,
    "terminate": terminate,
    "race": lambda harness, holdings: harness.write(*(race(holding, "race", "nap", "child") for holding in holdings)),
    "end children": end_children,
    "cascade": lambda harness, _holdings: harness.cascade(),
    "leave": lambda harness, _holdings: harness.store.worker_left("default", "worker-1", harness.now, hand_back=True),
}


async def runs_in_hand(harness: StoreHarness) -> list[RunLease]:
    """Runs with an open step, a failing one, a timer that is due, a child; half of them with a lease about to end."""
    await harness.start_many(RUNS)
    holdings = [leased(one) for one in await harness.claim()]
    await harness.write(
        *(
            command
            for holding in holdings
            for command in (
                begin(holding, "open"),
                begin(holding, "other", retry=STEADY),
                sleep(holding, "nap", s=1),
                wait_signal(holding),
                harness.child_command(holding),
            )
        )
    )
    harness.clock.advance(s=2)
    await harness.store.shorten_leases(holdings[::2], harness.now)
    return holdings


@pytest.mark.timeout(300 + 60 * ROUNDS)
@pytest.mark.parametrize("first", list(ACTS))
async def test_any_two_verbs_end_without_deadlock(
    harness: StoreHarness, second_harness: StoreHarness, first: str
) -> None:
    await harness.register("worker-1")
    for second in list(ACTS)[list(ACTS).index(first) :]:
        for _ in range(ROUNDS):
            holdings = await runs_in_hand(harness)
            backwards = holdings[::-1]
            async with asyncio.timeout(LOADED_MACHINE_S):
                # An error of any of them fails the test: a deadlock, a time-out, a broken constraint.
                await asyncio.gather(
                    ACTS[first](harness, holdings),
                    ACTS[second](second_harness, backwards),
                    ACTS[first](second_harness, holdings[::2] + holdings[1::2]),
                    ACTS[second](harness, holdings),
                )
    await check_invariants(harness.store)


async def test_steps_of_one_run_from_two_connections_never_share_a_seq(
    harness: StoreHarness, second_harness: StoreHarness
) -> None:
    holding = await harness.running()
    batches = [[begin(holding, f"{n}-{m}") for m in range(5)] for n in range(16)]
    outcomes = await asyncio.gather(
        *((harness, second_harness)[n % 2].write(*batch) for n, batch in enumerate(batches))
    )
    seqs = [the(Begun, outcome).seq for batch in outcomes for outcome in batch if not isinstance(outcome, Busy)]
    assert len(seqs) == len(set(seqs))
    await check_invariants(harness.store)


async def test_two_completions_of_one_attempt_at_once_leave_one_output(
    harness: StoreHarness, second_harness: StoreHarness
) -> None:
    # Once completion checked, then acted: the loser overwrote the output.
    for n in range(10):
        holding = await harness.running()
        await harness.do(begin(holding, "a"))
        outcomes = await asyncio.gather(
            *((harness, second_harness)[m % 2].do(complete(holding, "a", f"{n}-{m}")) for m in range(4))
        )
        recorded = {outcome for outcome in outcomes if not isinstance(outcome, Busy)}
        (answer,) = recorded
        assert the(Recorded, answer).seq == (await harness.steps(holding.run))["a"].seq
        assert len(await harness.steps(holding.run)) == 1


async def test_a_locked_row_keeps_nobody_else_waiting(
    postgres_alone: Place, clock: FakeClock, ids: CountingIds
) -> None:
    harness = StoreHarness(await postgres_alone.open(), clock, ids)
    await harness.start_many(10)
    holdings = [leased(one) for one in await harness.claim()]
    await harness.write(*(begin(holding, "a") for holding in holdings))
    async with connected(postgres_alone.address) as stranger, stranger.transaction(), asyncio.timeout(LOADED_MACHINE_S):
        await stranger.execute("select 1 from runs where run_id::text = $1 for update", holdings[4].run.run_id)
        outcomes = await harness.write(*(complete(holding, "a") for holding in holdings))
        assert outcomes.pop(4) == Busy()
        assert all(isinstance(outcome, Recorded) for outcome in outcomes)
        clock.advance(us=LEASE_US + 1)
        fired = await harness.fire()
        assert len(fired.lost) == 9
        assert len(await harness.claim()) == 9
    assert isinstance(await harness.do(complete(holdings[4], "a")), Recorded)
    await harness.do(hand_back(holdings[4]))
    assert len(await harness.claim()) == 1

"""Timers never fire early (P5), keep the time they were first given, and no wake-up is lost between look and sleep."""

import asyncio

import pytest

from kagzi.core.error_details import ErrorCode
from kagzi.core.run.outcomes import Begun, NotParked, Parked, Recorded, TimerSet
from kagzi.core.states import RunStatus, StepKind, StepStatus, WaitReason

from .verbs import (
    STEADY,
    StoreHarness,
    begin,
    by_id,
    complete,
    fail,
    finish,
    hand_back,
    leased,
    ms,
    park,
    refused,
    sleep,
    the,
)


async def test_a_sleep_stores_its_absolute_wake_time(harness: StoreHarness) -> None:
    holding = await harness.running()
    timer = the(TimerSet, await harness.do(sleep(holding, "nap", us=1_234_567)))
    assert (timer.at, timer.wake_at) == (harness.now, harness.now + 1_234_567)
    step = (await harness.steps(holding.run))["nap"]
    assert (step.kind, step.status, step.wake_at) == (StepKind.SLEEP, StepStatus.RUNNING, timer.wake_at)
    assert (step.begun_seq, step.seq) == (timer.seq, 0)


async def test_the_wake_time_is_fixed_the_first_time(harness: StoreHarness) -> None:
    old = await harness.running()
    first = the(TimerSet, await harness.do(sleep(old, "nap", s=60)))
    harness.clock.advance(s=5)
    assert the(TimerSet, await harness.do(sleep(old, "nap", s=600))).wake_at == first.wake_at
    new = await harness.take_over(old)
    assert the(TimerSet, await harness.do(sleep(new, "nap", s=1))).wake_at == first.wake_at
    assert the(TimerSet, await harness.do(sleep(new, "nap", until=harness.now + 1))).wake_at == first.wake_at


async def test_sleep_until_a_moment(harness: StoreHarness) -> None:
    holding = await harness.running()
    moment = harness.now + 1
    assert the(TimerSet, await harness.do(sleep(holding, "nap", until=moment))).wake_at == moment


@pytest.mark.parametrize("ago_us", [0, 1, 10**15])
async def test_a_moment_that_has_passed_is_recorded_at_once(harness: StoreHarness, ago_us: int) -> None:
    holding = await harness.running()
    command = sleep(holding, "nap", until=harness.now - ago_us)
    recorded = the(Recorded, await harness.do(command))
    assert recorded.at == harness.now
    step = (await harness.steps(holding.run))["nap"]
    assert (step.status, step.seq, step.finished_at) == (StepStatus.COMPLETED, recorded.seq, harness.now)
    harness.clock.advance(s=1)
    assert await harness.do(command) == recorded


async def test_a_sleep_of_nothing_is_recorded_at_once_and_the_shortest_is_not(harness: StoreHarness) -> None:
    # Once sleeps under a second became none, yet the worker suspended: the run hung.
    holding = await harness.running()
    the(Recorded, await harness.do(sleep(holding, "nothing", us=0)))
    assert the(TimerSet, await harness.do(sleep(holding, "a blink", us=1))).wake_at == harness.now + 1


async def test_a_sleep_that_is_over_is_recorded_under_a_newer_lease_too(harness: StoreHarness) -> None:
    old = await harness.running()
    await harness.do(sleep(old, "nap", s=1))
    new = await harness.take_over(old)
    the(Recorded, await harness.do(sleep(new, "nap", s=1)))


async def test_a_claim_completes_no_sleep(harness: StoreHarness) -> None:
    # Once any claim completed every running sleep, so a crash in between skipped it.
    old = await harness.running()
    first = the(TimerSet, await harness.do(sleep(old, "nap", s=3_600)))
    await harness.do(hand_back(old))
    claimed = await harness.claim_one()
    nap = by_id(claimed.history.steps)["nap"]
    assert (nap.status, nap.wake_at) == (StepStatus.RUNNING, first.wake_at)


async def test_a_worker_that_comes_early_gets_the_remaining_time(harness: StoreHarness) -> None:
    holding = await harness.running()
    wake_at = the(TimerSet, await harness.do(sleep(holding, "nap", s=1))).wake_at
    harness.clock.set(wake_at - 1)
    assert the(TimerSet, await harness.do(finish(holding, "nap"))).wake_at == wake_at
    assert (await harness.steps(holding.run))["nap"].status == StepStatus.RUNNING
    harness.clock.set(wake_at)
    recorded = the(Recorded, await harness.do(finish(holding, "nap")))
    assert recorded.at == wake_at
    harness.clock.advance(s=1)
    assert await harness.do(finish(holding, "nap")) == recorded
    step = (await harness.steps(holding.run))["nap"]
    assert (step.status, step.seq) == (StepStatus.COMPLETED, recorded.seq)


async def test_a_newer_holder_may_finish_the_sleep_of_an_older_one(harness: StoreHarness) -> None:
    old = await harness.running()
    await harness.do(sleep(old, "nap", s=1))
    new = await harness.take_over(old)
    the(Recorded, await harness.do(finish(new, "nap")))


async def test_a_parked_run_sleeps_without_a_lease(harness: StoreHarness) -> None:
    holding = await harness.running()
    timer, parked = await harness.write(sleep(holding, "nap", s=60), park(holding, "nap"))
    wake_at = the(TimerSet, timer).wake_at
    assert the(Parked, parked) == Parked(harness.now, wake_at)
    record = await harness.run(holding.run)
    assert (record.status, record.wait_reason, record.wake_at) == (RunStatus.SLEEPING, WaitReason.TIME, wake_at)
    assert record.worker_id is None
    assert (await harness.poll()).next_due_at == wake_at
    assert (await harness.renew(holding)).lost == (holding,)


async def test_a_repeated_park_answers_the_same(harness: StoreHarness) -> None:
    holding = await harness.running()
    _, first = await harness.write(sleep(holding, "nap", s=60), park(holding, "nap"))
    harness.clock.advance(s=1)
    again = the(Parked, await harness.do(park(holding, "nap")))
    assert again.wake_at == the(Parked, first).wake_at
    assert (await harness.run(holding.run)).status == RunStatus.SLEEPING


async def test_a_timer_fires_at_its_time_and_not_a_microsecond_before(harness: StoreHarness) -> None:
    holding = await harness.asleep(s=60)
    wake_at = (await harness.run(holding.run)).wake_at
    assert wake_at is not None
    harness.clock.set(wake_at - 1)
    before = await harness.picture(holding.run)
    fired = await harness.fire()
    assert (fired.pending, fired.ended, fired.lost, fired.more) == ((), (), (), False)
    assert await harness.picture(holding.run) == before

    harness.clock.set(wake_at)
    fired = await harness.fire()
    assert fired.pending == (("default", "hello"),)
    record, steps = await harness.picture(holding.run)
    assert (record.status, record.wait_reason, record.wake_at) == (RunStatus.PENDING, None, None)
    assert (steps["nap"].status, steps["nap"].finished_at) == (StepStatus.COMPLETED, wake_at)

    claimed = await harness.claim_one()
    nap = by_id(claimed.history.steps)["nap"]
    assert (nap.status, nap.seq, nap.at) == (StepStatus.COMPLETED, steps["nap"].seq, wake_at)
    assert nap.begun_seq < nap.seq <= claimed.last_seq


async def test_a_timer_fires_once(harness: StoreHarness, second_harness: StoreHarness) -> None:
    sleepers = [await harness.asleep(s=60) for _ in range(20)]
    harness.clock.advance(s=60)
    await asyncio.gather(*((harness, second_harness)[n % 2].fire(limit=4) for n in range(8)))
    while (await harness.fire()).more:
        pass
    claimed = await harness.claim()
    assert sorted(one.run.run_id for one in claimed) == sorted(one.run.run_id for one in sleepers)
    for one in claimed:
        (nap,) = one.history.steps
        assert nap.status == StepStatus.COMPLETED
        assert (await harness.fire()).pending == ()


async def test_of_several_sleeps_only_those_that_are_due_complete(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.write(*(sleep(holding, f"nap-{s}", s=s) for s in (30, 10, 20, 40)))
    await harness.do(park(holding, "nap-30", "nap-10", "nap-20", "nap-40"))
    assert (await harness.run(holding.run)).wake_at == harness.now + 10_000_000
    harness.clock.advance(s=20)
    await harness.fire()
    claimed = await harness.claim_one()
    steps = by_id(claimed.history.steps)
    done = [name for name, step in steps.items() if step.status == StepStatus.COMPLETED]
    assert sorted(done) == ["nap-10", "nap-20"]
    assert steps["nap-10"].seq != steps["nap-20"].seq
    assert steps["nap-10"].seq < steps["nap-20"].seq, "results come in the order of their times"

    parked = the(Parked, await harness.do(park(leased(claimed), "nap-30", "nap-40", known_seq=claimed.last_seq)))
    assert parked.wake_at == harness.now + 10_000_000


async def test_a_run_is_not_parked_over_a_time_that_has_come(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.write(sleep(holding, "nap", s=5), sleep(holding, "long", s=500))
    harness.clock.advance(s=5)
    outcome = the(NotParked, await harness.do(park(holding, "nap", "long")))
    assert outcome.at == harness.now
    (nap,) = outcome.results
    assert (nap.step_id, nap.status, nap.at) == ("nap", StepStatus.COMPLETED, harness.now)
    assert nap.seq > nap.begun_seq
    assert (await harness.run(holding.run)).status == RunStatus.RUNNING
    assert (await harness.steps(holding.run))["nap"].seq == nap.seq
    the(Begun, await harness.do(begin(holding, "go on")))
    parked = the(Parked, await harness.do(park(holding, "long", known_seq=nap.seq)))
    assert parked.wake_at == harness.now + 495_000_000


async def test_a_run_is_not_parked_over_a_result_its_worker_does_not_know(harness: StoreHarness) -> None:
    holding = await harness.running()
    first = await harness.done(holding, "a", "1")
    await harness.do(sleep(holding, "nap", s=60))
    outcome = the(NotParked, await harness.do(park(holding, "nap", known_seq=first.seq - 1)))
    assert [(step.step_id, step.seq) for step in outcome.results] == [("a", first.seq)]
    the(Parked, await harness.do(park(holding, "nap", known_seq=first.seq)))


async def test_a_repeated_park_that_was_not_granted_is_not_granted_again(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.write(sleep(holding, "nap", s=5), sleep(holding, "long", s=500))
    harness.clock.advance(s=5)
    ask = park(holding, "nap", "long", known_seq=2)
    first = the(NotParked, await harness.do(ask))
    again = the(NotParked, await harness.do(ask))
    assert again.results == first.results


async def test_a_run_that_waits_for_nothing_is_not_put_to_sleep_for_ever(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.done(holding, "a")
    error = refused(await harness.do(park(holding)), ErrorCode.PRECONDITION_FAILED)
    assert "nothing to wait for" in error.message
    assert (await harness.run(holding.run)).status == RunStatus.RUNNING


@pytest.mark.parametrize(("nap_s", "reason"), [(5, WaitReason.TIME), (15, WaitReason.RETRY)])
async def test_the_nearest_of_sleep_and_retry_wakes_the_run(
    harness: StoreHarness, nap_s: int, reason: WaitReason
) -> None:
    holding = await harness.running()
    await harness.write(begin(holding, "a", retry=STEADY), fail(holding, "a"), sleep(holding, "nap", s=nap_s))
    parked = the(Parked, await harness.do(park(holding, "a", "nap")))
    assert parked.wake_at == harness.now + ms(min(nap_s * 1_000, 10_000))
    assert (await harness.run(holding.run)).wait_reason == reason


async def test_a_sleep_that_has_ended_is_known(harness: StoreHarness) -> None:
    holding = await harness.asleep(s=60)
    harness.clock.advance(s=60)
    await harness.fire()
    claimed = await harness.claim_one()
    recorded = the(Recorded, await harness.do(sleep(leased(claimed), "nap", s=60)))
    assert recorded.seq == (await harness.steps(holding.run))["nap"].seq


async def test_the_clock_does_not_touch_the_sleeps_of_a_run_in_hand(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.do(sleep(holding, "nap", s=1))
    harness.clock.advance(s=2)
    before = await harness.picture(holding.run)
    assert (await harness.fire()).pending == ()
    assert await harness.picture(holding.run) == before


async def test_firing_stops_at_its_limit_and_says_so(harness: StoreHarness) -> None:
    for _ in range(5):
        await harness.asleep(s=60)
    harness.clock.advance(s=61)
    rounds = 0
    while (await harness.fire(limit=2)).more:
        rounds += 1
        assert rounds < 10
    assert rounds >= 2
    assert len(await harness.claim()) == 5


async def test_the_earliest_timers_fire_first(harness: StoreHarness) -> None:
    late, early = await harness.asleep(s=20), await harness.asleep(s=10)
    harness.clock.advance(s=30)
    assert (await harness.fire(limit=1)).more
    assert (await harness.claim_one()).run == early.run
    await harness.fire(limit=1)
    assert (await harness.claim_one()).run == late.run


async def test_no_wake_up_is_lost_when_a_park_races_the_clock(
    harness: StoreHarness, second_harness: StoreHarness
) -> None:
    # Whoever comes first, the run is in hand with the result, or to be claimed with it; never asleep.
    for _ in range(15):
        holding = await harness.running()
        await harness.do(sleep(holding, "nap", s=1))
        harness.clock.advance(s=1)
        outcome, *_ = await asyncio.gather(
            harness.do(park(holding, "nap")),
            second_harness.fire(end_leases=False),
            second_harness.fire(end_leases=False),
        )
        record = await harness.run(holding.run)
        if isinstance(outcome, NotParked):
            assert record.status == RunStatus.RUNNING
            await harness.do(hand_back(holding))
        else:
            await harness.fire(end_leases=False)
        (claimed,) = await harness.claim()
        assert by_id(claimed.history.steps)["nap"].status == StepStatus.COMPLETED


async def test_work_in_flight_does_not_end_a_sleep(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.write(begin(holding, "work"), sleep(holding, "nap", s=60), complete(holding, "work"))
    assert (await harness.steps(holding.run))["nap"].status == StepStatus.RUNNING

"""When all workers of a version have a new build, its runs that wait for a signal are woken once, to be replayed; and a
wait takes the timeout of the code that replays it."""

import pytest

from kagzi.core.error_details import ErrorCode, ErrorKind
from kagzi.core.records import RunKey, RunLease
from kagzi.core.run.outcomes import Known, NotParked, Parked, SignalBound, TimerSet
from kagzi.core.states import RunStatus, StepStatus
from kagzi.core.times import US_PER_S
from kagzi.core.workflow_types.type_key import TypeKey
from kagzi.core.workflow_types.versions import BuildReplay

from .invariants import check_invariants
from .verbs import LEASE_US, StoreHarness, by_id, complete_run, leased, park, payload, sleep, the, wait_signal

S = RunStatus
HELLO = TypeKey("default", "hello")


async def wake_some(harness: StoreHarness, limit: int = 100) -> BuildReplay | None:
    alive_since = harness.now - LEASE_US
    replay, harness.effects = await harness.store.wake_for_new_builds(alive_since, harness.now, limit)
    return replay


async def woken(harness: StoreHarness, limit: int = 100) -> int:
    """How many runs are woken until there is nothing left to do."""
    total = 0
    for _ in range(1_000):
        replay = await wake_some(harness, limit)
        if replay is None:
            return total
        total += replay.woken
    raise AssertionError("the replay of a build has no end")


async def waiting(harness: StoreHarness, s: float | None = None, **options: object) -> RunLease:
    """A run that sleeps until a signal comes."""
    holding = await harness.running(**options)
    the(TimerSet, await harness.do(wait_signal(holding, s=s)))
    the(Parked, await harness.do(park(holding, "approved")))
    return holding


async def settled(harness: StoreHarness, build_id: str = "a", **options: object) -> None:
    """Workers with this build, which has replayed everything that it has to."""
    await harness.register("worker-1", build_id=build_id, **options)
    await woken(harness)


# --- which runs are woken ---------------------------------------------------------------------------------------------


async def test_a_new_build_wakes_runs_that_wait_for_a_signal_once(harness: StoreHarness) -> None:
    await settled(harness, "a")
    run = (await waiting(harness)).run
    assert await woken(harness) == 0, "its workers have the build that it waits with"
    await harness.register("worker-1", build_id="b")
    assert await wake_some(harness) == BuildReplay(HELLO, "1", 1, more=False)
    assert harness.effects.pending == (HELLO,)
    assert (await harness.run(run)).status is S.PENDING
    holding = await harness.hold(run)
    assert the(TimerSet, await harness.do(wait_signal(holding))).wake_at is None
    the(Parked, await harness.do(park(holding, "approved")))
    assert await woken(harness) == 0
    await harness.register("worker-1", build_id="b")
    assert await woken(harness) == 0
    await harness.register("worker-1", build_id="a")  # back to the earlier code
    assert await woken(harness) == 1
    await check_invariants(harness.store)


async def test_nothing_is_woken_while_other_workers_still_have_the_earlier_code(harness: StoreHarness) -> None:
    await settled(harness, "a")
    await waiting(harness)
    await harness.register("worker-2", build_id="b")
    assert await woken(harness) == 0
    await harness.store.drain_worker("default", "worker-1", "a deploy", harness.now)
    assert await woken(harness) == 1


async def test_a_worker_that_is_silent_does_not_count(harness: StoreHarness) -> None:
    await settled(harness, "a")
    await waiting(harness)
    harness.clock.advance(us=2 * LEASE_US)
    await harness.register("worker-2", build_id="b")
    assert await woken(harness) == 1


async def test_only_runs_of_that_type_version_and_namespace_that_wait_for_a_signal(harness: StoreHarness) -> None:
    await settled(harness, "a", served={"hello": "1", "other": "1"})
    await harness.register("worker-1", namespace="elsewhere", build_id="a")
    await woken(harness)
    other = await waiting(harness, workflow_type="other")
    elsewhere = await waiting(harness, namespace="elsewhere")
    asleep = await harness.asleep(s=600)
    delayed = await harness.start(start_at=harness.now + 600 * US_PER_S)
    mine = await waiting(harness)
    await harness.register("worker-1", build_id="b", served={"hello": "1"})
    assert await woken(harness) == 1
    assert (await harness.run(mine.run)).status is S.PENDING
    for run in (other.run, elsewhere.run, asleep.run, delayed):
        assert (await harness.run(run)).status is S.SLEEPING, run


async def test_a_run_that_was_adopted_keeps_the_code_of_its_build(harness: StoreHarness) -> None:
    await settled(harness, "a")
    run = (await waiting(harness)).run
    assert await harness.adopt(run, "repair") is S.SLEEPING
    await harness.register("worker-1", build_id="b")
    assert await woken(harness) == 0


async def test_runs_of_another_version_are_left_alone(harness: StoreHarness) -> None:
    await settled(harness, "a")
    run = (await waiting(harness)).run
    await harness.register("worker-1", build_id="b", served={"hello": "2"})
    assert await woken(harness) == 0
    assert (await harness.run(run)).status is S.SLEEPING


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
async def test_they_are_woken_in_batches_and_each_once(harness: StoreHarness, limit: int) -> None:
    await settled(harness, "a")
    runs: list[RunKey] = []
    for number in range(5):
        harness.clock.advance(us=1)
        runs.append((await waiting(harness) if number % 2 == 0 else await harness.asleep(s=600)).run)
    await harness.register("worker-1", build_id="b")
    assert await woken(harness, limit) == 3
    assert [(await harness.run(run)).status for run in runs] == [S.PENDING, S.SLEEPING] * 2 + [S.PENDING]


async def test_another_build_in_the_middle_begins_again(harness: StoreHarness) -> None:
    await settled(harness, "a")
    runs = [(await waiting(harness)).run for _ in range(3)]
    await harness.register("worker-1", build_id="b")
    assert the(BuildReplay, await wake_some(harness, limit=2)).woken == 2
    for one in await harness.claim(limit=10):
        the(Parked, await harness.do(park(leased(one), "approved")))
    await harness.register("worker-1", build_id="c")
    assert await woken(harness, limit=2) == 3
    assert {(await harness.run(run)).status for run in runs} == {S.PENDING}


# --- the timeout ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("before", "after"), [(None, 30), (10, 30), (60, 30), (60, None)])
async def test_a_wait_takes_the_timeout_of_a_later_command_from_when_it_began(
    harness: StoreHarness, before: float | None, after: float | None
) -> None:
    began = harness.now
    old = await harness.running()
    the(TimerSet, await harness.do(wait_signal(old, s=before)))
    harness.clock.advance(s=5)
    holding = await harness.take_over(old) if before is None or before > 25 else old
    command = wait_signal(holding, s=after)
    wake_at = None if after is None else began + round(after * US_PER_S)
    for _ in range(2):  # a repeat changes nothing
        assert the(TimerSet, await harness.do(command)).wake_at == wake_at
        assert (await harness.steps(holding.run))["approved"].wake_at == wake_at
    assert the(Parked, await harness.do(park(holding, "approved"))).wake_at == wake_at
    await check_invariants(harness.store)
    if wake_at is None:
        return
    harness.clock.advance(us=wake_at - harness.now)
    await harness.fire()
    failed = (await harness.steps(holding.run))["approved"]
    assert failed.status is StepStatus.FAILED
    assert failed.error is not None
    assert (failed.error.code, failed.error.kind) == (ErrorCode.TIMEOUT, ErrorKind.TIMEOUT)


async def test_a_timeout_that_is_over_fails_the_wait_when_its_run_parks(harness: StoreHarness) -> None:
    old = await waiting(harness)
    await harness.register("worker-1", build_id="b")
    harness.clock.advance(s=5)
    assert await woken(harness) == 1
    holding = await harness.hold(old.run)
    the(TimerSet, await harness.do(wait_signal(holding, s=2)))
    (result,) = the(NotParked, await harness.do(park(holding, "approved", known_seq=0))).results
    assert (result.step_id, result.status) == ("approved", StepStatus.FAILED)
    the(Known, await harness.do(wait_signal(holding, s=2)))
    await harness.do(complete_run(holding))


async def test_a_signal_before_the_new_timeout_is_recorded_wins(harness: StoreHarness) -> None:
    old = await harness.running()
    the(TimerSet, await harness.do(wait_signal(old)))
    holding = await harness.take_over(old)
    await harness.signal(holding.run, value="just in time")
    known = the(Known, await harness.do(wait_signal(holding, s=1))).step
    assert (known.status, known.output) == (StepStatus.COMPLETED, payload("just in time"))


async def test_only_the_holder_changes_a_timeout(harness: StoreHarness) -> None:
    old = await harness.running()
    the(TimerSet, await harness.do(wait_signal(old, s=60)))
    holding = await harness.take_over(old)
    before = await harness.picture(holding.run)
    await harness.do(wait_signal(old, s=1))
    assert await harness.picture(holding.run) == before


async def test_the_history_says_when_an_open_wait_began(harness: StoreHarness) -> None:
    began = harness.now
    old = await harness.running()
    the(TimerSet, await harness.do(wait_signal(old)))
    await harness.signal(old.run, "early", "x")
    harness.clock.advance(s=1)
    the(SignalBound, await harness.do(wait_signal(old, "early")))
    the(TimerSet, await harness.do(sleep(old, "nap", s=60)))
    harness.clock.advance(us=LEASE_US + 1)
    await harness.fire()
    (one,) = await harness.claim(worker_id="worker-2")
    steps = by_id(one.history.steps)
    assert {name: steps[name].at - began for name in steps} == {
        "approved": 0, "early": US_PER_S, "nap": US_PER_S,
    }  # fmt: skip

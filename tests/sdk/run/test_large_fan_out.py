"""What a fan-out of thousands of branches costs: so much for each, however many there are. In counts, not in time."""

import asyncio
import sys
from typing import Any, cast

from kagzi.sdk.execution.idle.outside_sources import OutsideSources
from kagzi.sdk.execution.idle.tasks import RunTasks
from kagzi.sdk.execution.replay_barrier import ReplayBarrier

BRANCHES = 300


class Compared(asyncio.Future[None]):
    """Counts how often one is compared with another."""

    count = 0

    def __eq__(self, other: object) -> bool:
        Compared.count += 1
        return self is other

    __hash__ = object.__hash__


class Everything:
    """A run, its claim, its tasks and its ledger, as far as a barrier without recorded calls needs them."""

    outstanding = 0
    cancelling = False

    def __init__(self) -> None:
        self.loop = self.idle = self

    def create_future(self) -> Compared:
        return Compared()

    def start(self) -> None: ...

    def caught_up(self) -> None: ...

    async def wait(self, future: asyncio.Future[None]) -> None:
        await future


async def test_calls_that_were_held_back_are_let_go_without_comparing_each_with_all() -> None:
    every = cast("Any", Everything())
    barrier = ReplayBarrier(every, every, every, every, every, every.wait)
    blocked = [asyncio.ensure_future(barrier.hold(f"step#{index}")) for index in range(BRANCHES)]
    await asyncio.sleep(0)
    Compared.count = 0
    assert barrier.on_idle(has_waits=False)
    await asyncio.gather(*blocked)
    assert not barrier.is_watching
    assert Compared.count <= BRANCHES


class Timer:
    """One that is far from due. Counts how often it is looked at."""

    polls = 0

    def cancelled(self) -> bool:
        Timer.polls += 1
        return False

    def when(self) -> float:
        return asyncio.get_running_loop().time() + 60


async def test_pending_timers_are_not_all_looked_at_for_each_that_is_added() -> None:
    sources = OutsideSources(asyncio.get_running_loop())
    for _ in range(20 * BRANCHES):
        sources.add(cast("asyncio.TimerHandle", Timer()))
    assert Timer.polls <= 2 * 20 * BRANCHES


async def test_what_a_run_goes_through_in_each_pass_is_small_again_after_a_fan_out() -> None:
    """A set that was large would be gone through slot by slot, for each result that is delivered."""
    tasks = RunTasks(asyncio.get_running_loop(), lambda: None, lambda: None)
    one = asyncio.get_running_loop().create_future()
    tasks.adopt(one)
    small = sys.getsizeof(tasks.runnable)
    branches = [asyncio.get_running_loop().create_future() for _ in range(20 * BRANCHES)]
    for branch in branches:
        tasks.adopt(branch)
    assert sys.getsizeof(tasks.runnable) > 100 * small
    for branch in branches:
        assert tasks.block(branch)
    assert tasks.runnable == {one}
    assert sys.getsizeof(tasks.runnable) <= 20 * small

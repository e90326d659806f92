"""A time limit whose blocks share a timer ends each of them in its own time."""

import asyncio
from collections.abc import Callable

import pytest

from kagzi.engine.commit.time_limit import TimeLimit
from tests.support.timeouts import LOADED_MACHINE_S


class Timers:
    """Those that were set, with their times; they are called by the test."""

    def __init__(self) -> None:
        self.set: list[tuple[float, Callable[[], None]]] = []

    def call_at(self, when: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
        self.set.append((when, callback))
        loop = asyncio.get_running_loop()
        return asyncio.TimerHandle(when, callback, (), loop)


@pytest.fixture
async def timers(monkeypatch: pytest.MonkeyPatch) -> Timers:
    timers = Timers()
    monkeypatch.setattr(asyncio.get_running_loop(), "call_at", timers.call_at)
    return timers


async def test_what_takes_too_long_is_a_timeout() -> None:
    with pytest.raises(TimeoutError), TimeLimit(0.001):
        await asyncio.get_running_loop().create_future()
    task = asyncio.current_task()
    assert task is not None
    assert not task.cancelling()


async def test_many_blocks_take_one_timer(timers: Timers) -> None:
    limit = TimeLimit(LOADED_MACHINE_S)
    for _ in range(10):
        with limit:
            pass
    assert len(timers.set) == 1


async def test_a_block_is_not_ended_by_the_time_of_an_earlier_one(timers: Timers) -> None:
    limit = TimeLimit(LOADED_MACHINE_S)
    with limit:
        pass
    first, fire = timers.set[0]
    with limit:
        fire()
        await asyncio.sleep(0)  # here a cancellation would come out
    later, _ = timers.set[1]
    assert later > first


async def test_no_timer_is_left_when_no_block_follows(timers: Timers) -> None:
    limit = TimeLimit(LOADED_MACHINE_S)
    with limit:
        pass
    _, fire = timers.set[0]
    fire()
    with limit:
        pass
    assert len(timers.set) == 2, "one that has fired is not set again before it is needed"


async def test_a_closed_limit_leaves_no_timer() -> None:
    limit = TimeLimit(LOADED_MACHINE_S)
    with limit:
        pass
    timer = limit._timer
    assert timer is not None
    limit.close()
    assert timer.cancelled()


async def test_a_cancellation_from_outside_is_none_of_its_own() -> None:
    async def wait() -> None:
        with TimeLimit(LOADED_MACHINE_S):
            await asyncio.get_running_loop().create_future()

    waiting = asyncio.create_task(wait())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_an_error_of_the_block_comes_out_as_it_is() -> None:
    limit = TimeLimit(LOADED_MACHINE_S)
    with pytest.raises(ValueError, match="wrong"), limit:
        raise ValueError("wrong")
    with limit:
        pass

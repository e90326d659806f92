"""Chores are done in turn, by themselves, and whatever goes wrong in one concerns no other."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable

import pytest

from kagzi.core.errors import Unavailable
from kagzi.core.limits import Settings
from kagzi.core.times import Timestamp
from kagzi.engine.background import housekeeping as module
from kagzi.engine.background.housekeeping import Chore, Housekeeping
from tests.support.providers import LoadedRng
from tests.support.timeouts import LOADED_MACHINE_S

from .fakes import MovableClock, TroubledStore

Start = Callable[..., Housekeeping]
QUICK = Settings(housekeeping_ms=5)


class Diary:
    """What was done, to be waited for."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self._changed = asyncio.Event()

    def note(self, what: str) -> None:
        self.done.append(what)
        self._changed.set()

    async def until(self, count: int, what: str = "") -> list[str]:
        async with asyncio.timeout(LOADED_MACHINE_S):
            while len([one for one in self.done if not what or one == what]) < count:
                self._changed.clear()
                await self._changed.wait()
        return self.done


@pytest.fixture
def diary() -> Diary:
    return Diary()


@pytest.fixture
async def start(store: TroubledStore, clock: MovableClock) -> AsyncIterator[Start]:
    tasks: list[asyncio.Task[None]] = []

    def start(*chores: Chore, settings: Settings = QUICK, alone: bool = True) -> Housekeeping:
        housekeeping = Housekeeping(store, clock=clock, rng=LoadedRng(), settings=settings, alone=alone)
        for chore in chores:
            housekeeping.add(chore)
        tasks.append(asyncio.create_task(housekeeping.run()))
        return housekeeping

    yield start
    for task in tasks:
        task.cancel()
    for outcome in await asyncio.gather(*tasks, return_exceptions=True):
        assert isinstance(outcome, asyncio.CancelledError), "housekeeping died"


def chore(diary: Diary, name: str, *, more: int = 0, every: int = 1, shared: bool = False) -> Chore:
    left = more

    async def work(now: Timestamp) -> bool:
        nonlocal left
        left -= 1
        diary.note(name)
        return left >= 0

    return Chore(name=name, work=work, every=every, shared=shared)


async def test_chores_come_again_and_again(start: Start, diary: Diary) -> None:
    start(chore(diary, "sweep"), chore(diary, "dust"))
    await diary.until(3, "sweep")
    await diary.until(3, "dust")


async def test_a_chore_is_never_done_more_often_than_its_interval(start: Start, diary: Diary) -> None:
    start(chore(diary, "often"), chore(diary, "seldom", every=1_000_000))
    await diary.until(5, "often")
    assert "seldom" not in diary.done


async def test_what_is_left_is_done_at_once(start: Start, diary: Diary) -> None:
    housekeeping = start(chore(diary, "sweep", more=4, every=1_000_000))
    await asyncio.sleep(0)
    housekeeping.soon("sweep")
    await diary.until(5, "sweep")


async def test_after_its_turn_the_others_come_first(
    start: Start, diary: Diary, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TURN_S", 0.0)
    housekeeping = start(chore(diary, "endless", more=1_000_000), chore(diary, "short", every=1_000_000))
    await diary.until(3, "endless")
    housekeeping.soon("short")
    await diary.until(1, "short")


async def test_a_chore_that_fails_is_tried_again_and_stops_no_other(
    start: Start, diary: Diary, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "_BACKOFF_FIRST_S", 0.001)
    errors = [Unavailable("away"), RuntimeError("a bug")]

    async def work(now: Timestamp) -> bool:
        if errors:
            raise errors.pop(0)
        diary.note("at last")
        return False

    with caplog.at_level(logging.WARNING):
        start(Chore(name="hard", work=work, every=1), chore(diary, "easy"))
        await diary.until(1, "at last")
        await diary.until(1, "easy")
    assert sum("hard" in record.getMessage() for record in caplog.records) == 2


async def test_of_several_servers_one_does_a_shared_chore(start: Start, diary: Diary, clock: MovableClock) -> None:
    minute = Settings(housekeeping_ms=60_000)
    instances = [
        start(
            chore(diary, "costly", shared=True),
            chore(diary, f"own-{number}"),
            settings=minute,
            alone=False,
        )
        for number in range(2)
    ]
    await asyncio.sleep(0)
    for housekeeping in instances:  # their time has come
        for place in housekeeping._places.values():
            place.due_s = 0.0
        housekeeping._changed.set()
    await diary.until(1, "own-0")
    await diary.until(1, "own-1")
    assert diary.done.count("costly") == 1


def test_what_makes_no_sense_is_refused(store: TroubledStore, clock: MovableClock, diary: Diary) -> None:
    housekeeping = Housekeeping(store, clock=clock, rng=LoadedRng(), settings=QUICK, alone=True)
    housekeeping.add(chore(diary, "sweep"))
    with pytest.raises(ValueError, match="already"):
        housekeeping.add(chore(diary, "sweep"))
    with pytest.raises(ValueError, match="often"):
        housekeeping.add(chore(diary, "dust", every=0))

"""Whose clock decides: the store's, followed between polls by the time that has passed, whatever the wall clock
says."""

import logging
import time

import pytest

from kagzi.core.limits import Settings
from kagzi.core.times import US_PER_MS, US_PER_S, Timestamp
from kagzi.engine.timing.store_clock import SETTLE_US, StoreClock
from kagzi.store.protocol import PendingWork
from kagzi.system import SystemClock
from tests.support.clock import BEGINNING

HOUR_US = 3_600 * US_PER_S
SETTINGS = Settings(poll_interval_ms=5_000)


class World:
    """A server's clock, the store's clock, and the time that really passes."""

    def __init__(self, *, alone: bool, ahead_us: int = 0) -> None:
        self.passed_us = 0
        self.store_ahead_us = 0
        self._offset_us = ahead_us
        self.polls = 0
        self.steps = 0
        self.sync = StoreClock(self, clock=self, settings=SETTINGS, alone=alone, on_step=self._stepped)  # type: ignore[arg-type]

    def now(self) -> Timestamp:
        return BEGINNING + self.passed_us + self._offset_us

    def follow(self, store_now: Timestamp, sent_at: Timestamp, received_at: Timestamp) -> None:
        self._offset_us += store_now - (sent_at + received_at) // 2

    async def poll(self, heartbeats: object, now: Timestamp) -> PendingWork:
        self.polls += 1
        self.passed_us += US_PER_MS  # the round trip
        return PendingWork(self.store_now, None, ())

    @property
    def store_now(self) -> Timestamp:
        return BEGINNING + self.passed_us + self.store_ahead_us

    @property
    def error_us(self) -> int:
        """How far the server's clock is from the time that has passed."""
        return abs(self.now() - (BEGINNING + self.passed_us))

    def jump(self, by_us: int) -> None:
        """The server's own clock, the one it counts elapsed time by."""
        self._offset_us += by_us

    def note_poll(self, *, after_s: int = 5) -> bool:
        self.passed_us += after_s * US_PER_S
        polled_at = self.now()
        self.passed_us += US_PER_MS
        return self.sync.polled(self.store_now, polled_at, self.now())

    def _stepped(self) -> None:
        self.steps += 1


@pytest.mark.parametrize("by_us", [HOUR_US, -HOUR_US])
def test_setting_the_wall_clock_moves_nothing(monkeypatch: pytest.MonkeyPatch, by_us: int) -> None:
    clock, wall = SystemClock(), time.time_ns
    before = clock.now()
    monkeypatch.setattr(time, "time_ns", lambda: wall() + by_us * 1_000)
    assert 0 <= clock.now() - before < HOUR_US // 2


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("ahead_us", [HOUR_US, -HOUR_US])
async def test_a_server_whose_clock_is_wrong_from_the_start_has_the_stores(alone: bool, ahead_us: int) -> None:
    world = World(alone=alone, ahead_us=ahead_us)
    await world.sync.start()
    assert world.error_us < US_PER_S
    assert (world.polls, world.steps) == (1, 1)


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("by_us", [HOUR_US, -HOUR_US])
async def test_a_jump_of_the_clock_is_confirmed_before_anything_is_decided(alone: bool, by_us: int) -> None:
    world = World(alone=alone)
    await world.sync.start()
    polls = world.polls
    await world.sync.confirm()
    assert world.polls == polls, "a recent poll is enough"
    world.jump(by_us)
    await world.sync.confirm()
    assert world.polls > polls
    if not alone:  # two polls agree that the store's clock is another one
        assert world.error_us < US_PER_S


@pytest.mark.parametrize("alone", [True, False])
def test_drift_is_followed_and_a_round_trips_doubt_is_not(alone: bool) -> None:
    world = World(alone=alone)
    world.note_poll()
    world.store_ahead_us = 800  # less than a tick
    assert not world.note_poll()
    assert world.error_us == 0
    world.store_ahead_us = 300 * US_PER_MS
    assert not world.note_poll()
    assert abs(world.error_us - 300 * US_PER_MS) <= US_PER_MS
    assert world.steps == 0


@pytest.mark.parametrize("by_us", [HOUR_US, -HOUR_US])
def test_a_step_of_the_databases_clock_takes_two_polls(by_us: int) -> None:
    world = World(alone=False)
    world.note_poll()
    world.store_ahead_us = by_us
    assert world.note_poll(), "one reading is not enough: ask again at once"
    assert (world.error_us, world.steps) == (0, 0)
    assert not world.note_poll(after_s=0)
    assert world.steps == 1
    assert abs(world.now() - world.store_now) < US_PER_S


def test_one_odd_reading_of_the_databases_clock_changes_nothing() -> None:
    world = World(alone=False)
    world.note_poll()
    world.store_ahead_us = HOUR_US
    world.note_poll()
    world.store_ahead_us = 0
    assert not world.note_poll(after_s=0)
    assert (world.error_us, world.steps) == (0, 0)


@pytest.mark.parametrize("by_us", [HOUR_US, -HOUR_US])
def test_a_step_of_the_only_machines_clock_is_reported_and_counts_when_it_has_stood(
    by_us: int, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(alone=True)
    world.note_poll()
    with caplog.at_level(logging.WARNING, "kagzi.engine"):
        world.store_ahead_us = by_us
        for _ in range(SETTLE_US // (5 * US_PER_S) - 1):
            assert not world.note_poll()
            assert world.error_us == 0
        assert ["clock was set" in record.message for record in caplog.records] == [True], "once, not at every poll"
        world.note_poll()
        world.note_poll()
    assert world.steps == 1
    assert abs(world.now() - world.store_now) < US_PER_S


def test_a_step_that_is_taken_back_in_time_is_forgotten(caplog: pytest.LogCaptureFixture) -> None:
    world = World(alone=True)
    world.note_poll()
    world.store_ahead_us = HOUR_US
    world.note_poll()
    world.store_ahead_us = 0
    world.note_poll()
    assert (world.error_us, world.steps) == (0, 0)
    world.store_ahead_us = HOUR_US
    world.note_poll(after_s=SETTLE_US // US_PER_S)
    assert world.error_us == 0, "it is counted from the beginning"

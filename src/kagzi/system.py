"""The real clock, ids and rng: the only source of time and randomness. All other code gets them as parameters."""

import os
import random
import struct
import time

from .core.ids import RUN_RANDOM_BITS, uuid4, uuid7, uuid7_of
from .core.times import Timestamp

_PAGE_BYTES = 4_096
_PAGE_OF_NUMBERS = struct.Struct(f"={_PAGE_BYTES // 8}Q")
_UNUSED_BITS = 64 - RUN_RANDOM_BITS
_ELAPSED = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # BOOTTIME also counts while a laptop is suspended


def _elapsed_us() -> int:
    return time.clock_gettime_ns(_ELAPSED) // 1_000


class SystemClock:
    """Reads the machine's wall clock once, then counts elapsed time; from then on it follows the store's clock.

    Setting the wall clock, by hand or by NTP, does not change it: timers would fire early, leases would end.
    """

    def __init__(self) -> None:
        self._offset_us = time.time_ns() // 1_000 - _elapsed_us()

    def now(self) -> Timestamp:
        return time.clock_gettime_ns(_ELAPSED) // 1_000 + self._offset_us

    def follow(self, store_now: Timestamp, sent_at: Timestamp, received_at: Timestamp) -> None:
        """The store returned `store_now` between two readings of this clock: assume that it was midway."""
        self._offset_us += store_now - (sent_at + received_at) // 2


class _Randomness:
    """The system's randomness, read a page at a time: a system call for each id costs more than the id.

    Each value is used once: `list.pop` is atomic, so two threads never get the same one. A forked child starts with
    empty lists (see below), so it does not repeat its parent's values.
    """

    def __init__(self) -> None:
        self._numbers: list[int] = []
        self._digits: list[str] = []
        self.forks = 0

    def number(self) -> int:
        """64 bits."""
        while True:
            try:
                return self._numbers.pop()
            except IndexError:
                self._numbers.extend(_PAGE_OF_NUMBERS.unpack(os.urandom(_PAGE_BYTES)))

    def digits(self) -> str:
        """128 bits, as 32 hexadecimal digits."""
        while True:
            try:
                return self._digits.pop()
            except IndexError:
                page = os.urandom(_PAGE_BYTES).hex()
                self._digits.extend(page[first : first + 32] for first in range(0, len(page), 32))

    def forked(self) -> None:
        self._numbers.clear()
        self._digits.clear()
        self.forks += 1


_randomness = _Randomness()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_randomness.forked)


class SystemIds:
    def __init__(self) -> None:
        self._last = (0, 0, 0)

    def run_id(self, now: Timestamp, namespace: str) -> str:
        """Within one microsecond the ids count up, so that a batch never gets one twice. A child that was forked in
        that microsecond draws a new number."""
        last_at, last, forks = self._last
        number = last + 1 if last_at == now and forks == _randomness.forks else _randomness.number() >> _UNUSED_BITS
        self._last = (now, number, _randomness.forks)
        return uuid7_of(namespace, now, number)

    def request_id(self) -> str:
        """A new UUIDv7 of the current time. Stores index the request ids of runs: random ids would change a different
        index page for each start, these change the last one."""
        return uuid7(time.time_ns() // 1_000, _randomness.number())

    def token(self) -> str:
        return uuid4(_randomness.digits())

    def nonce(self) -> int:
        return _randomness.number() >> 1 | 1

    def secret(self) -> str:
        return _randomness.digits() + _randomness.digits()


class SystemRng:
    def __init__(self) -> None:
        self._random = random.Random()

    def fraction(self) -> float:
        return self._random.random()

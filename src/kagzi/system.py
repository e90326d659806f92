"""The real clock, ids and rng: the only source of time, identity and chance. All other code gets them as parameters."""

import random
import secrets
import time
import uuid

from .core.ids import RUN_RANDOM_BITS, uuid7_of
from .core.times import Timestamp

_ELAPSED = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # BOOTTIME goes on while a laptop is suspended


def _elapsed_us() -> int:
    return time.clock_gettime_ns(_ELAPSED) // 1_000


class SystemClock:
    """Elapsed time since this machine's wall clock was read once; from then on the store's clock is followed.

    Setting the wall clock, by hand or by NTP, does not move it: a timer would fire early, a lease would end.
    """

    def __init__(self) -> None:
        self._offset_us = time.time_ns() // 1_000 - _elapsed_us()

    def now(self) -> Timestamp:
        return _elapsed_us() + self._offset_us

    def follow(self, store_now: Timestamp, sent_at: Timestamp, received_at: Timestamp) -> None:
        """The store returned `store_now` between two readings of this clock: meet it in the middle."""
        self._offset_us += store_now - (sent_at + received_at) // 2


class SystemIds:
    def __init__(self) -> None:
        self._last = (0, 0)

    def run_id(self, now: Timestamp, namespace: str) -> str:
        """Those of one moment count on, so that a batch never draws one twice."""
        last_at, last = self._last
        number = last + 1 if last_at == now else secrets.randbits(RUN_RANDOM_BITS)
        self._last = (now, number)
        return uuid7_of(namespace, now, number)

    def token(self) -> str:
        return str(uuid.uuid4())

    def nonce(self) -> int:
        return secrets.randbits(63) | 1


class SystemRng:
    def __init__(self) -> None:
        self._random = random.Random()

    def fraction(self) -> float:
        return self._random.random()

"""The real clock, ids and dice: the one place where time, identity and chance enter. Everything else is handed a seam."""

import random
import secrets
import time
import uuid

from .core.ids import RUN_RANDOM_BITS, uuid7_of
from .core.times import Timestamp


class SystemClock:
    """This machine's clock, shifted by the offset to the store's clock once that is known."""

    def __init__(self) -> None:
        self._offset_us = 0

    def now(self) -> Timestamp:
        return time.time_ns() // 1_000 + self._offset_us

    def follow(self, store_now: Timestamp, asked_at: Timestamp, answered_at: Timestamp) -> None:
        """The store said `store_now` somewhere between two readings of this clock: meet it in the middle."""
        self._offset_us += store_now - (asked_at + answered_at) // 2


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


class SystemDice:
    def __init__(self) -> None:
        self._random = random.Random()

    def fraction(self) -> float:
        return self._random.random()

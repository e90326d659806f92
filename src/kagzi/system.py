"""The real clock, ids and dice: the one place where time, identity and chance enter. Everything else is handed a seam."""

import random
import secrets
import time
import uuid

from .core.ids import uuid7
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
    def run_id(self, now: Timestamp) -> str:
        return uuid7(now, secrets.randbits(62))

    def token(self) -> str:
        return str(uuid.uuid4())

    def nonce(self) -> int:
        return secrets.randbits(63) | 1


class SystemDice:
    def __init__(self) -> None:
        self._random = random.Random()

    def fraction(self) -> float:
        return self._random.random()

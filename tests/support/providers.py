"""Ids and rng that are the same in every run of a test."""

import itertools
from collections.abc import Iterable

from kagzi.core.ids import uuid7_of
from kagzi.core.times import Timestamp


class CountingIds:
    """A `kagzi.core.providers.Ids`. Two of them with different `origin` never draw the same id."""

    def __init__(self, origin: int = 0) -> None:
        self._origin = origin
        self._serial = itertools.count(1)

    def run_id(self, now: Timestamp, namespace: str = "default") -> str:
        return uuid7_of(namespace, now, (self._origin << 30) + next(self._serial))

    def token(self) -> str:
        return f"token-{self._origin}-{next(self._serial)}"

    def nonce(self) -> int:
        """Spread over all 63 bits, so that a store which keeps fewer is found out."""
        return ((self._draw() * 0x9E3779B97F4A7C15) & ((1 << 63) - 1)) | 1

    def secret(self) -> str:
        return f"{self._draw():064x}"

    def _draw(self) -> int:
        return (self._origin << 40) + next(self._serial)


class LoadedRng:
    """A `kagzi.core.providers.Rng` that throws the given fractions in turn, for ever. By default 0: no jitter at
    all."""

    def __init__(self, fractions: Iterable[float] = (0.0,)) -> None:
        self._fractions = itertools.cycle(fractions)

    def fraction(self) -> float:
        return next(self._fractions)

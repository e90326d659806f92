"""Counted numbers, and the bounded set of names they are counted under."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import TypeAlias

OTHER = "other"
"""The name of everything beyond the limit."""

Labels: TypeAlias = tuple[str, ...]
HistogramValue: TypeAlias = tuple[list[int], float]
"""The count of each bucket, the last one without an upper bound, and the sum of all values."""
Sample: TypeAlias = tuple[Labels, int | float | HistogramValue]
Samples: TypeAlias = dict[str, list[Sample]]
"""By metric name."""


class Histogram:
    """Counts values in buckets. `bounds` are inclusive upper bounds; there is one more bucket above the last."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    @property
    def value(self) -> HistogramValue:
        return list(self.counts), self.total


class Names:
    """The first `most` names are counted separately, for the lifetime of the process; the others share one name."""

    __slots__ = ("_most", "_names")

    def __init__(self, most: int) -> None:
        self._most = most
        self._names: set[str] = set()

    def __len__(self) -> int:
        return len(self._names)

    def admit(self, name: str) -> str:
        """The name, or `other`. An empty name is unknown and also `other`."""
        if name in self._names:
            return name
        if not name or len(self._names) >= self._most:
            return OTHER
        self._names.add(name)
        return name

    def admit_all(self, names: Iterable[str]) -> None:
        for name in names:
            self.admit(name)

"""Which class of durations a run belongs to, as the statements of both stores compute it."""

from bisect import bisect_right

from kagzi.core.stats import TOOK_BOUNDS_US


def class_of(took_us: int) -> int:
    return bisect_right(TOOK_BOUNDS_US, took_us)

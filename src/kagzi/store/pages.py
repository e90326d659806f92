"""Pages end at a number of bytes as well as of rows, before more is read: what both stores share of that.

A row counts what it holds and `ROW_BYTES` beside it. A page has at least one row, however large.
"""

from collections.abc import Sequence
from typing import NamedTuple

ROW_BYTES = 256  # names, times and numbers, and what a message spends on them


class ShownAttempts(NamedTuple):
    """How many steps of a page are shown, and the attempts of each of them, as rows."""

    steps: int
    more: bool
    by_step: dict[str, list[int]]


def shown_attempts(step_ids: Sequence[str], attempts_of: Sequence[str], *, truncated: bool) -> ShownAttempts:
    """`attempts_of`: the step of each attempt that was read, in the order of `step_ids`, the latest first; `truncated`:
    there were more than a page holds. Then the page ends before the first step whose attempts are not all there. The
    first step is shown with its latest ones in any case."""
    by_step: dict[str, list[int]] = {}
    for place, step_id in enumerate(attempts_of):
        by_step.setdefault(step_id, []).append(place)
    steps = len(step_ids)
    if truncated:
        steps = max(1, step_ids.index(attempts_of[-1]))
    for places in by_step.values():
        places.reverse()
    return ShownAttempts(steps, steps < len(step_ids), by_step)

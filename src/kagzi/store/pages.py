"""What both stores share to limit pages by bytes as well as by rows, before more is read.

A row counts as its payloads plus `ROW_BYTES`. A page has at least one row, however large.
"""

from collections.abc import Sequence
from typing import NamedTuple

ROW_BYTES = 256  # names, times and numbers, with their overhead in a message


class ShownAttempts(NamedTuple):
    """How many steps of a page are shown, and the positions of the attempt rows of each step."""

    steps: int
    more: bool
    by_step: dict[str, list[int]]


def shown_attempts(step_ids: Sequence[str], attempts_of: Sequence[str], *, truncated: bool) -> ShownAttempts:
    """`attempts_of`: the step of each attempt read, in the order of `step_ids`, latest first. `truncated`: there were
    more attempts than a page holds; the page then ends before the first step whose attempts are incomplete. The first
    step is always shown, with its latest attempts."""
    by_step: dict[str, list[int]] = {}
    for place, step_id in enumerate(attempts_of):
        by_step.setdefault(step_id, []).append(place)
    steps = len(step_ids)
    if truncated:
        steps = max(1, step_ids.index(attempts_of[-1]))
    for places in by_step.values():
        places.reverse()
    return ShownAttempts(steps, steps < len(step_ids), by_step)

"""Figures: runs that started, ended, and are open."""

from collections.abc import Mapping

from ....core.stats import StatsBucket, Step
from ....core.times import US_PER_MS, moment_text
from ....engine import Figures
from ..route import Input
from .common import Moment, MomentIn, View


class StatsQuery(Input, frozen=True, kw_only=True):
    """`since`: from this minute on; default: 60 steps before `until`. `until`: up to the minute before; default: now.
    `workflow`: only this type. `step`: the length of a time step; at most 200 of them are shown, each with the ten
    busiest workflows and the others combined. Without `step`: every minute of every workflow."""

    since: MomentIn | None = None
    until: MomentIn | None = None
    workflow: str | None = None
    step: Step | None = None


class StatsMinuteView(View, frozen=True, kw_only=True):
    """Runs of a type (empty: all others combined) that started or ended in the time step that begins at `minute`.
    `p50_ms`, `p95_ms`: duration of the ended runs since their first claim; exact for a single minute, otherwise within
    a factor of two; null if none of them was ever claimed. `took`: how many took less than 1 ms, 2 ms, 4 ms and so on;
    these counts can be added up."""

    minute: Moment
    workflow: str
    started: int
    completed: int
    failed: int
    cancelled: int
    p50_ms: float | None
    p95_ms: float | None
    took: tuple[int, ...]


class StatsView(View, frozen=True, kw_only=True):
    """`open`: runs that have not ended, by status; `open_is_capped`: a count stopped at its cap."""

    minutes: tuple[StatsMinuteView, ...]
    open: Mapping[str, int]
    open_is_capped: bool
    step: Step


def stats_view(figures: Figures) -> StatsView:
    return StatsView(
        minutes=tuple(map(_minute_view, figures.buckets)),
        open={status.value: count for status, count in figures.open_by_status.items()},
        open_is_capped=figures.open_is_capped,
        step=figures.step,
    )


def _minute_view(bucket: StatsBucket) -> StatsMinuteView:
    return StatsMinuteView(
        minute=moment_text(bucket.minute),
        workflow=bucket.workflow_type,
        started=bucket.started,
        completed=bucket.completed,
        failed=bucket.failed,
        cancelled=bucket.cancelled,
        p50_ms=_milliseconds(bucket.p50_us),
        p95_ms=_milliseconds(bucket.p95_us),
        took=bucket.took,
    )


def _milliseconds(microseconds: int | None) -> float | None:
    return None if microseconds is None else microseconds / US_PER_MS

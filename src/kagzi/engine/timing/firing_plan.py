"""Which nominal times of a schedule become runs now, which are skipped, and the next time. Pure: takes `now`.

The most recent due time is on time unless it is late by more than a minute. Older times were missed: the most recent
ones are caught up on, within the number and age that the schedule allows; the rest is recorded as skipped.
"""

from datetime import timedelta
from itertools import islice, takewhile
from typing import TYPE_CHECKING

import msgspec

from ...core.duration import format_duration
from ...core.errors import InternalError
from ...core.schedules.nominal_times import nominal_times
from ...core.schedules.schedule import Cause, Fire, ScheduleRecord, due_time
from ...core.times import Timestamp

if TYPE_CHECKING:
    from ...core.schedules.cron import Times

MOST_RUNS = 200  # per schedule at a time; the rest follows right after
_COUNTED = 1_000  # the cap for counting skipped times


class Decided(msgspec.Struct, frozen=True, kw_only=True):
    runs: tuple[tuple[Timestamp, Cause], ...]  # oldest first
    skips: tuple[Fire, ...]
    next_at: Timestamp | None
    due_at: Timestamp | None


def times_of(record: ScheduleRecord) -> "Times":
    return nominal_times(record.spec, record.created_at)


def ahead_of(record: ScheduleRecord, after: Timestamp) -> ScheduleRecord:
    """The schedule with its next time after `after`; with none while it is paused."""
    if not record.enabled:
        return msgspec.structs.replace(record, next_at=None, due_at=None)
    next_at, due_at = _next(record, times_of(record), after)
    return msgspec.structs.replace(record, next_at=next_at, due_at=due_at)


def decide(record: ScheduleRecord, now: Timestamp, late_us: int, *, at_once: bool = False) -> Decided:
    """`at_once`: times that only wait for their jitter are due too. Raises InternalError if there is no progress."""
    times = times_of(record)
    cursor = record.next_at
    if cursor is None:
        raise InternalError("a schedule without a next time cannot be due")
    last = _last_due(record, times, now, at_once=at_once)
    if last is None or last < cursor:
        # The rules of the time zone have changed since this time was computed: it is no longer valid.
        next_at, due_at = _next(record, times, now)
        if next_at == cursor:
            raise InternalError(f"its next time, {cursor}, is due and is not")
        return Decided(runs=(), skips=(), next_at=next_at, due_at=due_at)
    chosen = _choose(record, times, cursor, last, now=now, late_us=late_us)
    first = chosen[0][0] if chosen else None
    skips = _missed(record, times, cursor, first=first, last=last, now=now)
    runs = chosen[:MOST_RUNS]
    if record.spec.overlap == "cancel_other" and len(runs) > 1:
        skips += [_superseded(nominal, now, cause) for nominal, cause in runs[:-1]]
        runs = runs[-1:]
    done = runs[-1][0] if len(chosen) > MOST_RUNS else last
    next_at, due_at = _next(record, times, done)
    return Decided(runs=tuple(runs), skips=tuple(skips), next_at=next_at, due_at=due_at)


def _next(record: ScheduleRecord, times: "Times", after: Timestamp) -> tuple[Timestamp | None, Timestamp | None]:
    next_at = times.next(after)
    return next_at, None if next_at is None else _due(record, times, next_at)


def _due(record: ScheduleRecord, times: "Times", nominal: Timestamp) -> Timestamp:
    jitter_us = record.spec.jitter_us
    return due_time(record.schedule_id, jitter_us, nominal, times.next(nominal) if jitter_us else None)


def _last_due(record: ScheduleRecord, times: "Times", now: Timestamp, *, at_once: bool) -> Timestamp | None:
    last = times.latest(now)
    if last is None or at_once or _due(record, times, last) <= now:
        return last
    return times.latest(last - 1)  # jitter ends before the next time


def _choose(
    record: ScheduleRecord, times: "Times", cursor: Timestamp, last: Timestamp, *, now: Timestamp, late_us: int
) -> list[tuple[Timestamp, Cause]]:
    spec = record.spec
    chosen: list[tuple[Timestamp, Cause]] = []
    missed_from = last
    if now - _due(record, times, last) <= late_us:
        chosen.append((last, "clock"))
        missed_from = last - 1
    oldest = max(cursor, now - spec.catchup_window_us)
    missed = takewhile(lambda nominal: nominal >= oldest, times.back_from(missed_from))
    for nominal in islice(missed, spec.max_catchup):
        chosen.append((nominal, "catchup"))  # noqa: PERF401  a comprehension would lose the type Cause
    chosen.reverse()
    return chosen


def _missed(
    record: ScheduleRecord,
    times: "Times",
    cursor: Timestamp,
    *,
    first: Timestamp | None,
    last: Timestamp,
    now: Timestamp,
) -> list[Fire]:
    """One record for all times that are too old to be caught up on."""
    until = last if first is None else times.latest(first - 1)
    if until is None or until < cursor:
        return []
    spec = record.spec
    window = format_duration(timedelta(microseconds=spec.catchup_window_us))
    reason = f"missed: no server ran at that time; max_catchup is {spec.max_catchup}, catchup_window {window}"
    return [skipped_range(times, cursor, until, now=now, cause="catchup", reason=reason)]


def skipped_range(
    times: "Times", first: Timestamp, until: Timestamp, *, now: Timestamp, cause: Cause, reason: str
) -> Fire:
    counted = sum(1 for _ in islice(takewhile(lambda nominal: nominal <= until, times.after(first - 1)), _COUNTED + 1))
    return Fire(
        nominal_at=first,
        at=now,
        cause=cause,
        reason=reason,
        skipped_until=until,
        count=0 if counted > _COUNTED else counted,
    )


def _superseded(nominal: Timestamp, now: Timestamp, cause: Cause) -> Fire:
    reason = "a later time was due as well, whose run would have cancelled this one: overlap is cancel_other"
    return Fire(nominal_at=nominal, at=now, cause=cause, reason=reason, skipped_until=nominal, count=1)

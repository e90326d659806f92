"""Schedules and what became of their times, as the SDK shows them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from ..core.schedules import Cause, Fire, Overlap, ScheduleRecord
from ..core.times import Timestamp, to_datetime
from .codec import ANY, Codec, read_payload


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule as it was when asked. It has a `cron_expr` in the zone `tz`, or an `interval`. Times are in UTC; `next_at` is
    None while it is paused, and after its end."""

    id: str
    workflow: str
    cron_expr: str
    tz: str
    max_catchup: int
    input_data: Any
    paused: bool
    paused_reason: str
    interval: timedelta | None
    overlap: Overlap
    jitter: timedelta
    catchup_window: timedelta
    labels: Mapping[str, str]
    priority: int
    version: str
    start_at: datetime | None
    end_at: datetime | None
    timeout: timedelta | None
    next_at: datetime | None
    last_fired_at: datetime | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class ScheduleFire:
    """What became of a nominal time: `run_id`, or `skipped` says why not. One skip may stand for several times, up to
    `skipped_until`; `skipped_count` is how many, 0 if they were not counted."""

    nominal_at: datetime
    at: datetime
    cause: Cause
    run_id: str | None
    skipped: str
    skipped_until: datetime | None
    skipped_count: int


def schedule_of(record: ScheduleRecord, input: Codec[Any] = ANY) -> Schedule:
    spec = record.spec
    what = f"input of schedule {record.schedule_id!r}"
    return Schedule(
        id=record.schedule_id,
        workflow=spec.workflow_type,
        cron_expr=spec.cron_expr,
        tz=spec.timezone or "UTC",
        max_catchup=spec.max_catchup,
        input_data=None if spec.input is None else read_payload(input, spec.input, what=what, hook=None),
        paused=not record.enabled,
        paused_reason=record.paused_reason,
        interval=None if spec.interval_us is None else timedelta(microseconds=spec.interval_us),
        overlap=spec.overlap,
        jitter=timedelta(microseconds=spec.jitter_us),
        catchup_window=timedelta(microseconds=spec.catchup_window_us),
        labels=spec.labels,
        priority=spec.priority,
        version=spec.version,
        start_at=_moment(spec.start_at),
        end_at=_moment(spec.end_at),
        timeout=None if spec.timeout_us is None else timedelta(microseconds=spec.timeout_us),
        next_at=_moment(record.next_at),
        last_fired_at=_moment(record.last_fired_at),
        created_at=to_datetime(record.created_at),
        updated_at=to_datetime(record.updated_at),
    )


def fire_of(fire: Fire) -> ScheduleFire:
    return ScheduleFire(
        nominal_at=to_datetime(fire.nominal_at),
        at=to_datetime(fire.at),
        cause=fire.cause,
        run_id=fire.run_id,
        skipped=fire.reason,
        skipped_until=_moment(fire.skipped_until),
        skipped_count=fire.count,
    )


def _moment(at: Timestamp | None) -> datetime | None:
    return None if at is None else to_datetime(at)

"""Records of schedules and of their fires."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from ....core.public import exported
from ....core.schedules.schedule import Cause, Fire, Overlap, ScheduleRecord
from ....core.times import Timestamp, to_datetime
from ...workflow.codec import ANY, Codec, read_payload


@exported
@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule as it was when asked. It has a cron expression or an interval. Times are in UTC."""

    id: str  #: its name
    workflow: str  #: the name of the workflow it starts
    cron_expr: str  #: empty if it has an interval
    tz: str  #: the zone of the cron expression
    max_catchup: int  #: how many missed times at most become runs
    input_data: Any  #: what each run is given
    paused: bool  #: whether it starts nothing
    paused_reason: str  #: why it is paused
    interval: timedelta | None  #: None if it has a cron expression
    overlap: Overlap  #: what happens at a time when a run is still open
    jitter: timedelta  #: runs begin up to this much later
    catchup_window: timedelta  #: how old a missed time may be to become a run
    labels: Mapping[str, str]  #: of each run
    priority: int  #: of each run
    version: str  #: of the workflow; empty: the default version
    start_at: datetime | None  #: no time before this
    end_at: datetime | None  #: no time at or after this
    timeout: timedelta | None  #: how long each run may take
    next_at: datetime | None  #: its next time; None while it is paused, and after its end
    last_fired_at: datetime | None  #: when it last started a run
    created_at: datetime  #: when it was made
    updated_at: datetime  #: when it was last changed


@exported
@dataclass(frozen=True, slots=True)
class ScheduleFire:
    """What became of a nominal time: a run, or a skip. One skip may stand for several times."""

    nominal_at: datetime  #: the time it stands for
    at: datetime  #: when it was decided
    cause: Cause  #: "clock", "catchup", "trigger" or "backfill"
    run_id: str | None  #: the run; None if the time was skipped
    skipped: str  #: why the time was skipped; empty if it was not
    skipped_until: datetime | None  #: the last of the times that this skip stands for
    skipped_count: int  #: how many times it stands for; 0: not counted


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

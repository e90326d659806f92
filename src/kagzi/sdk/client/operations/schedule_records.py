"""Records of schedules and of their fires."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal, TypeAlias

from ....core.public import exported
from ....core.schedules.schedule import Cause, Overlap
from ....v1 import workflow_schedule_pb2 as pb
from ....wire.common import read_payload
from ....wire.fields import reader
from ...workflow import codec
from ...workflow.codec import ANY, Codec

Prune: TypeAlias = Literal["report", "pause", "delete"]


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
    owner: str = ""  #: whose code declares it; empty: nobody's


@exported
@dataclass(frozen=True, slots=True)
class SyncedSchedules:
    """What `client.schedules.sync` found and did."""

    declared: tuple[Schedule, ...]  #: as they are now, in the order given
    removed: tuple[Schedule, ...]  #: those of the same owner that are not declared any more
    prune: Prune  #: what was done with those


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


_read_schedule = reader(
    pb.WorkflowSchedule,
    Schedule,
    names={
        "id": "schedule_id",
        "workflow": "workflow_type",
        "tz": "timezone",
        "paused": "enabled",
        "next_at": "next_fire_at",
        "input_data": "input",
    },
    unread=("namespace_id", "task_queue", "context"),
    tz=lambda message: message.timezone or "UTC",
    paused=lambda message: not message.enabled,
    input_data=lambda _: None,  # read by the codec of the workflow
)
read_schedule_fire = reader(pb.ScheduleFire, ScheduleFire, names={"at": "fired_at", "skipped": "skipped_reason"})


def read_schedule(message: pb.WorkflowSchedule, input: Codec[Any] = ANY) -> Schedule:
    schedule = _read_schedule(message)
    if not message.HasField("input"):
        return schedule
    what = f"input of schedule {message.schedule_id!r}"
    return replace(schedule, input_data=codec.read_payload(input, read_payload(message.input), what=what))

"""Records of schedules and of their firings."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
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
    """A schedule at the time of the call. It has a cron expression or an interval. Times are in UTC."""

    id: str  #: its name
    workflow: str  #: the name of the workflow it starts
    cron_expr: str  #: empty if it has an interval
    tz: str  #: the zone of the cron expression
    max_catchup: int  #: how many missed times at most are caught up
    input_data: Any  #: the input of each run
    paused: bool  #: whether it is paused
    paused_reason: str  #: why it is paused
    interval: timedelta | None  #: None if it has a cron expression
    overlap: Overlap  #: what happens if a run is still open at a scheduled time
    jitter: timedelta  #: the longest random delay of a run
    catchup_window: timedelta  #: how old a missed time may be to be caught up
    labels: Mapping[str, str]  #: of each run
    priority: int  #: of each run
    version: str  #: of the workflow; empty: the default version
    start_at: datetime | None  #: no runs before this time
    end_at: datetime | None  #: no runs at or after this time
    timeout: timedelta | None  #: how long each run may take
    next_at: datetime | None  #: its next time; None while it is paused, and after its end
    last_fired_at: datetime | None  #: when it last started a run
    created_at: datetime  #: when it was created
    updated_at: datetime  #: when it was last changed
    owner: str = ""  #: the program that declares it; empty: none
    namespace: str = ""  #: its namespace
    context: Mapping[str, Any] = field(default_factory=dict[str, Any])  #: `ctx.context` of each run


@exported
@dataclass(frozen=True, slots=True)
class SyncedSchedules:
    """The result of `client.schedules.sync`."""

    declared: tuple[Schedule, ...]  #: their current state, in the given order
    removed: tuple[Schedule, ...]  #: those of the same owner that are no longer declared
    prune: Prune  #: what was done with the removed ones


@exported
@dataclass(frozen=True, slots=True)
class ScheduleFire:
    """The result of a nominal time: a run, or a skip. One skip may stand for several times."""

    nominal_at: datetime  #: the nominal time
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
        "namespace": "namespace_id",
        "input_data": "input",
    },
    unread=("task_queue",),
    tz=lambda message: message.timezone or "UTC",
    paused=lambda message: not message.enabled,
    input_data=lambda _: None,  # decoded by the codec of the workflow
    context=lambda message: codec.read_context(read_payload(message.context) if message.HasField("context") else None),
)
read_schedule_fire = reader(pb.ScheduleFire, ScheduleFire, names={"at": "fired_at", "skipped": "skipped_reason"})


def read_schedule(message: pb.WorkflowSchedule, input: Codec[Any] = ANY) -> Schedule:
    schedule = _read_schedule(message)
    if not message.HasField("input"):
        return schedule
    what = f"input of schedule {message.schedule_id!r}"
    return replace(schedule, input_data=codec.read_payload(input, read_payload(message.input), what=what))

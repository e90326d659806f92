"""Options of a schedule: the keywords of `kagzi.schedule(...)`, which the builder sets one by one."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, TypedDict, Unpack, cast

import msgspec

from ....core.checks.attributes import checked_labels, checked_priority
from ....core.duration import Duration, format_duration, parse_duration
from ....core.errors import InvalidArgument
from ....core.limits import (
    SCHEDULE_CATCHUP_DEFAULT,
    SCHEDULE_CATCHUP_MAX,
    SCHEDULE_CATCHUP_WINDOW_US,
    SCHEDULE_INTERVAL_MIN_US,
)
from ....core.public import exported
from ....core.schedules.schedule import OVERLAPS, Overlap, ScheduleSpec
from ....core.times import US_PER_S, us_from_timedelta
from ....wire.requests import ScheduleRequest
from ...workflow.codec import write_context
from ...workflow.workflow import Workflow
from ..start import ABSENT, as_moment, checked_workflow_name, input_payload


class ScheduleKeywords(TypedDict, total=False):
    """The options of a schedule, as keywords. The methods of the builder have the same names."""

    cron: str | None  #: a cron expression of 5 fields, or 6 with seconds first
    timezone: str | None  #: the zone of the cron expression, such as "Europe/Berlin"; default: UTC
    every: Duration | None  #: an interval of at least 1s, instead of `cron`
    input: Any  #: the input of each run
    context: Mapping[str, Any] | None  #: values for `ctx.context` of each run: a JSON object
    catchup: int | None  #: how many missed times at most are caught up, 0 to 1,000; default: 100
    catchup_window: Duration | None  #: how old a missed time may be to be caught up; default: 24h
    overlap: Overlap
    """What happens if a run is still open at a scheduled time: "allow" (the default), "skip", "buffer_one" or
    "cancel_other"."""
    jitter: Duration | None  #: the longest random delay of each run, fixed per scheduled time; default: none
    labels: Mapping[str, str] | None  #: labels of each run
    priority: int  #: priority of each run, -100 to 100; default: 0
    version: int | str | None  #: version of the workflow; default: the default version at that time
    start_at: datetime | None  #: no runs before this time; an interval counts from here
    end_at: datetime | None  #: no runs at or after this time


class ScheduleOptions(msgspec.Struct, frozen=True, kw_only=True):
    """All options of one schedule, as the user gave them."""

    id: str
    workflow: Workflow[Any, Any] | str | None = None
    cron: str | None = None
    timezone: str | None = None
    every: Duration | None = None
    input: Any = ABSENT
    context: Mapping[str, Any] | None = None
    catchup: int | None = None
    catchup_window: Duration | None = None
    overlap: Overlap = "allow"
    jitter: Duration | None = None
    labels: Mapping[str, str] | None = None
    priority: int = 0
    version: int | str | None = None
    start_at: datetime | None = None
    end_at: datetime | None = None
    paused: bool | None = None
    namespace: str | None = None
    owner: str = ""


def schedule_request(options: ScheduleOptions, *, namespace: str, request_id: str) -> ScheduleRequest:
    """The request for the server. Raises InvalidArgument, ResourceExhausted."""
    if not (isinstance(cast("object", options.id), str) and options.id):
        raise InvalidArgument(f"id={options.id!r} must be the name of the schedule.", field="id")
    workflow = options.workflow
    if workflow is None:
        raise InvalidArgument(
            f"schedule {options.id!r} has no workflow. Say which one: .workflow(...).", field="workflow"
        )
    timeout = workflow.timeout if isinstance(workflow, Workflow) else None
    spec = ScheduleSpec(
        workflow_type=checked_workflow_name(workflow),
        cron_expr=_checked_cron(options),
        interval_us=checked_interval(options.every),
        timezone=options.timezone or "",
        input=input_payload(workflow, options.input),
        context=write_context(options.context),
        version="" if options.version is None else str(options.version),
        labels=checked_labels(options.labels),
        priority=checked_priority(options.priority),
        overlap=checked_overlap(options.overlap),
        jitter_us=duration_us(options.jitter, "jitter") or 0,
        start_at=as_moment(options.start_at, "start_at"),
        end_at=as_moment(options.end_at, "end_at"),
        max_catchup=SCHEDULE_CATCHUP_DEFAULT if options.catchup is None else checked_catchup(options.catchup),
        catchup_window_us=SCHEDULE_CATCHUP_WINDOW_US
        if options.catchup_window is None
        else us_from_timedelta(parse_duration(options.catchup_window, what="catchup_window")),
        timeout_us=None if timeout is None else us_from_timedelta(timeout),
        owner=options.owner,
    )
    return ScheduleRequest(
        namespace=options.namespace or namespace,
        schedule_id=options.id,
        spec=spec,
        enabled=None if options.paused is None else not options.paused,
        request_id=request_id,
    )


def _checked_cron(options: ScheduleOptions) -> str:
    """Checks only that there is one: the server parses the expression."""
    if (options.cron is None) == (options.every is None):
        raise InvalidArgument(f"schedule {options.id!r}: give exactly one of cron and every.", field="cron")
    if options.cron is None:
        return ""
    if not (isinstance(cast("object", options.cron), str) and options.cron.strip()):
        raise InvalidArgument(
            f'cron={options.cron!r} is not a cron expression. Write for example "0 6 * * *".', field="cron"
        )
    return options.cron


def checked_interval(every: Duration | None) -> int | None:
    interval_us = duration_us(every, "every")
    if interval_us is not None and interval_us < SCHEDULE_INTERVAL_MIN_US:
        raise InvalidArgument(
            f"every={format_duration(timedelta(microseconds=interval_us))} is below the minimum, "
            f"{SCHEDULE_INTERVAL_MIN_US // US_PER_S}s.",
            field="every",
        )
    return interval_us


def duration_us(duration: Duration | None, what: str) -> int | None:
    return None if duration is None else us_from_timedelta(parse_duration(duration, what=what))


def checked_overlap(overlap: object) -> Overlap:
    if overlap not in OVERLAPS:
        known = ", ".join(map(repr, OVERLAPS))
        raise InvalidArgument(f"overlap={overlap!r} must be one of {known}.", field="overlap")
    return overlap


def checked_catchup(catchup: object) -> int:
    if isinstance(catchup, bool) or not isinstance(catchup, int) or not 0 <= catchup <= SCHEDULE_CATCHUP_MAX:
        raise InvalidArgument(
            f"catchup={catchup!r} must be a whole number, 0..{SCHEDULE_CATCHUP_MAX}.", field="catchup"
        )
    return catchup


@exported
class DeclaredSchedule(msgspec.Struct, frozen=True):
    """A schedule that is part of a program: made by `kagzi.schedule(...)` for `Worker(schedules=[...])`."""

    options: ScheduleOptions  #: the arguments of `kagzi.schedule`

    @property
    def id(self) -> str:
        """The schedule's name."""
        return self.options.id


@exported
def schedule(
    id: str, *, workflow: Workflow[Any, Any] | str, paused: bool | None = None, **options: Unpack[ScheduleKeywords]
) -> DeclaredSchedule:
    """Declare a schedule in code. A worker creates it when it starts: `Worker(workflows=[report],
    schedules=[schedule(...)])`.

    Args:
        id: The schedule's name, at most 200 bytes.
        workflow: The workflow to start, or its name.
        paused: Whether it is paused. Default: unchanged.
        options: When and how runs are started: see [ScheduleKeywords](#schedulekeywords).

    Raises InvalidArgument for invalid options.
    """
    declared = ScheduleOptions(id=id, workflow=workflow, paused=paused, **options)
    schedule_request(declared, namespace="", request_id="")  # raises here, not when the worker starts
    return DeclaredSchedule(declared)


def checked_schedules(schedules: Iterable[DeclaredSchedule]) -> tuple[DeclaredSchedule, ...]:
    """Raises InvalidArgument for a value that is not a schedule, and for a duplicate name."""
    declared = tuple(schedules)
    ids: set[str] = set()
    for each in declared:
        if not isinstance(cast("object", each), DeclaredSchedule):
            raise InvalidArgument(
                f"schedules: {each!r} is not a schedule. Write kagzi.schedule(...).", field="schedules"
            )
        if each.id in ids:
            raise InvalidArgument(f"schedules: {each.id!r} is declared twice. Give each its own id.", field="schedules")
        ids.add(each.id)
    return declared

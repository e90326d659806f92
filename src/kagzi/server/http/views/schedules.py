"""Schedules, and the results of their scheduled times."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from ....core.duration import format_duration
from ....core.records import NO_LABELS, Payload
from ....core.schedules.local_time import local_time
from ....core.schedules.schedule import Cause, Fire, Overlap, ScheduleRecord, ScheduleSpec
from ....core.times import Timestamp, moment_text, to_datetime
from ....core.workflow_types.names import canonical_type
from ..payloads import payload_of, payload_view
from ..route import Input
from .common import DurationIn, Moment, MomentIn, PageQuery, View, microseconds, moment, timestamp

Value = TypeVar("Value")
_UTC = "UTC"
_DEFAULT = ScheduleSpec(workflow_type="")

# --- responses --------------------------------------------------------------------------------------------------------


class ScheduleView(View, frozen=True, kw_only=True):
    """A schedule. It has a cron expression (`cron`, `timezone`) or an interval (`every`). `next_at`: its next time;
    null while it is paused and after its end. `input` and `context`: for each run; null in lists, unless requested.
    `owner`: the code that declares it."""

    schedule: str
    workflow: str
    cron: str | None
    timezone: str
    every: str | None
    input: msgspec.Raw
    context: msgspec.Raw
    paused: bool
    paused_reason: str | None
    overlap: Overlap
    max_catchup: int
    catchup_window: str
    jitter: str
    labels: Mapping[str, str]
    priority: int
    version: str | None
    timeout: str | None
    start_at: Moment | None
    end_at: Moment | None
    next_at: Moment | None
    last_fired_at: Moment | None
    created_at: Moment
    updated_at: Moment
    owner: str | None


class SavedSchedule(ScheduleView, frozen=True, kw_only=True):
    """`created`: it is new. `warning`: for people, if no worker serves its workflow."""

    created: bool
    warning: str | None


class DeletedSchedule(View, frozen=True, kw_only=True):
    """`deleted`: whether it existed."""

    schedule: str
    deleted: bool


class FireView(View, frozen=True, kw_only=True):
    """The result of a scheduled time: a run, or `skipped` with the reason. A skip may cover several times, up to
    `skipped_until`; `skipped_count` is their number, 0 if they were not counted."""

    nominal_at: Moment
    at: Moment
    cause: Cause
    run_id: str | None
    skipped: str | None
    skipped_until: Moment | None
    skipped_count: int


class TimeView(View, frozen=True, kw_only=True):
    """A future time: in the schedule's time zone, with the zone's abbreviation at that time, and in UTC."""

    local: str
    zone: str
    utc: Moment


class TriggeredView(View, frozen=True, kw_only=True):
    """The run that was started. `url`: its page, if the server has pages."""

    run_id: str
    workflow_id: str
    url: str | None


def schedule_view(record: ScheduleRecord, *, payloads: bool = True) -> ScheduleView:
    return ScheduleView(**_fields(record, payloads=payloads))


def saved_view(record: ScheduleRecord, *, created: bool, warning: str) -> SavedSchedule:
    return SavedSchedule(**_fields(record, payloads=True), created=created, warning=warning or None)


def _fields(record: ScheduleRecord, *, payloads: bool) -> dict[str, Any]:
    spec = record.spec
    return {
        "schedule": record.schedule_id,
        "workflow": spec.workflow_type,
        "cron": spec.cron_expr or None,
        "timezone": spec.timezone or _UTC,
        "every": _duration(spec.interval_us),
        "input": payload_view(spec.input if payloads else None),
        "context": payload_view(spec.context if payloads else None),
        "paused": not record.enabled,
        "paused_reason": record.paused_reason or None,
        "overlap": spec.overlap,
        "max_catchup": spec.max_catchup,
        "catchup_window": _duration(spec.catchup_window_us),
        "jitter": _duration(spec.jitter_us),
        "labels": spec.labels,
        "priority": spec.priority,
        "version": spec.version or None,
        "timeout": _duration(spec.timeout_us),
        "owner": spec.owner or None,
        **{name: moment(getattr(spec, name)) for name in ("start_at", "end_at")},
        **{name: moment(getattr(record, name)) for name in ("next_at", "last_fired_at", "created_at", "updated_at")},
    }


def fire_view(fire: Fire) -> FireView:
    return FireView(
        nominal_at=moment_text(fire.nominal_at),
        at=moment_text(fire.at),
        cause=fire.cause,
        run_id=fire.run_id,
        skipped=fire.reason or None,
        skipped_until=moment(fire.skipped_until),
        skipped_count=fire.count,
    )


def time_view(timezone: str) -> Callable[[Timestamp], TimeView]:
    """Formats times of a schedule in this time zone."""

    def view(at: Timestamp) -> TimeView:
        local, zone = local_time(to_datetime(at), timezone or _UTC)
        return TimeView(local=local, zone=zone, utc=moment_text(at))

    return view


def _duration(us: int | None) -> str | None:
    return None if us is None else format_duration(timedelta(microseconds=us))


# --- requests ---------------------------------------------------------------------------------------------------------


class ScheduleListQuery(PageQuery, frozen=True, kw_only=True):
    """`workflow`: those that start this type. `payloads`: include their inputs and contexts."""

    workflow: str | None = None
    payloads: bool = False


class UpsertIn(Input, frozen=True, kw_only=True):
    """The desired schedule: `cron` with its `timezone`, or `every`. `paused`: left out, it stays unchanged; a new
    schedule is not paused. `owner`: the code that declares it; left out, it stays unchanged."""

    workflow: str
    cron: str | None = None
    timezone: str | None = None
    every: DurationIn | None = None
    input: msgspec.Raw | UnsetType = UNSET
    context: msgspec.Raw | UnsetType = UNSET
    paused: bool | None = None
    overlap: Overlap | None = None
    max_catchup: int | None = None
    catchup_window: DurationIn | None = None
    jitter: DurationIn | None = None
    labels: dict[str, str] | None = None
    priority: int | None = None
    version: str | None = None
    timeout: DurationIn | None = None
    start_at: MomentIn | None = None
    end_at: MomentIn | None = None
    owner: str | None = None

    @property
    def enabled(self) -> bool | None:
        return None if self.paused is None else not self.paused


class NewSchedule(UpsertIn, frozen=True, kw_only=True):
    """`schedule`: its id; left out, one is generated."""

    schedule: str | None = None


class ScheduleChanges(Input, frozen=True, kw_only=True):
    """Fields that are left out stay unchanged; null resets or removes them. A cron expression replaces an interval, and
    vice versa. `labels` replace all labels. `next_at`: continue with the first time at or after it; earlier times are
    skipped."""

    workflow: str | UnsetType = UNSET
    cron: str | UnsetType | None = UNSET
    timezone: str | UnsetType | None = UNSET
    every: DurationIn | UnsetType | None = UNSET
    input: msgspec.Raw | UnsetType = UNSET
    context: msgspec.Raw | UnsetType = UNSET
    paused: bool | UnsetType = UNSET
    overlap: Overlap | UnsetType | None = UNSET
    max_catchup: int | UnsetType | None = UNSET
    catchup_window: DurationIn | UnsetType | None = UNSET
    jitter: DurationIn | UnsetType | None = UNSET
    labels: dict[str, str] | UnsetType | None = UNSET
    priority: int | UnsetType | None = UNSET
    version: str | UnsetType | None = UNSET
    timeout: DurationIn | UnsetType | None = UNSET
    start_at: MomentIn | UnsetType | None = UNSET
    end_at: MomentIn | UnsetType | None = UNSET
    owner: str | UnsetType | None = UNSET
    next_at: MomentIn | UnsetType = UNSET

    @property
    def enabled(self) -> bool | None:
        return None if isinstance(self.paused, UnsetType) else not self.paused

    @property
    def next_fire_at(self) -> Timestamp | None:
        return None if isinstance(self.next_at, UnsetType) else timestamp(self.next_at, "next_at")


class PauseIn(Input, frozen=True, kw_only=True):
    """`reason`: stored with the schedule."""

    reason: str = ""


class BackfillIn(Input, frozen=True, kw_only=True, rename={"begin": "from", "end": "to"}):
    """From the first time at or after `from` to the last one before `to`."""

    begin: MomentIn
    end: MomentIn


class PreviewQuery(Input, frozen=True, kw_only=True):
    """`count`: how many times, at most 1,000; default: 10. `after`: times later than this; default: now."""

    count: int = 0
    after: MomentIn | None = None


class PreviewIn(PreviewQuery, frozen=True, kw_only=True):
    """An unsaved cron expression with its time zone, or an unsaved interval."""

    cron: str | None = None
    timezone: str | None = None
    every: DurationIn | None = None


def spec_of(body: UpsertIn) -> ScheduleSpec:
    """Raises InvalidArgument."""
    return msgspec.structs.replace(_DEFAULT, **_changes(body))


def changes_of(body: ScheduleChanges) -> dict[str, Any]:
    """The fields of a spec to change. Raises InvalidArgument."""
    changes = _changes(body)
    if changes.get("interval_us") is not None and not changes.get("cron_expr"):
        changes.pop("cron_expr", None)  # null beside an interval has no effect
    elif changes.get("interval_us") is None and "cron_expr" in changes:
        changes.pop("interval_us", None)
    return changes


def unsaved_spec(body: PreviewIn) -> ScheduleSpec:
    """A spec for previews, which starts nothing. Raises InvalidArgument."""
    interval_us = microseconds(body.every, "every")
    return ScheduleSpec(
        workflow_type="-", cron_expr=body.cron or "", timezone=body.timezone or "", interval_us=interval_us
    )


def _changes(body: UpsertIn | ScheduleChanges) -> dict[str, Any]:
    """The fields of a body as fields of a spec; null becomes the default of a schedule."""
    changes: dict[str, Any] = {}
    for field, (name, read) in _READ.items():
        value = getattr(body, field)
        if value is not UNSET:
            changes[name] = getattr(_DEFAULT, name) if value is None else read(value, field)
    return changes


def _as_it_is(value: Value, field: str) -> Value:
    return value


def _type(value: str, field: str) -> str:
    return canonical_type(value)


def _labels(value: Mapping[str, str], field: str) -> Mapping[str, str]:
    return value or NO_LABELS


def _payload(value: msgspec.Raw, field: str) -> Payload | None:
    """None for null: runs cannot distinguish them."""
    return None if bytes(value) == b"null" else payload_of(value, field)


# Fields of a body: their names in a spec, and how to read them.
_READ: dict[str, tuple[str, Callable[[Any, str], Any]]] = {
    "workflow": ("workflow_type", _type),
    "cron": ("cron_expr", _as_it_is),
    "every": ("interval_us", microseconds),
    "labels": ("labels", _labels),
    **{field: (field, _payload) for field in ("input", "context")},
    **{field: (field, timestamp) for field in ("start_at", "end_at")},
    **{field: (f"{field}_us", microseconds) for field in ("catchup_window", "jitter", "timeout")},
    **{field: (field, _as_it_is) for field in ("timezone", "overlap", "max_catchup", "priority", "version", "owner")},
}

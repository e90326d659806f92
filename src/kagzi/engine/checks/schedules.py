"""Checks of schedules. Every refusal names the field, the limit and the remedy."""

from ...core import limits
from ...core.errors import InvalidArgument
from ...core.run.commands import StartRequest
from ...core.schedules.nominal_times import nominal_times
from ...core.schedules.schedule import OVERLAPS, ScheduleSpec
from . import requests as checks


def check_id(schedule_id: str) -> None:
    checks.name(schedule_id, "schedule_id")
    size = len(schedule_id.encode())
    if size > limits.SCHEDULE_ID_BYTES:
        limit = ("schedule_id_bytes", limits.SCHEDULE_ID_BYTES)
        raise checks.over_limit("schedule_id", f"{size} bytes", *limit, "Shorten it.")


def check_spec(spec: ScheduleSpec, payload_bytes: int) -> None:
    """Checks its start like any other start, and its times."""
    start = StartRequest(
        namespace="-",
        workflow_type=spec.workflow_type,
        input=spec.input,
        context=spec.context,
        version=spec.version,
        labels=spec.labels,
        priority=spec.priority,
        timeout_us=spec.timeout_us,
    )
    checks.start(start, 0, payload_bytes)
    if spec.overlap not in OVERLAPS:
        raise InvalidArgument(f"overlap={spec.overlap!r}: use one of {', '.join(OVERLAPS)}.", field="overlap")
    checks.optional_name(spec.owner, "owner")
    checks.duration(spec.jitter_us, "jitter")
    checks.within(spec.max_catchup, 0, limits.SCHEDULE_CATCHUP_MAX, "max_catchup")
    checks.duration(spec.catchup_window_us, "catchup_window")
    checks.duration(spec.interval_us, "interval")
    checks.timestamp(spec.start_at, "start_at")
    checks.timestamp(spec.end_at, "end_at")
    if spec.start_at is not None and spec.end_at is not None and spec.end_at <= spec.start_at:
        raise InvalidArgument("end_at is not after start_at. Give a later one.", field="end_at")
    nominal_times(spec, 0)

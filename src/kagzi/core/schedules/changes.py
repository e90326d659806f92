"""Changes of a schedule, and their consequences for other fields."""

from collections.abc import Mapping
from typing import Any

import msgspec

from ..errors import InvalidArgument
from .schedule import ScheduleRecord, ScheduleSpec


def changed_spec(spec: ScheduleSpec, changes: Mapping[str, Any]) -> ScheduleSpec:
    """The spec with `changes` to its fields. A cron expression replaces an interval and vice versa. Raises
    InvalidArgument if both are given; the whole spec is checked later."""
    if "cron_expr" in changes and "interval_us" in changes:
        raise InvalidArgument("cron_expr and interval are both given. Give one.", field="interval")
    others: dict[str, Any] = {}
    if "cron_expr" in changes:
        others = {"interval_us": None}
    if "interval_us" in changes:
        others = {"cron_expr": "", "timezone": ""}
    return msgspec.structs.replace(spec, **(others | dict(changes)))


def changed(was: ScheduleRecord, changes: Mapping[str, Any], *, enabled: bool | None) -> ScheduleRecord:
    """The schedule with `changes` to its spec, enabled or paused as given; None: unchanged. Pausing or resuming clears
    the earlier reason. Raises InvalidArgument."""
    record = msgspec.structs.replace(was, spec=changed_spec(was.spec, changes))
    if enabled is None or enabled == was.enabled:
        return record
    return msgspec.structs.replace(record, enabled=enabled, paused_reason="")

"""Changes of a schedule: what saying one thing about it means for the others."""

from collections.abc import Mapping
from typing import Any

import msgspec

from ..errors import InvalidArgument
from .schedule import ScheduleRecord, ScheduleSpec


def changed_spec(spec: ScheduleSpec, changes: Mapping[str, Any]) -> ScheduleSpec:
    """The spec with `changes` of its fields. A cron expression takes the place of an interval and the other way round.
    Raises InvalidArgument if both are given; the rest is checked with the whole spec."""
    if "cron_expr" in changes and "interval_us" in changes:
        raise InvalidArgument("cron_expr and interval are both given. Give one.", field="interval")
    others: dict[str, Any] = {}
    if "cron_expr" in changes:
        others = {"interval_us": None}
    if "interval_us" in changes:
        others = {"cron_expr": "", "timezone": ""}
    return msgspec.structs.replace(spec, **(others | dict(changes)))


def changed(was: ScheduleRecord, changes: Mapping[str, Any], *, enabled: bool | None) -> ScheduleRecord:
    """The schedule with `changes` of its spec, enabled or paused as said; None: as it was. The reason of a pause is
    that of one pause only. Raises InvalidArgument."""
    record = msgspec.structs.replace(was, spec=changed_spec(was.spec, changes))
    if enabled is None or enabled == was.enabled:
        return record
    return msgspec.structs.replace(record, enabled=enabled, paused_reason="")

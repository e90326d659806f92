"""The nominal times of a schedule. Time zones and cron expressions are slow to import, and only servers with schedules
need them: `cron` is loaded on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import InvalidArgument

if TYPE_CHECKING:
    from ..times import Timestamp
    from .cron import NominalTimes, Times
    from .schedule import ScheduleSpec


def nominal_times(spec: ScheduleSpec, anchor: Timestamp) -> Times:
    """Raises InvalidArgument. An interval counts from `start_at`, or else from `anchor`: the schedule's creation."""
    from .cron import Cron, Interval, Times  # noqa: PLC0415  see above

    if bool(spec.cron_expr) == (spec.interval_us is not None):
        problem = "both are given" if spec.cron_expr else "neither is given"
        raise InvalidArgument(f"cron_expr or interval: {problem}. Give exactly one.", field="cron_expr")
    source: NominalTimes
    if spec.interval_us is None:
        source = Cron(spec.cron_expr, spec.timezone)
    else:
        if spec.timezone not in ("", "UTC"):
            raise InvalidArgument(
                "timezone is given with an interval, which has no time zone. Leave it out, or use cron_expr.",
                field="timezone",
            )
        source = Interval(spec.interval_us, anchor if spec.start_at is None else spec.start_at)
    return Times(source, spec.start_at, spec.end_at)

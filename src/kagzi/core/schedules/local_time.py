"""Times of a schedule in its time zone."""

from datetime import datetime


def local_time(at: datetime, timezone: str) -> tuple[str, str]:
    """`Mon 2026-11-16 09:30:00`, and the zone's name at that time: `CET`. `timezone` must have been checked before."""
    from zoneinfo import ZoneInfo  # noqa: PLC0415  not needed to start a server

    local = at.astimezone(ZoneInfo(timezone))
    return local.strftime("%a %Y-%m-%d %H:%M:%S"), local.tzname() or timezone

"""Times of a schedule as the clock of its zone shows them."""

from datetime import datetime


def local_time(at: datetime, timezone: str) -> tuple[str, str]:
    """`Mon 2026-11-16 09:30:00`, and the name of the zone then: `CET`. `timezone`: one that was checked before."""
    from zoneinfo import ZoneInfo  # noqa: PLC0415  a server is started without it

    local = at.astimezone(ZoneInfo(timezone))
    return local.strftime("%a %Y-%m-%d %H:%M:%S"), local.tzname() or timezone

"""Schedules as they are printed: JSON with a stable schema (snake_case, RFC 3339), and lines for people."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from ...core.duration import format_duration

if TYPE_CHECKING:
    from ...sdk.client.operations.schedule_records import Schedule, ScheduleFire


def moment(value: str | datetime) -> datetime:
    """A click type: a time with its zone, as RFC 3339 has it."""
    if isinstance(value, datetime):
        return value
    try:
        at = datetime.fromisoformat(value)
    except ValueError as error:
        raise click.BadParameter(f"{value!r} is not a time. Write for example 2026-03-29T06:00:00Z.") from error
    if at.tzinfo is None:
        raise click.BadParameter(f"{value!r} has no time zone. Write {value}Z for UTC, or {value}+02:00.")
    return at


def schedule_view(schedule: Schedule) -> dict[str, Any]:
    """Keys are always there; what is not known is null."""
    return {
        "schedule": schedule.id,
        "workflow": schedule.workflow,
        "cron": schedule.cron_expr or None,
        "timezone": schedule.tz,
        "every": None if schedule.interval is None else format_duration(schedule.interval),
        "input": schedule.input_data,
        "paused": schedule.paused,
        "paused_reason": schedule.paused_reason or None,
        "overlap": schedule.overlap,
        "max_catchup": schedule.max_catchup,
        "catchup_window": format_duration(schedule.catchup_window),
        "jitter": format_duration(schedule.jitter),
        "labels": dict(schedule.labels),
        "priority": schedule.priority,
        "version": schedule.version or None,
        "timeout": None if schedule.timeout is None else format_duration(schedule.timeout),
        "start_at": utc_text(schedule.start_at),
        "end_at": utc_text(schedule.end_at),
        "next_at": utc_text(schedule.next_at),
        "last_fired_at": utc_text(schedule.last_fired_at),
        "created_at": utc_text(schedule.created_at),
        "updated_at": utc_text(schedule.updated_at),
    }


def when_text(schedule: Schedule) -> str:
    if schedule.interval is not None:
        return f"every {format_duration(schedule.interval)}"
    return f"{schedule.cron_expr}  ({schedule.tz})"


def fire_view(fire: ScheduleFire) -> dict[str, Any]:
    return {
        "nominal_at": utc_text(fire.nominal_at),
        "at": utc_text(fire.at),
        "cause": fire.cause,
        "run_id": fire.run_id,
        "skipped": fire.skipped or None,
        "skipped_until": utc_text(fire.skipped_until),
        "skipped_count": fire.skipped_count,
    }


def fire_row(fire: ScheduleFire) -> dict[str, str]:
    from ..times import local_text

    time = local_text(fire.nominal_at)
    until = fire.skipped_until if fire.skipped_until != fire.nominal_at else None
    what = fire.run_id or click.style(f"skipped: {fire.skipped}", fg="yellow")
    return {
        "time": time if until is None else f"{time} to {local_text(until)}",
        "cause": fire.cause,
        "run": what,
    }


def rule(cron: str | None, timezone: str | None, every: timedelta | None) -> None:
    """What cannot be said together about the times of a schedule. Raises UsageError."""
    if cron is not None and every is not None:
        raise click.UsageError("--cron and --every cannot be combined. Give exactly one.")
    if every is not None and timezone is not None:
        raise click.UsageError("--timezone needs --cron: an interval has no time zone.")


def utc_text(at: datetime | None) -> str | None:
    return None if at is None else at.astimezone(UTC).isoformat().replace("+00:00", "Z")

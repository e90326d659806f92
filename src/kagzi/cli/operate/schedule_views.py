"""Views of schedules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ...core.duration import format_duration
from ..times import local_text, short_utc_text
from ..views import view

if TYPE_CHECKING:
    from ...sdk.client.operations.schedule_records import Schedule, ScheduleFire

_SCHEDULE = (
    *("schedule=id", "workflow", "cron=cron_expr?", "timezone=tz", "every=interval", "input=input_data", "paused"),
    *("paused_reason?", "overlap", "max_catchup", "catchup_window", "jitter", "labels", "priority", "version?"),
    *("timeout", "start_at", "end_at", "next_at", "last_fired_at", "created_at", "updated_at", "owner?"),
)
_FIRE = ("nominal_at", "at", "cause", "run_id", "skipped?", "skipped_until", "skipped_count")


def schedule_view(schedule: Schedule) -> dict[str, Any]:
    return view(schedule, *_SCHEDULE, moment=short_utc_text)


def when_text(schedule: Schedule) -> str:
    if schedule.interval is not None:
        return f"every {format_duration(schedule.interval)}"
    return f"{schedule.cron_expr}  ({schedule.tz})"


def fire_view(fire: ScheduleFire) -> dict[str, Any]:
    return view(fire, *_FIRE, moment=short_utc_text)


def fire_row(fire: ScheduleFire) -> dict[str, str]:
    time = local_text(fire.nominal_at)
    if fire.skipped_until not in (None, fire.nominal_at):
        time = f"{time} to {local_text(fire.skipped_until)}"
    run = fire.run_id or click.style(f"skipped: {fire.skipped}", fg="yellow")
    return {"time": time, "cause": fire.cause, "run": run}

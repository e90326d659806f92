"""Runs started by the clock."""

from typing import Protocol


class ScheduleVerbs(Protocol):
    """Schedules, their fires, and what was skipped."""

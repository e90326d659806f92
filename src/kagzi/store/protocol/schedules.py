"""Schedules: runs started at set times."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from ...core.effects import Effects
from ...core.pages.cursor import Cursor
from ...core.records import Rows
from ...core.run.outcomes import Refused
from ...core.schedules.firing import FiredSchedule, Firing
from ...core.schedules.schedule import Fire, ScheduleRecord
from ...core.times import Timestamp


class DueSchedules(msgspec.Struct, frozen=True):
    """`next_due_at`: the earliest time of a schedule that is not due yet. `more`: there are further due schedules."""

    schedules: tuple[ScheduleRecord, ...] = ()
    next_due_at: Timestamp | None = None
    more: bool = False


class ScheduleVerbs(Protocol):
    """Schedules, their fires, and skipped times."""

    async def create_schedule(self, record: ScheduleRecord, now: Timestamp) -> ScheduleRecord | Refused:
        """The new schedule, or the one that the same request_id created. Refused if the id is taken (CONFLICT), or the
        namespace has reached its schedules_limit (RESOURCE_EXHAUSTED)."""
        ...

    async def put_schedule(
        self, record: ScheduleRecord, *, was: ScheduleRecord, skips: Sequence[Fire]
    ) -> ScheduleRecord | None:
        """Replace a schedule, give it the next revision, and record the times that the change skips. None: it was
        deleted, or its revision or next_at have changed since it was read."""
        ...

    async def get_schedule(self, namespace: str, schedule_id: str) -> ScheduleRecord | None: ...

    async def list_schedules(
        self, namespace: str, *, workflow_type: str | None, cursor: Cursor | None, limit: int
    ) -> Rows[ScheduleRecord]:
        """Newest first by (created_at, schedule_id)."""
        ...

    async def delete_schedule(self, namespace: str, schedule_id: str, limit: int) -> tuple[bool, bool]:
        """Whether it existed, and whether some of its fires are left: at most `limit` are deleted. Its runs stay."""
        ...

    async def list_fires(self, namespace: str, schedule_id: str, cursor: Cursor | None, limit: int) -> Rows[Fire]:
        """Newest nominal time first; for a time that was skipped and fired later, the run first. The cursor's id is "1"
        for a skip, "0" for a run."""
        ...

    async def forget_fires(self, before: Timestamp, limit: int) -> bool:
        """Delete up to `limit` fires and skips recorded before `before`. Returns whether there may be more."""
        ...

    async def due_schedules(self, now: Timestamp, limit: int) -> DueSchedules:
        """The schedules that are due, longest due first. One statement."""
        ...

    async def fire_schedules(
        self, firings: Sequence[Firing], now: Timestamp, cancel_by: Timestamp
    ) -> tuple[Sequence[FiredSchedule | None], Effects]:
        """In one transaction, under the locks of the schedules: start the planned runs like any others, record each or
        why it was skipped, and set the next time. None: another server fired it, or it was changed or deleted."""
        ...

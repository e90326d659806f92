"""Runs started by the clock."""

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
    """`next_due_at`: the earliest of those that are not due yet. `more`: not all that are due are here."""

    schedules: tuple[ScheduleRecord, ...] = ()
    next_due_at: Timestamp | None = None
    more: bool = False


class ScheduleVerbs(Protocol):
    """Schedules, their fires, and what was skipped."""

    async def create_schedule(self, record: ScheduleRecord, now: Timestamp) -> ScheduleRecord | Refused:
        """The new schedule; or the one that the same request_id has made. Refused if the id is taken (CONFLICT), or the
        namespace has as many as its schedules_limit allows (RESOURCE_EXHAUSTED)."""
        ...

    async def put_schedule(
        self, record: ScheduleRecord, *, was: ScheduleRecord, skips: Sequence[Fire]
    ) -> ScheduleRecord | None:
        """Replace a schedule by this one, which gets the next revision, and record what is skipped by that. None: its
        revision or next_at are no longer what they were when it was read, or it is gone."""
        ...

    async def get_schedule(self, namespace: str, schedule_id: str) -> ScheduleRecord | None: ...

    async def list_schedules(
        self, namespace: str, *, workflow_type: str | None, cursor: Cursor | None, limit: int
    ) -> Rows[ScheduleRecord]:
        """Newest first by (created_at, schedule_id)."""
        ...

    async def delete_schedule(self, namespace: str, schedule_id: str, limit: int) -> tuple[bool, bool]:
        """Whether there was one; and whether fires of it are left: up to `limit` are deleted at once. Its runs stay."""
        ...

    async def list_fires(self, namespace: str, schedule_id: str, cursor: Cursor | None, limit: int) -> Rows[Fire]:
        """Newest nominal time first; of one that was skipped and fired later, the run first. The cursor's id is "1" for
        a skip, "0" for a run."""
        ...

    async def forget_fires(self, before: Timestamp, limit: int) -> bool:
        """Delete up to `limit` fires and skips recorded before then. Returns whether there may be more."""
        ...

    async def due_schedules(self, now: Timestamp, limit: int) -> DueSchedules:
        """Those whose time has come, longest due first. One statement."""
        ...

    async def fire_schedules(
        self, firings: Sequence[Firing], now: Timestamp, cancel_by: Timestamp
    ) -> tuple[Sequence[FiredSchedule | None], Effects]:
        """In one transaction, under the locks of the schedules: start what is to be started, as any start is; record
        it, or why not; move on. None: somebody else did it, or the schedule was changed or is gone."""
        ...

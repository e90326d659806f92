"""The verbs about schedules, each in its thread."""

from collections.abc import Sequence

from ....core.effects import Effects
from ....core.pages.cursor import Cursor
from ....core.records import Rows
from ....core.run.outcomes import Refused
from ....core.schedules.schedule import Fire, ScheduleRecord
from ....core.times import Timestamp
from ...protocol import DueSchedules, FiredSchedule, Firing
from ..connection.connections import Lanes
from . import schedule_rows as schedules


class ScheduleDesk(Lanes):
    """Keeps `store.protocol.ScheduleVerbs`."""

    async def create_schedule(self, record: ScheduleRecord, now: Timestamp) -> ScheduleRecord | Refused:
        return await self._change(schedules.create_schedule, record, now)

    async def put_schedule(
        self, record: ScheduleRecord, *, was: ScheduleRecord, skips: Sequence[Fire]
    ) -> ScheduleRecord | None:
        return await self._change(schedules.put_schedule, record, was, skips)

    async def get_schedule(self, namespace: str, schedule_id: str) -> ScheduleRecord | None:
        return await self._read(schedules.get_schedule, namespace, schedule_id)

    async def list_schedules(
        self, namespace: str, *, workflow_type: str | None, cursor: Cursor | None, limit: int
    ) -> Rows[ScheduleRecord]:
        return await self._scan(namespace, schedules.list_schedules, namespace, workflow_type, cursor, limit)

    async def delete_schedule(self, namespace: str, schedule_id: str, limit: int) -> tuple[bool, bool]:
        return await self._change(schedules.delete_schedule, namespace, schedule_id, limit)

    async def list_fires(self, namespace: str, schedule_id: str, cursor: Cursor | None, limit: int) -> Rows[Fire]:
        return await self._scan(namespace, schedules.list_fires, namespace, schedule_id, cursor, limit)

    async def forget_fires(self, before: Timestamp, limit: int) -> bool:
        return await self._change(schedules.forget_fires, before, limit)

    async def due_schedules(self, now: Timestamp, limit: int) -> DueSchedules:
        return await self._read(schedules.due_schedules, now, limit)

    async def fire_schedules(
        self, firings: Sequence[Firing], now: Timestamp, cancel_by: Timestamp
    ) -> tuple[Sequence[FiredSchedule | None], Effects]:
        return await self._change(schedules.fire_schedules, firings, now, cancel_by)

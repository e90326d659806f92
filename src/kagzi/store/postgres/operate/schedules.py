"""The verbs about schedules, each on its connection."""

from collections.abc import Sequence

from ....core.effects import Effects
from ....core.pages.cursor import Cursor
from ....core.records import Rows
from ....core.run.outcomes import Refused
from ....core.schedules.schedule import Fire, ScheduleRecord
from ....core.times import Timestamp
from ...protocol import DueSchedules, FiredSchedule, Firing
from ..connection.connections import Links
from . import schedule_firing as schedule_fires
from . import schedule_rows as schedules


class ScheduleDesk(Links):
    """Keeps `store.protocol.ScheduleVerbs`."""

    async def create_schedule(self, record: ScheduleRecord, now: Timestamp) -> ScheduleRecord | Refused:
        async with self._questions.use() as session:
            return await schedules.create_schedule(session, record, now)

    async def put_schedule(
        self, record: ScheduleRecord, *, was: ScheduleRecord, skips: Sequence[Fire]
    ) -> ScheduleRecord | None:
        async with self._questions.use() as session:
            return await schedules.put_schedule(session, record, was, skips)

    async def get_schedule(self, namespace: str, schedule_id: str) -> ScheduleRecord | None:
        async with self._readers.use(confirm=False) as session:
            return await schedules.get_schedule(session, namespace, schedule_id)

    async def list_schedules(
        self, namespace: str, *, workflow_type: str | None, cursor: Cursor | None, limit: int
    ) -> Rows[ScheduleRecord]:
        async with self._scan(namespace) as session:
            return await schedules.list_schedules(session, namespace, workflow_type, cursor, limit)

    async def delete_schedule(self, namespace: str, schedule_id: str, limit: int) -> tuple[bool, bool]:
        async with self._questions.use() as session:
            return await schedules.delete_schedule(session, namespace, schedule_id, limit)

    async def list_fires(self, namespace: str, schedule_id: str, cursor: Cursor | None, limit: int) -> Rows[Fire]:
        async with self._scan(namespace) as session:
            return await schedules.list_fires(session, namespace, schedule_id, cursor, limit)

    async def forget_fires(self, before: Timestamp, limit: int) -> bool:
        async with self._questions.use(confirm=False) as session:
            return await schedules.forget_fires(session, before, limit)

    async def due_schedules(self, now: Timestamp, limit: int) -> DueSchedules:
        async with self._questions.use(confirm=False) as session:
            return await schedules.due_schedules(session, now, limit)

    async def fire_schedules(
        self, firings: Sequence[Firing], now: Timestamp, cancel_by: Timestamp
    ) -> tuple[Sequence[FiredSchedule | None], Effects]:
        async with self._questions.use() as session:
            return await schedule_fires.fire_schedules(session, firings, now, cancel_by)

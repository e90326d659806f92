"""Schedules: their rows, and what became of their times. How they fire is in schedule_fires."""

from collections.abc import Sequence

from ....core.error_details import ErrorCode, ErrorDetail, ErrorKind
from ....core.pages.cursor import Cursor
from ....core.records import Rows
from ....core.run.outcomes import Refused
from ....core.run.refusals import namespace_disabled, too_many_schedules
from ....core.schedules.schedule import Fire, ScheduleRecord
from ....core.times import Timestamp
from ...protocol import DueSchedules
from ...rows import read_fire, read_schedule
from ...schedule_book import write_spec
from ..connection.connection import Session
from ..run.pages import read_page


async def create_schedule(session: Session, record: ScheduleRecord, now: Timestamp) -> ScheduleRecord | Refused:
    async with session.transaction():
        await session.read("create_namespaces", namespaces=[record.namespace], now=now)
        [namespace] = await session.read("lock_namespace", namespace=record.namespace)
        found = await get_schedule(session, record.namespace, record.schedule_id)
        if found is not None:
            return found if record.request_id and found.request_id == record.request_id else _taken(record)
        if not namespace["enabled"]:
            return namespace_disabled(record.namespace, "schedules")
        limit: int | None = namespace["schedules_limit"]
        if limit is not None:
            [counted] = await session.read("count_schedules", namespace=record.namespace, limit=limit)
            if counted["schedules"] >= limit:
                return too_many_schedules(record.namespace, limit)
        made = await session.read(
            "insert_schedule",
            namespace=record.namespace,
            schedule_id=record.schedule_id,
            workflow_type=record.spec.workflow_type,
            enabled=record.enabled,
            paused_reason=record.paused_reason or None,
            next_at=record.next_at,
            due_at=record.due_at,
            last_fired_at=record.last_fired_at,
            created_at=record.created_at,
            updated_at=record.updated_at,
            revision=record.revision,
            request_id=record.request_id or None,
            spec=write_spec(record.spec),
        )
        return read_schedule(made[0]) if made else _taken(record)


def _taken(record: ScheduleRecord) -> Refused:
    return Refused(
        ErrorDetail(
            code=ErrorCode.CONFLICT,
            kind=ErrorKind.PERMANENT,
            message=f"schedule {record.schedule_id!r} exists already. Update it, or upsert.",
            subject="schedule",
            subject_id=record.schedule_id,
        )
    )


async def put_schedule(
    session: Session, record: ScheduleRecord, was: ScheduleRecord, skips: Sequence[Fire]
) -> ScheduleRecord | None:
    async with session.transaction():
        rows = await session.read(
            "replace_schedule",
            namespace=record.namespace,
            schedule_id=record.schedule_id,
            workflow_type=record.spec.workflow_type,
            enabled=record.enabled,
            paused_reason=record.paused_reason or None,
            next_at=record.next_at,
            due_at=record.due_at,
            updated_at=record.updated_at,
            spec=write_spec(record.spec),
            read_revision=was.revision,
            read_next_at=was.next_at,
        )
        if rows:
            await record_fires(session, [(record, fire) for fire in skips])
    return read_schedule(rows[0]) if rows else None


async def get_schedule(session: Session, namespace: str, schedule_id: str) -> ScheduleRecord | None:
    rows = await session.read("get_schedule", namespace=namespace, schedule_id=schedule_id)
    return read_schedule(rows[0]) if rows else None


async def list_schedules(
    session: Session, namespace: str, workflow_type: str | None, cursor: Cursor | None, limit: int
) -> Rows[ScheduleRecord]:
    newer = cursor is not None and cursor.direction == "prev"
    name = "list_schedules_newer" if newer else "list_schedules_older"
    rows, more = await read_page(
        session,
        name,
        limit,
        namespace=namespace,
        workflow_type=workflow_type,
        cursor_at=None if cursor is None else cursor.at,
        cursor_id=None if cursor is None else cursor.id,
        limit=limit + 1,
    )
    records = [read_schedule(row) for row in rows]
    return Rows(tuple(reversed(records) if newer else records), has_more=more)


async def delete_schedule(session: Session, namespace: str, schedule_id: str, limit: int) -> tuple[bool, bool]:
    async with session.transaction():
        found = await session.read("delete_schedule", namespace=namespace, schedule_id=schedule_id)
        gone = await session.read("delete_fires", namespace=namespace, schedule_id=schedule_id, limit=limit)
    return bool(found), len(gone) == limit


async def forget_fires(session: Session, before: Timestamp, limit: int) -> bool:
    return len(await session.write("forget_fires", before=before, limit=limit)) == limit


async def list_fires(
    session: Session, namespace: str, schedule_id: str, cursor: Cursor | None, limit: int
) -> Rows[Fire]:
    newer = cursor is not None and cursor.direction == "prev"
    name = "list_fires_newer" if newer else "list_fires_older"
    rows, more = await read_page(
        session,
        name,
        limit,
        namespace=namespace,
        schedule_id=schedule_id,
        cursor_at=None if cursor is None else cursor.at,
        cursor_skipped=None if cursor is None else cursor.id == "0",
        limit=limit + 1,
    )
    fires = [read_fire(row) for row in rows]
    return Rows(tuple(reversed(fires) if newer else fires), has_more=more)


async def due_schedules(session: Session, now: Timestamp, limit: int) -> DueSchedules:
    rows = await session.read("due_schedules", now=now, limit=limit)
    due = tuple(read_schedule(row) for row in rows if row["schedule_id"] is not None)
    return DueSchedules(due, rows[0]["next_due_at"], more=len(due) == limit)


async def record_fires(session: Session, fires: Sequence[tuple[ScheduleRecord, Fire]]) -> None:
    if not fires:
        return
    rows = [
        {
            "namespace": record.namespace,
            "schedule_id": record.schedule_id,
            "nominal_at": fire.nominal_at,
            "at": fire.at,
            "cause": fire.cause,
            "run_id": fire.run_id,
            "reason": fire.reason if fire.skipped else None,
            "skipped_until": fire.skipped_until,
            "count": fire.count,
        }
        for record, fire in fires
    ]
    await session.read("record_fires", fires=rows)

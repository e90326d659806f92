"""Schedules: their rows, and what became of their times. How they fire is in schedule_fires."""

from collections.abc import Sequence

from ...core.cursor import Cursor
from ...core.error_details import ErrorCode, ErrorDetail, ErrorKind
from ...core.outcomes import Refused
from ...core.records import Rows
from ...core.refusals import namespace_disabled, too_many_schedules
from ...core.schedules import Fire, ScheduleRecord
from ...core.times import Timestamp
from ..protocol import DueSchedules
from ..schedule_book import read_spec, write_spec
from .connections import Row, Session, columns
from .pages import read_page


def read_schedule(row: Row) -> ScheduleRecord:
    return ScheduleRecord(
        namespace=row["namespace"],
        schedule_id=row["schedule_id"],
        spec=read_spec(row["spec"]),
        enabled=row["enabled"],
        paused_reason=row["paused_reason"] or "",
        next_at=row["next_at"],
        due_at=row["due_at"],
        last_fired_at=row["last_fired_at"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        revision=row["revision"],
        request_id=row["request_id"] or "",
    )


def read_fire(row: Row) -> Fire:
    return Fire(
        nominal_at=row["nominal_at"],
        at=row["at"],
        cause=row["cause"],
        run_id=row["run_id"],
        reason=row["reason"] or "",
        skipped_until=row["skipped_until"],
        count=row["count"],
    )


async def create_schedule(session: Session, record: ScheduleRecord, now: Timestamp) -> ScheduleRecord | Refused:
    async with session.transaction():
        await session.read("create_namespaces", [record.namespace], now)
        [namespace] = await session.read("lock_namespace", record.namespace)
        found = await get_schedule(session, record.namespace, record.schedule_id)
        if found is not None:
            return found if record.request_id and found.request_id == record.request_id else _taken(record)
        if not namespace["enabled"]:
            return namespace_disabled(record.namespace, "schedules")
        limit: int | None = namespace["schedules_limit"]
        if limit is not None:
            [counted] = await session.read("count_schedules", record.namespace, limit)
            if counted["schedules"] >= limit:
                return too_many_schedules(record.namespace, limit)
        made = await session.read(
            "insert_schedule",
            record.namespace,
            record.schedule_id,
            record.spec.workflow_type,
            record.enabled,
            record.paused_reason or None,
            record.next_at,
            record.due_at,
            record.last_fired_at,
            record.created_at,
            record.updated_at,
            record.revision,
            record.request_id or None,
            write_spec(record.spec),
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
            record.namespace,
            record.schedule_id,
            record.spec.workflow_type,
            record.enabled,
            record.paused_reason or None,
            record.next_at,
            record.due_at,
            record.updated_at,
            write_spec(record.spec),
            was.revision,
            was.next_at,
        )
        if rows:
            await record_fires(session, [(record, fire) for fire in skips])
    return read_schedule(rows[0]) if rows else None


async def get_schedule(session: Session, namespace: str, schedule_id: str) -> ScheduleRecord | None:
    rows = await session.read("get_schedule", namespace, schedule_id)
    return read_schedule(rows[0]) if rows else None


async def list_schedules(
    session: Session, namespace: str, workflow_type: str | None, cursor: Cursor | None, limit: int
) -> Rows[ScheduleRecord]:
    newer = cursor is not None and cursor.direction == "prev"
    name = "list_schedules_newer" if newer else "list_schedules_older"
    place = (None, None) if cursor is None else (cursor.at, cursor.id)
    rows, more = await read_page(session, name, namespace, workflow_type, *place, limit + 1, limit=limit)
    records = [read_schedule(row) for row in rows]
    return Rows(tuple(reversed(records) if newer else records), has_more=more)


async def delete_schedule(session: Session, namespace: str, schedule_id: str, limit: int) -> tuple[bool, bool]:
    async with session.transaction():
        found = await session.read("delete_schedule", namespace, schedule_id)
        gone = await session.read("delete_fires", namespace, schedule_id, limit)
    return bool(found), len(gone) == limit


async def forget_fires(session: Session, before: Timestamp, limit: int) -> bool:
    return len(await session.write("forget_fires", before, limit)) == limit


async def list_fires(
    session: Session, namespace: str, schedule_id: str, cursor: Cursor | None, limit: int
) -> Rows[Fire]:
    newer = cursor is not None and cursor.direction == "prev"
    name = "list_fires_newer" if newer else "list_fires_older"
    place = (None, None) if cursor is None else (cursor.at, cursor.id == "0")
    rows, more = await read_page(session, name, namespace, schedule_id, *place, limit + 1, limit=limit)
    fires = [read_fire(row) for row in rows]
    return Rows(tuple(reversed(fires) if newer else fires), has_more=more)


async def due_schedules(session: Session, now: Timestamp, limit: int) -> DueSchedules:
    rows = await session.read("due_schedules", now, limit)
    due = tuple(read_schedule(row) for row in rows if row["schedule_id"] is not None)
    return DueSchedules(due, rows[0]["next_due_at"], more=len(due) == limit)


async def record_fires(session: Session, fires: Sequence[tuple[ScheduleRecord, Fire]]) -> None:
    if not fires:
        return
    rows = [
        (
            record.namespace,
            record.schedule_id,
            fire.nominal_at,
            fire.at,
            fire.cause,
            fire.run_id,
            fire.reason if fire.skipped else None,
            fire.skipped_until,
            fire.count,
        )
        for record, fire in fires
    ]
    await session.read("record_fires", *columns(rows, 9))

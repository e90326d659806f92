"""Schedules and their fires. How they fire is in `schedule_firing`."""

from collections.abc import Mapping, Sequence

from ...core.pages.cursor import Cursor
from ...core.records import Rows
from ...core.run.outcomes import Refused
from ...core.run.refusals import namespace_disabled, schedule_exists, too_many_schedules
from ...core.schedules.schedule import Fire, ScheduleRecord, write_spec
from ...core.times import Timestamp
from ..protocol import DueSchedules
from ..rows import read_fire, read_namespace, read_schedule
from ..sessions import AFTER_ALL, Purpose, Session, Sessions, first, list_page, position, scan, verb


def _values(record: ScheduleRecord) -> dict[str, object]:
    return {
        "namespace": record.namespace,
        "schedule_id": record.schedule_id,
        "workflow_type": record.spec.workflow_type,
        "enabled": record.enabled,
        "paused_reason": record.paused_reason or None,
        "next_at": record.next_at,
        "due_at": record.due_at,
        "updated_at": record.updated_at,
        "spec": write_spec(record.spec),
    }


async def _create(session: Session, record: ScheduleRecord, now: Timestamp) -> ScheduleRecord | Refused:
    async with session.transaction():
        await session.read("create_namespace", namespace=record.namespace, now=now)
        [row] = await session.read("lock_namespace", namespace=record.namespace)
        namespace = read_namespace(row)
        before = await _get(session, record.namespace, record.schedule_id)
        if before is not None:
            repeated = record.request_id and before.request_id == record.request_id
            return before if repeated else schedule_exists(record.schedule_id)
        if not namespace.enabled:
            return namespace_disabled(record.namespace, "schedules")
        limit = namespace.schedules_limit
        if limit is not None:
            [counted] = await session.read("count_schedules", namespace=record.namespace, limit=limit)
            if counted["schedules"] >= limit:
                return too_many_schedules(record.namespace, limit)
        inserted = await session.read(
            "insert_schedule",
            **_values(record),
            last_fired_at=record.last_fired_at,
            created_at=record.created_at,
            revision=record.revision,
            request_id=record.request_id or None,
        )
        return read_schedule(inserted[0]) if inserted else schedule_exists(record.schedule_id)


async def _put(
    session: Session, record: ScheduleRecord, *, was: ScheduleRecord, skips: Sequence[Fire]
) -> ScheduleRecord | None:
    async with session.transaction():
        rows = await session.read(
            "replace_schedule", **_values(record), read_revision=was.revision, read_next_at=was.next_at
        )
        if rows:
            await record_fires(session, [fire_values(record, fire) for fire in skips])
    return read_schedule(rows[0]) if rows else None


async def _get(session: Session, namespace: str, schedule_id: str) -> ScheduleRecord | None:
    row = await first(session, "get_schedule", namespace=namespace, schedule_id=schedule_id)
    return None if row is None else read_schedule(row)


async def _list(
    session: Session, namespace: str, *, workflow_type: str | None, cursor: Cursor | None, limit: int
) -> Rows[ScheduleRecord]:
    at, last_id = position(cursor)
    return await list_page(
        session,
        "list_schedules",
        read_schedule,
        cursor,
        limit,
        namespace=namespace,
        workflow_type=workflow_type,
        cursor_at=at,
        cursor_id=last_id,
    )


async def _delete(session: Session, namespace: str, schedule_id: str, limit: int) -> tuple[bool, bool]:
    async with session.transaction():
        deleted = await session.read("delete_schedule", namespace=namespace, schedule_id=schedule_id)
        fires = await session.read("delete_fires", namespace=namespace, schedule_id=schedule_id, limit=limit)
    return bool(deleted), len(fires) == limit


async def _list_fires(
    session: Session, namespace: str, schedule_id: str, cursor: Cursor | None, limit: int
) -> Rows[Fire]:
    return await list_page(
        session,
        "list_fires",
        read_fire,
        cursor,
        limit,
        namespace=namespace,
        schedule_id=schedule_id,
        cursor_at=AFTER_ALL if cursor is None else cursor.at,
        cursor_is_run=cursor is not None and cursor.id == "0",
    )


async def _forget_fires(session: Session, before: Timestamp, limit: int) -> bool:
    return len(await session.write("forget_fires", before=before, limit=limit)) == limit


async def _due(session: Session, now: Timestamp, limit: int) -> DueSchedules:
    rows = await session.read("due_schedules", now=now, limit=limit)
    due = tuple(read_schedule(row) for row in rows if row["schedule_id"] is not None)
    return DueSchedules(due, rows[0]["next_due_at"], more=len(due) == limit)


def fire_values(record: ScheduleRecord, fire: Fire) -> Mapping[str, object]:
    return {
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


async def record_fires(session: Session, fires: Sequence[Mapping[str, object]]) -> None:
    if fires:
        await session.read("record_fires", fires=fires)


class Schedules(Sessions):
    """Implements `store.protocol.ScheduleVerbs`, except `fire_schedules`."""

    create_schedule = verb(Purpose.WRITE, _create)
    put_schedule = verb(Purpose.WRITE, _put)
    get_schedule = verb(Purpose.LOOKUP, _get)
    list_schedules = scan(_list)
    delete_schedule = verb(Purpose.WRITE, _delete)
    list_fires = scan(_list_fires)
    forget_fires = verb(Purpose.CHORE, _forget_fires)
    due_schedules = verb(Purpose.READ, _due)

"""Schedules: their rows, what became of their times, and how they fire."""

from collections.abc import Sequence
from typing import Any

from ....core.effects import Effects, merge
from ....core.error_details import ErrorCode
from ....core.pages.cursor import Cursor
from ....core.records import NamespaceRecord, Rows, RunKey
from ....core.run.outcomes import Refused
from ....core.run.refusals import namespace_disabled, refused, too_many_schedules
from ....core.schedules.schedule import Fire, OpenRun, ScheduleRecord
from ....core.times import Timestamp
from ...protocol import DueSchedules, FiredSchedule, Firing
from ...rows import read_fire, read_schedule, write_json
from ...schedule_book import FIRING_TERMS, Book, write_spec
from ..connection.connection import Database
from ..run.control import cancel_run
from ..write.fast_path import Wave, Writer
from ..write.starts import start_one

_OPEN_RUNS = 1_000


def _given(record: ScheduleRecord) -> dict[str, Any]:
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


def create_schedule(writer: Writer, record: ScheduleRecord, now: Timestamp) -> ScheduleRecord | Refused:
    """See Store.create_schedule."""
    namespace = writer.namespaces.ensure(record.namespace, now)
    found = get_schedule(writer.database, record.namespace, record.schedule_id)
    if found is not None:
        return found if record.request_id and found.request_id == record.request_id else _taken(record)
    if not namespace.enabled:
        return namespace_disabled(record.namespace, "schedules")
    if (full := _full(writer, namespace)) is not None:
        return full
    made = {
        "last_fired_at": record.last_fired_at,
        "created_at": record.created_at,
        "revision": record.revision,
        "request_id": record.request_id or None,
    }
    writer.database.run("insert_schedule", _given(record) | made)
    return record


def _taken(record: ScheduleRecord) -> Refused:
    return refused(
        ErrorCode.CONFLICT,
        f"schedule {record.schedule_id!r} exists already. Update it, or upsert.",
        subject="schedule",
        subject_id=record.schedule_id,
    )


def _full(writer: Writer, namespace: NamespaceRecord) -> Refused | None:
    limit = namespace.schedules_limit
    if limit is None:
        return None
    counted = writer.database.row("count_schedules", (namespace.namespace, limit))
    if counted is None or counted[0] < limit:
        return None
    return too_many_schedules(namespace.namespace, limit)


def put_schedule(
    writer: Writer, record: ScheduleRecord, was: ScheduleRecord, skips: Sequence[Fire]
) -> ScheduleRecord | None:
    """See Store.put_schedule."""
    given = _given(record) | {"was_revision": was.revision, "was_next_at": was.next_at}
    if not writer.database.run("replace_schedule", given):
        return None
    for fire in skips:
        _record(writer, record, fire)
    return get_schedule(writer.database, record.namespace, record.schedule_id)


def get_schedule(database: Database, namespace: str, schedule_id: str) -> ScheduleRecord | None:
    row = database.record("get_schedule", (namespace, schedule_id))
    return None if row is None else read_schedule(row)


def list_schedules(
    database: Database, namespace: str, workflow_type: str | None, cursor: Cursor | None, limit: int
) -> Rows[ScheduleRecord]:
    """See Store.list_schedules."""
    newer = cursor is not None and cursor.direction == "prev"
    given = {
        "namespace": namespace,
        "workflow_type": workflow_type,
        "at": None if cursor is None else cursor.at,
        "id": None if cursor is None else cursor.id,
        "limit": limit + 1,
    }
    rows, more = database.page("list_schedules_newer" if newer else "list_schedules_older", given, limit)
    records = [read_schedule(row) for row in rows]
    return Rows(tuple(reversed(records) if newer else records), has_more=more)


def delete_schedule(writer: Writer, namespace: str, schedule_id: str, limit: int) -> tuple[bool, bool]:
    """See Store.delete_schedule."""
    found = writer.database.run("delete_schedule", (namespace, schedule_id))
    gone = writer.database.run("delete_fires", (namespace, schedule_id, limit))
    return bool(found), gone == limit


def forget_fires(writer: Writer, before: Timestamp, limit: int) -> bool:
    return writer.database.run("forget_fires", (before, limit)) == limit


def list_fires(database: Database, namespace: str, schedule_id: str, cursor: Cursor | None, limit: int) -> Rows[Fire]:
    """See Store.list_fires."""
    newer = cursor is not None and cursor.direction == "prev"
    place = {"at": None, "skipped": None} if cursor is None else {"at": cursor.at, "skipped": int(cursor.id != "0")}
    given = {"namespace": namespace, "schedule_id": schedule_id, "limit": limit + 1} | place
    rows, more = database.page("list_fires_newer" if newer else "list_fires_older", given, limit)
    fires = [read_fire(row) for row in rows]
    return Rows(tuple(reversed(fires) if newer else fires), has_more=more)


def due_schedules(database: Database, now: Timestamp, limit: int) -> DueSchedules:
    """See Store.due_schedules."""
    due = tuple(read_schedule(row) for row in database.records("due_schedules", (now, limit)))
    row = database.row("next_due_schedule", (now,))
    return DueSchedules(due, None if row is None else row[0], more=len(due) == limit)


# --- firing -----------------------------------------------------------------------------------------------------------


def fire_schedules(
    writer: Writer, firings: Sequence[Firing], now: Timestamp, cancel_by: Timestamp
) -> tuple[list[FiredSchedule | None], Effects]:
    """See Store.fire_schedules."""
    effects: list[Effects] = []
    return [_fire(writer, firing, now, cancel_by, effects) for firing in firings], merge(effects)


def _fire(
    writer: Writer, firing: Firing, now: Timestamp, cancel_by: Timestamp, effects: list[Effects]
) -> FiredSchedule | None:
    read = firing.schedule
    cursor = writer.database.row("schedule_cursor", (read.namespace, read.schedule_id))
    if cursor is None or (firing.moves and cursor != (read.revision, read.next_at)):
        return None
    book = _open_book(writer, firing, now)
    wave = Wave(writer, now, FIRING_TERMS)
    while starts := book.next_starts():
        for occasion, go in starts:
            for run_id in go.cancel:
                run = RunKey(read.namespace, run_id)
                status, cancelled = cancel_run(writer, run, book.cancel_reason, now, cancel_by)
                if status is not None:
                    book.cancelled(run_id, cancelled)
            book.came_to(occasion, go.start, start_one(wave, go.start))
    for fire in book.to_record:
        _record(writer, read, fire)
    moved = {
        "namespace": read.namespace,
        "schedule_id": read.schedule_id,
        "moves": firing.moves,
        "next_at": firing.next_at,
        "due_at": firing.due_at,
        "fired_at": now if book.has_fired else None,
    }
    writer.database.run("move_schedule", moved)
    effects += [*book.effects, *wave.effects]
    return book.answer()


def _open_book(writer: Writer, firing: Firing, now: Timestamp) -> Book:
    database, read = writer.database, firing.schedule
    key = (read.namespace, read.schedule_id)
    nominals = write_json([occasion.nominal_at for occasion in firing.occasions])
    fired = {fire.nominal_at: fire for fire in map(read_fire, database.records("find_fires", (*key, nominals)))}
    requests = write_json([occasion.start.request_id for occasion in firing.occasions])
    runs: dict[str, str] = dict(database.rows("find_requests", (read.namespace, requests)))
    open_runs: list[OpenRun] = []
    if firing.overlap != "allow":
        rows = database.rows("open_scheduled_runs", (*key, _OPEN_RUNS))
        open_runs = [OpenRun(row[0], waits=bool(row[1]), stops=bool(row[2])) for row in reversed(rows)]
    return Book(firing, now, fired=fired, runs=runs, open_runs=open_runs)


def _record(writer: Writer, record: ScheduleRecord, fire: Fire) -> None:
    given = {
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
    writer.database.run("record_fire", given)

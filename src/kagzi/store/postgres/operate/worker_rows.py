"""Workers: who is there, what they serve, and what becomes of their runs when they leave."""

from collections.abc import Sequence

import msgspec

from ....core import limits
from ....core.effects import NO_EFFECTS, Effects
from ....core.pages.cursor import Cursor
from ....core.records import HOLDER_DIED, Held, Lease, Rows, RunKey, Served, WorkerRecord
from ....core.run.outcomes import Refused
from ....core.states import CODE_OF_WORKER_STATUS, WORKER_STATUS_OF_CODE, WorkerStatus
from ....core.times import LAST_TIME, Timestamp
from ....core.workers import (
    EVENT_OF_STATUS,
    LOST,
    Happened,
    Registration,
    Trouble,
    WorkerEvent,
    WorkerEventKind,
    as_heard,
    left,
    registered,
    troubled,
)
from ...rows import read_worker, read_worker_event, write_json, write_strings
from ..claim.leases import cut, release
from ..connection.connection import Row, Session
from ..run.pages import read_page
from ..write.namespace_quota import refuse_session

_decode_served = msgspec.json.Decoder(tuple[Served, ...]).decode


async def register_worker(session: Session, worker: WorkerRecord, now: Timestamp) -> Registration | Refused:
    served = sorted({(each.workflow_type, each.version) for each in worker.served})
    async with session.transaction():
        if (refused := await refuse_session(session, worker, now)) is not None:
            return refused
        [row] = await session.read(
            "register_worker",
            namespace=worker.namespace,
            worker_id=worker.worker_id,
            status=CODE_OF_WORKER_STATUS[worker.status],
            active_count=worker.active_count,
            max_concurrent=worker.max_concurrent,
            pid=worker.pid,
            hostname=worker.hostname,
            sdk_version=worker.sdk_version,
            build_id=worker.build_id,
            workflow_types=sorted({workflow_type for workflow_type, _ in served}),
            served=write_json(worker.served),
            labels=write_strings(worker.labels) if worker.labels else None,
            total_completed=worker.total_completed,
            now=now,
            version_types=[workflow_type for workflow_type, _ in served],
            versions=[version for _, version in served],
            total_failed=worker.total_failed,
        )
        registration = Registration(row["known_before"], row["draining"], row["new_versions"])
        events = registered(worker, known_before=registration.known_before)
        await _note(session, worker.namespace, worker.worker_id, events, now)
    return registration


async def _note(session: Session, namespace: str, worker_id: str, events: Sequence[Happened], now: Timestamp) -> None:
    count = len(events)
    kinds, details = [kind.value for kind, _ in events], [detail for _, detail in events]
    await session.read(
        "note_worker_events",
        namespaces=[namespace] * count,
        worker_ids=[worker_id] * count,
        kinds=kinds,
        details=details,
        now=now,
    )
    await session.read("trim_worker_events", namespace=namespace, worker_id=worker_id, most_events=limits.WORKER_EVENTS)


async def _lock(session: Session, namespace: str, worker_id: str) -> WorkerStatus | None:
    rows = await session.read("lock_worker", namespace=namespace, worker_id=worker_id)
    return WORKER_STATUS_OF_CODE[rows[0]["status"]] if rows else None


async def set_worker_status(
    session: Session, namespace: str, worker_id: str, status: WorkerStatus, now: Timestamp
) -> bool:
    async with session.transaction():
        before = await _lock(session, namespace, worker_id)
        if before is None:
            return False
        await session.read(
            "set_worker_status", namespace=namespace, worker_id=worker_id, status=CODE_OF_WORKER_STATUS[status], now=now
        )
        if before is not status:
            await _note(session, namespace, worker_id, [(EVENT_OF_STATUS[status], "")], now)
    return True


async def drain_worker(
    session: Session, namespace: str, worker_id: str, detail: str, now: Timestamp
) -> WorkerRecord | None:
    async with session.transaction():
        if await session.read("drain_worker", namespace=namespace, worker_id=worker_id):
            await _note(session, namespace, worker_id, [(WorkerEventKind.DRAINING, detail)], now)
        return await get_worker(session, namespace, worker_id)


async def worker_left(
    session: Session, namespace: str, worker_id: str, now: Timestamp, *, hand_back: bool
) -> tuple[bool, Effects]:
    if not hand_back:
        known = await set_worker_status(session, namespace, worker_id, WorkerStatus.DRAINING, now)
        return known, NO_EFFECTS
    async with session.transaction():
        before = await _lock(session, namespace, worker_id)
        if before is None:
            return False, NO_EFFECTS
        offline = CODE_OF_WORKER_STATUS[WorkerStatus.OFFLINE]
        await session.read("set_worker_status", namespace=namespace, worker_id=worker_id, status=offline, now=now)
        rows = await session.read("runs_held_by", namespace=namespace, worker_id=worker_id)
        if events := left(before, len(rows)):
            await _note(session, namespace, worker_id, events, now)
    held = _held(namespace, rows)
    return True, await release(session, held, now) if held else NO_EFFECTS


def _held(namespace: str, rows: Sequence[Row]) -> list[Held]:
    return [Held(RunKey(namespace, row["run_id"]), Lease(row["lease"], row["nonce"])) for row in rows]


async def worker_died(session: Session, namespace: str, worker_id: str, now: Timestamp) -> int:
    await lose_workers(session, LAST_TIME, now, 1, (namespace, worker_id))
    held = _held(namespace, await session.read("runs_held_by", namespace=namespace, worker_id=worker_id))
    if held:
        await cut(session, held, HOLDER_DIED)
    return len(held)


async def lose_workers(
    session: Session, unheard_since: Timestamp, now: Timestamp, limit: int, only: tuple[str, str] | None
) -> int:
    async with session.transaction():
        namespace, worker_id = only or (None, None)
        rows = await session.read(
            "lose_workers", unheard_since=unheard_since, limit=limit, namespace=namespace, worker_id=worker_id
        )
        if rows:
            namespaces, ids = [row["namespace"] for row in rows], [row["worker_id"] for row in rows]
            kind, detail = LOST
            count = len(rows)
            await session.read(
                "note_worker_events",
                namespaces=namespaces,
                worker_ids=ids,
                kinds=[kind.value] * count,
                details=[detail] * count,
                now=now,
            )
    return len(rows)


async def note_troubles(
    session: Session, namespace: str, worker_id: str, troubles: Sequence[Trouble], now: Timestamp
) -> None:
    async with session.transaction():
        if await _lock(session, namespace, worker_id) is not None:
            await _note(session, namespace, worker_id, troubled(troubles), now)


async def get_worker(session: Session, namespace: str, worker_id: str) -> WorkerRecord | None:
    rows = await session.read("get_worker", namespace=namespace, worker_id=worker_id)
    return _read_worker(rows[0]) if rows else None


def _read_worker(row: Row) -> WorkerRecord:
    return read_worker(row, _decode_served(row["served"]), WORKER_STATUS_OF_CODE[row["status"]])


async def list_workers(
    session: Session,
    namespace: str,
    *,
    workflow_type: str | None,
    status: WorkerStatus | None,
    cursor: Cursor | None,
    limit: int,
    alive_since: Timestamp,
) -> Rows[WorkerRecord]:
    newer = cursor is not None and cursor.direction == "prev"
    rows, more = await read_page(
        session,
        "list_workers_newer" if newer else "list_workers_older",
        limit,
        namespace=namespace,
        workflow_type=workflow_type,
        status=None if status is None else CODE_OF_WORKER_STATUS[status],
        cursor_at=None if cursor is None else cursor.at,
        cursor_id=None if cursor is None else cursor.id,
        limit=limit + 1,
        alive_since=alive_since,
    )
    records = [as_heard(_read_worker(row), alive_since) for row in rows]
    if newer:
        records.reverse()
    return Rows(tuple(records), has_more=more)


async def list_worker_events(
    session: Session, namespace: str, *, worker_id: str | None, cursor: Cursor | None, limit: int
) -> Rows[WorkerEvent]:
    newer = cursor is not None and cursor.direction == "prev"
    rows, more = await read_page(
        session,
        "list_worker_events_newer" if newer else "list_worker_events_older",
        limit,
        namespace=namespace,
        worker_id=worker_id,
        cursor_at=None if cursor is None else cursor.at,
        cursor_number=None if cursor is None else int(cursor.id),
        limit=limit + 1,
    )
    events = [read_worker_event(row) for row in rows]
    if newer:
        events.reverse()
    return Rows(tuple(events), has_more=more)


async def forget_workers(session: Session, before: Timestamp, limit: int) -> int:
    events = await session.write("forget_worker_events", before=before, limit=limit)
    gone = await session.write("forget_workers", before=before, limit=limit)
    return len(events) + len(gone)

"""Workers: which are connected, what they serve, and what happened to them."""

from collections.abc import Mapping, Sequence

import msgspec

from ...core import limits
from ...core.keys.audit import AuditEntry
from ...core.pages.cursor import Cursor
from ...core.records import Rows, Served, WorkerRecord
from ...core.run.outcomes import Refused
from ...core.run.refusals import namespace_gone, too_many_sessions
from ...core.states import WORKER_STATUS_OF_CODE, WorkerStatus
from ...core.times import US_PER_MS, Timestamp
from ...core.workers import (
    EVENT_OF_STATUS,
    LOST,
    Diagnostic,
    Happened,
    Registration,
    WorkerEvent,
    WorkerEventKind,
    registered,
    troubled,
    with_liveness,
)
from ...core.workflow_types.schemas import NO_TYPE_SCHEMAS, TypeSchemas
from ..rows import Row, read_worker, read_worker_event, require_storable, write_json, write_strings
from ..sessions import AFTER_ALL, Purpose, Session, Sessions, first, list_page, position, scan, verb
from .audit import note_audit
from .versions import note_schemas

_NO_SCHEMAS = TypeSchemas()
_decode_served = msgspec.json.Decoder(tuple[Served, ...]).decode


async def _register(
    session: Session,
    worker: WorkerRecord,
    now: Timestamp,
    schemas: Mapping[Served, TypeSchemas] = NO_TYPE_SCHEMAS,
) -> Registration | Refused:
    require_storable(
        worker_id=worker.worker_id,
        namespace=worker.namespace,
        hostname=worker.hostname,
        sdk_version=worker.sdk_version,
        build_id=worker.build_id,
        labels="".join([*worker.labels, *worker.labels.values()]),
        served="".join(text for each in worker.served for text in (each.workflow_type, each.version)),
    )
    key = {"namespace": worker.namespace, "worker_id": worker.worker_id}
    async with session.transaction():
        if (refused := await _refuse_session(session, worker, now)) is not None:
            return refused
        await session.read("create_namespace", namespace=worker.namespace, now=now)
        before = await first(session, "lock_worker", **key)
        [row] = await session.read(
            "put_worker",
            **key,
            status=worker.status.value,
            active_count=worker.active_count,
            max_concurrent=worker.max_concurrent,
            pid=worker.pid,
            hostname=worker.hostname,
            sdk_version=worker.sdk_version,
            build_id=worker.build_id,
            workflow_types=sorted({each.workflow_type for each in worker.served}),
            served=write_json(worker.served),
            labels=write_strings(worker.labels),
            now=now,
        )
        served = {(each.workflow_type, each.version) for each in worker.served}
        versions = [{"workflow_type": name, "version": version} for name, version in sorted(served)]
        new_versions = await session.read("note_versions", namespace=worker.namespace, versions=versions, now=now)
        every = {each: schemas.get(each, _NO_SCHEMAS) for each in worker.served}
        changed = await note_schemas(session, worker.namespace, every, now)
        known_before = before is not None
        await note_events(
            session, worker.namespace, worker.worker_id, registered(worker, known_before=known_before), now
        )
    return Registration(known_before, _status(row) is WorkerStatus.DRAINING, bool(new_versions or changed))


async def _refuse_session(session: Session, worker: WorkerRecord, now: Timestamp) -> Refused | None:
    """Refuses a worker whose namespace is being deleted or has reached its limit of workers. The namespace row is
    locked, so that this stays true."""
    row = await first(session, "lock_session_limit", namespace=worker.namespace)
    if row is None:
        return None
    if row["deleting_at"] is not None:
        return namespace_gone(worker.namespace)
    limit: int = row["sessions_limit"]
    alive_since = now - limits.SESSION_COUNTS_MS * US_PER_MS
    [counted] = await session.read(
        "count_sessions", namespace=worker.namespace, worker_id=worker.worker_id, alive_since=alive_since, limit=limit
    )
    return too_many_sessions(worker.namespace, limit) if counted["sessions"] >= limit else None


async def note_events(
    session: Session, namespace: str, worker_id: str, events: Sequence[Happened], now: Timestamp
) -> None:
    rows = [{"namespace": namespace, "worker_id": worker_id, "kind": kind, "detail": text} for kind, text in events]
    await session.read("note_worker_events", events=rows, now=now)
    await session.read("trim_worker_events", namespace=namespace, worker_id=worker_id, kept=limits.WORKER_EVENTS)


async def lock_worker(session: Session, namespace: str, worker_id: str) -> WorkerStatus | None:
    row = await first(session, "lock_worker", namespace=namespace, worker_id=worker_id)
    return None if row is None else _status(row)


def _status(row: Row) -> WorkerStatus:
    """PostgreSQL stores a code, SQLite the name."""
    status: int | str = row["status"]
    return WORKER_STATUS_OF_CODE[status] if isinstance(status, int) else WorkerStatus(status)


async def set_status(session: Session, namespace: str, worker_id: str, status: WorkerStatus, now: Timestamp) -> bool:
    async with session.transaction():
        before = await lock_worker(session, namespace, worker_id)
        if before is None:
            return False
        await session.read("set_worker_status", namespace=namespace, worker_id=worker_id, status=status.value, now=now)
        if before is not status:
            await note_events(session, namespace, worker_id, [(EVENT_OF_STATUS[status], "")], now)
    return True


async def _drain(
    session: Session,
    namespace: str,
    worker_id: str,
    detail: str,
    now: Timestamp,
    *,
    audit: AuditEntry | None = None,
) -> WorkerRecord | None:
    async with session.transaction():
        if await session.read("drain_worker", namespace=namespace, worker_id=worker_id):
            await note_events(session, namespace, worker_id, [(WorkerEventKind.DRAINING, detail)], now)
            await note_audit(session, audit)
        return await _get(session, namespace, worker_id)


async def expire_workers(
    session: Session, unheard_since: Timestamp, now: Timestamp, limit: int, only: tuple[str, str] | None = None
) -> int:
    namespace, worker_id = only or (None, None)
    async with session.transaction():
        rows = await session.read(
            "expire_workers", unheard_since=unheard_since, limit=limit, namespace=namespace, worker_id=worker_id
        )
        if rows:
            kind, detail = LOST
            events = [
                {"namespace": row["namespace"], "worker_id": row["worker_id"], "kind": kind, "detail": detail}
                for row in rows
            ]
            await session.read("note_worker_events", events=events, now=now)
    return len(rows)


async def _note_diagnostics(
    session: Session, namespace: str, worker_id: str, diagnostics: Sequence[Diagnostic], now: Timestamp
) -> None:
    async with session.transaction():
        if await lock_worker(session, namespace, worker_id) is not None:
            await note_events(session, namespace, worker_id, troubled(diagnostics), now)


async def _get(session: Session, namespace: str, worker_id: str) -> WorkerRecord | None:
    row = await first(session, "get_worker", namespace=namespace, worker_id=worker_id)
    return None if row is None else _read_worker(row)


def _read_worker(row: Row) -> WorkerRecord:
    return read_worker(row, _decode_served(row["served"]), _status(row))


async def _list(
    session: Session,
    namespace: str,
    *,
    workflow_type: str | None,
    status: WorkerStatus | None,
    cursor: Cursor | None,
    limit: int,
    alive_since: Timestamp = 0,
) -> Rows[WorkerRecord]:
    at, last_id = position(cursor)
    return await list_page(
        session,
        "list_workers",
        lambda row: with_liveness(_read_worker(row), alive_since),
        cursor,
        limit,
        namespace=namespace,
        workflow_type=workflow_type,
        status=None if status is None else status.value,
        cursor_at=at,
        cursor_id=last_id,
        alive_since=alive_since,
    )


async def _list_events(
    session: Session, namespace: str, *, worker_id: str | None, cursor: Cursor | None, limit: int
) -> Rows[WorkerEvent]:
    return await list_page(
        session,
        "list_worker_events",
        read_worker_event,
        cursor,
        limit,
        namespace=namespace,
        worker_id=worker_id,
        cursor_at=AFTER_ALL if cursor is None else cursor.at,
        cursor_number=0 if cursor is None else int(cursor.id),
    )


async def _forget(session: Session, before: Timestamp, limit: int) -> int:
    events = await session.write("forget_worker_events", before=before, limit=limit)
    workers = await session.write("forget_workers", before=before, limit=limit)
    await session.write("forget_schemas", before=before)
    return len(events) + len(workers)


class Workers(Sessions):
    """Implements `store.protocol.WorkerVerbs`, except what happens to the leases of a worker that is gone."""

    register_worker = verb(Purpose.WRITE, _register)
    set_worker_status = verb(Purpose.WRITE, set_status)
    drain_worker = verb(Purpose.WRITE, _drain)
    expire_workers = verb(Purpose.LEASES, expire_workers)
    note_diagnostics = verb(Purpose.CHORE, _note_diagnostics)
    get_worker = verb(Purpose.READ, _get)
    list_workers = scan(_list)
    list_worker_events = scan(_list_events)
    forget_workers = verb(Purpose.CHORE, _forget)

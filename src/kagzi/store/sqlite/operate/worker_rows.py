"""Workers: who is there, and what becomes of their runs when they leave."""

from collections.abc import Sequence

import msgspec

from ....core import limits
from ....core.effects import NO_EFFECTS, Effects
from ....core.pages.cursor import Cursor
from ....core.records import HOLDER_DIED, Rows, Served, WorkerRecord
from ....core.run.outcomes import Refused
from ....core.states import WorkerStatus
from ....core.times import Timestamp
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
from ..claim.leases import freed
from ..connection.connection import Database, Record
from ..write.fast_path import Writer
from ..write.namespace_quota import refuse_session
from ..write.text_validation import require_plain

_END = 1 << 62
_decode_served = msgspec.json.Decoder(tuple[tuple[str, str], ...]).decode


def register_worker(writer: Writer, worker: WorkerRecord, now: Timestamp) -> Registration | Refused:
    """See Store.register_worker."""
    require_plain(
        worker_id=worker.worker_id,
        namespace=worker.namespace,
        hostname=worker.hostname,
        sdk_version=worker.sdk_version,
        build_id=worker.build_id,
        labels="".join([*worker.labels, *worker.labels.values()]),
        served="".join(text for one in worker.served for text in (one.workflow_type, one.version)),
    )
    namespace = writer.namespaces.ensure(worker.namespace, now)
    if (refused := refuse_session(writer.database, namespace, worker.worker_id, now)) is not None:
        return refused
    served = write_json([(one.workflow_type, one.version) for one in worker.served])
    given = {
        "worker_id": worker.worker_id,
        "namespace": worker.namespace,
        "served": served,
        "max_concurrent": worker.max_concurrent,
        "hostname": worker.hostname,
        "pid": worker.pid,
        "sdk_version": worker.sdk_version,
        "build_id": worker.build_id,
        "labels": write_strings(worker.labels),
        "status": worker.status.value,
        "active_count": worker.active_count,
        "now": now,
    }
    known_before = _status(writer, worker.namespace, worker.worker_id) is not None
    writer.database.run("put_worker", given)
    noted = writer.database.run("note_versions", {"namespace": worker.namespace, "served": served, "now": now})
    _note(writer, worker.namespace, worker.worker_id, registered(worker, known_before=known_before), now)
    draining = _status(writer, worker.namespace, worker.worker_id) is WorkerStatus.DRAINING
    return Registration(known_before, draining, new_versions=noted > 0)


def _status(writer: Writer, namespace: str, worker_id: str) -> WorkerStatus | None:
    row = writer.database.row("worker_status", (namespace, worker_id))
    return None if row is None else WorkerStatus(row[0])


def _note(writer: Writer, namespace: str, worker_id: str, events: Sequence[Happened], now: Timestamp) -> None:
    rows = [(namespace, worker_id, kind, detail) for kind, detail in events]
    writer.database.run("note_worker_events", {"rows": write_json(rows), "now": now})
    keep = {"namespace": namespace, "worker_id": worker_id, "keep": limits.WORKER_EVENTS}
    writer.database.run("trim_worker_events", keep)


def set_worker_status(writer: Writer, namespace: str, worker_id: str, status: WorkerStatus, now: Timestamp) -> bool:
    """See Store.set_worker_status."""
    before = _status(writer, namespace, worker_id)
    if before is None:
        return False
    writer.database.run("set_worker_status", (status.value, now, namespace, worker_id))
    if before is not status:
        _note(writer, namespace, worker_id, [(EVENT_OF_STATUS[status], "")], now)
    return True


def drain_worker(writer: Writer, namespace: str, worker_id: str, detail: str, now: Timestamp) -> WorkerRecord | None:
    """See Store.drain_worker."""
    if writer.database.run("drain_worker", (namespace, worker_id)):
        _note(writer, namespace, worker_id, [(WorkerEventKind.DRAINING, detail)], now)
    return get_worker(writer.database, namespace, worker_id)


def worker_left(
    writer: Writer, namespace: str, worker_id: str, now: Timestamp, hand_back: bool
) -> tuple[bool, Effects]:
    """See Store.worker_left."""
    if not hand_back:
        known = set_worker_status(writer, namespace, worker_id, WorkerStatus.DRAINING, now)
        return known, NO_EFFECTS
    before = _status(writer, namespace, worker_id)
    if before is None:
        return False, NO_EFFECTS
    writer.database.run("worker_gone", (namespace, worker_id))
    given = {"namespace": namespace, "worker_id": worker_id, "now": now}
    rows = writer.database.rows("release_of_worker", given)
    if events := left(before, len(rows)):
        _note(writer, namespace, worker_id, events, now)
    return True, freed(writer, rows)


def worker_died(writer: Writer, namespace: str, worker_id: str, now: Timestamp) -> int:
    """See Store.worker_died."""
    lose_workers(writer, _END, now, 1, (namespace, worker_id))
    rows = writer.database.rows(
        "orphan_runs_of", {"namespace": namespace, "worker_id": worker_id, "until": HOLDER_DIED}
    )
    for (run_id,) in rows:
        writer.fences.forget(run_id)
    return len(rows)


def lose_workers(
    writer: Writer, unheard_since: Timestamp, now: Timestamp, limit: int, only: tuple[str, str] | None
) -> int:
    """See Store.lose_workers."""
    namespace, worker_id = only or (None, None)
    given = {"since": unheard_since, "limit": limit, "namespace": namespace, "worker_id": worker_id}
    lost = writer.database.rows("lose_workers", given)
    if lost:
        rows = [(namespace, worker_id, *LOST) for namespace, worker_id in lost]
        writer.database.run("note_worker_events", {"rows": write_json(rows), "now": now})
    return len(lost)


def note_troubles(writer: Writer, namespace: str, worker_id: str, troubles: Sequence[Trouble], now: Timestamp) -> None:
    """See Store.note_troubles."""
    if _status(writer, namespace, worker_id) is not None:
        _note(writer, namespace, worker_id, troubled(troubles), now)


def get_worker(database: Database, namespace: str, worker_id: str) -> WorkerRecord | None:
    row = database.record("get_worker", (namespace, worker_id))
    return None if row is None else _read_worker(row)


def _read_worker(row: Record) -> WorkerRecord:
    served = tuple(Served(*pair) for pair in _decode_served(row["served"]))
    return read_worker(row, served, WorkerStatus(row["status"]))


def list_workers(
    database: Database,
    namespace: str,
    *,
    workflow_type: str | None,
    status: WorkerStatus | None,
    cursor: Cursor | None,
    limit: int,
    alive_since: Timestamp,
) -> Rows[WorkerRecord]:
    """See Store.list_workers."""
    newer = cursor is not None and cursor.direction == "prev"
    given = {
        "namespace": namespace,
        "workflow_type": workflow_type,
        "status": None if status is None else status.value,
        "at": _END if cursor is None else cursor.at,
        "id": "" if cursor is None else cursor.id,
        "limit": limit + 1,
        "alive_since": alive_since,
    }
    page, more = database.page("list_newer_workers" if newer else "list_older_workers", given, limit)
    if newer:
        page.reverse()
    return Rows(tuple(as_heard(_read_worker(row), alive_since) for row in page), more)


def list_worker_events(
    database: Database, namespace: str, *, worker_id: str | None, cursor: Cursor | None, limit: int
) -> Rows[WorkerEvent]:
    """See Store.list_worker_events."""
    later = cursor is not None and cursor.direction == "prev"
    given = {
        "namespace": namespace,
        "worker_id": worker_id,
        "at": _END if cursor is None else cursor.at,
        "number": 0 if cursor is None else int(cursor.id),
        "limit": limit + 1,
    }
    rows, more = database.page("list_newer_worker_events" if later else "list_older_worker_events", given, limit)
    events = [read_worker_event(row) for row in rows]
    if later:
        events.reverse()
    return Rows(tuple(events), more)


def forget_workers(writer: Writer, before: Timestamp, limit: int) -> int:
    """See Store.forget_workers."""
    events = writer.database.run("forget_worker_events", (before, limit))
    return events + writer.database.run("forget_workers", (before, limit))

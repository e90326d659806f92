"""Workers: who is there, and what becomes of their runs when they leave."""

from ...core.cursor import Cursor
from ...core.records import Rows, WorkerRecord
from ...core.states import WorkerStatus
from ...core.times import Timestamp
from ..protocol import TypeKey
from .connection import Database
from .leases import freed
from .plain_text import require_plain
from .rows import read_worker, write_json, write_mapping
from .wave import Writer

_END = 1 << 62


def register_worker(writer: Writer, worker: WorkerRecord, now: Timestamp) -> None:
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
    writer.namespaces.ensure(worker.namespace, now)
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
        "labels": write_mapping(worker.labels),
        "status": worker.status.value,
        "active_count": worker.active_count,
        "now": now,
    }
    writer.database.run("put_worker", given)
    writer.database.run("note_versions", {"namespace": worker.namespace, "served": served, "now": now})


def set_worker_status(writer: Writer, namespace: str, worker_id: str, status: WorkerStatus, now: Timestamp) -> bool:
    """See Store.set_worker_status."""
    return writer.database.run("set_worker_status", (status.value, now, namespace, worker_id)) > 0


def worker_left(
    writer: Writer, namespace: str, worker_id: str, now: Timestamp, hand_back: bool
) -> tuple[TypeKey, ...] | None:
    """See Store.worker_left."""
    if not hand_back:
        known = set_worker_status(writer, namespace, worker_id, WorkerStatus.DRAINING, now)
        return () if known else None
    if writer.database.run("worker_gone", (namespace, worker_id)) == 0:
        return None
    given = {"namespace": namespace, "worker_id": worker_id, "now": now}
    return freed(writer, writer.database.rows("release_of_worker", given))


def get_worker(database: Database, namespace: str, worker_id: str) -> WorkerRecord | None:
    row = database.row("get_worker", (namespace, worker_id))
    return None if row is None else read_worker(row)


def list_workers(
    database: Database,
    namespace: str,
    *,
    workflow_type: str | None,
    status: WorkerStatus | None,
    cursor: Cursor | None,
    limit: int,
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
    }
    rows = database.rows("list_newer_workers" if newer else "list_older_workers", given)
    page = rows[:limit]
    if newer:
        page.reverse()
    return Rows(tuple(map(read_worker, page)), len(rows) > limit)

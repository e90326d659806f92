"""Workers: who is there, what they serve, and what becomes of their runs when they leave."""

from collections.abc import Sequence

from ...core.cursor import Cursor
from ...core.records import Held, Lease, Rows, RunKey, WorkerRecord
from ...core.states import WorkerStatus
from ...core.times import Timestamp
from ..protocol import TypeKey
from .connections import Session
from .leases import release
from .rows import CODE_OF_WORKER_STATUS, read_worker, write_served, write_strings


async def register_worker(session: Session, worker: WorkerRecord, now: Timestamp) -> None:
    served = sorted({(each.workflow_type, each.version) for each in worker.served})
    await session.write(
        "register_worker",
        worker.namespace,
        worker.worker_id,
        CODE_OF_WORKER_STATUS[worker.status],
        worker.active_count,
        worker.max_concurrent,
        worker.pid,
        worker.hostname,
        worker.sdk_version,
        worker.build_id,
        sorted({workflow_type for workflow_type, _ in served}),
        write_served(worker.served),
        write_strings(worker.labels) if worker.labels else None,
        worker.total_completed,
        now,
        [workflow_type for workflow_type, _ in served],
        [version for _, version in served],
        worker.total_failed,
    )


async def set_worker_status(
    session: Session, namespace: str, worker_id: str, status: WorkerStatus, now: Timestamp
) -> bool:
    return bool(await session.write("set_worker_status", namespace, worker_id, CODE_OF_WORKER_STATUS[status], now))


async def worker_left(
    session: Session, namespace: str, worker_id: str, now: Timestamp, *, hand_back: bool
) -> Sequence[TypeKey] | None:
    status = WorkerStatus.OFFLINE if hand_back else WorkerStatus.DRAINING
    if not await set_worker_status(session, namespace, worker_id, status, now):
        return None
    if not hand_back:
        return ()
    rows = await session.read("runs_held_by", namespace, worker_id)
    held = [Held(RunKey(namespace, row["run_id"]), Lease(row["lease"], row["nonce"])) for row in rows]
    return await release(session, held, now) if held else ()


async def get_worker(session: Session, namespace: str, worker_id: str) -> WorkerRecord | None:
    rows = await session.read("get_worker", namespace, worker_id)
    return read_worker(rows[0]) if rows else None


async def list_workers(
    session: Session,
    namespace: str,
    *,
    workflow_type: str | None,
    status: WorkerStatus | None,
    cursor: Cursor | None,
    limit: int,
) -> Rows[WorkerRecord]:
    newer = cursor is not None and cursor.direction == "prev"
    rows = await session.read(
        "list_workers_newer" if newer else "list_workers_older",
        namespace,
        workflow_type,
        None if status is None else CODE_OF_WORKER_STATUS[status],
        None if cursor is None else cursor.at,
        None if cursor is None else cursor.id,
        limit + 1,
    )
    records = [read_worker(row) for row in rows[:limit]]
    if newer:
        records.reverse()
    return Rows(tuple(records), has_more=len(rows) > limit)

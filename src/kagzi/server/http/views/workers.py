"""Workers and their events."""

from collections.abc import Mapping

from ....core.records import WorkerRecord
from ....core.states import WorkerStatus
from ....core.times import moment_text
from ....core.workers import WorkerEvent, WorkerEventKind
from .common import Moment, PageQuery, View


class WorkerListQuery(PageQuery, frozen=True, kw_only=True):
    """`workflow`: those that serve this type."""

    status: WorkerStatus | None = None
    workflow: str | None = None


class WorkerEventQuery(PageQuery, frozen=True, kw_only=True):
    """`worker_id`: only this worker."""

    worker_id: str | None = None


class ServedView(View, frozen=True, kw_only=True):
    workflow: str
    version: str


class WorkerView(View, frozen=True, kw_only=True):
    """A worker. `active` of `max_concurrent` slots are in use; `completed` and `failed` count runs that ended on it."""

    worker_id: str
    status: WorkerStatus
    hostname: str
    pid: int
    build_id: str
    sdk_version: str
    workflows: tuple[ServedView, ...]
    labels: Mapping[str, str]
    max_concurrent: int
    active: int
    completed: int
    failed: int
    registered_at: Moment
    last_seen_at: Moment


class WorkerEventView(View, frozen=True, kw_only=True):
    worker_id: str
    kind: WorkerEventKind
    at: Moment
    detail: str


def worker_view(worker: WorkerRecord) -> WorkerView:
    return WorkerView(
        worker_id=worker.worker_id,
        status=worker.status,
        hostname=worker.hostname,
        pid=worker.pid,
        build_id=worker.build_id,
        sdk_version=worker.sdk_version,
        workflows=tuple(ServedView(workflow=pair.workflow_type, version=pair.version) for pair in worker.served),
        labels=worker.labels,
        max_concurrent=worker.max_concurrent,
        active=worker.active_count,
        completed=worker.total_completed,
        failed=worker.total_failed,
        registered_at=moment_text(worker.registered_at),
        last_seen_at=moment_text(worker.last_heartbeat_at),
    )


def worker_event_view(event: WorkerEvent) -> WorkerEventView:
    return WorkerEventView(worker_id=event.worker_id, kind=event.kind, at=moment_text(event.at), detail=event.detail)

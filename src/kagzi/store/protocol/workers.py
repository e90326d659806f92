"""Workers and their events."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from ...core.effects import Effects
from ...core.keys.audit import AuditEntry
from ...core.pages.cursor import Cursor
from ...core.records import Rows, Served, WorkerRecord
from ...core.run.outcomes import Refused
from ...core.states import WorkerStatus
from ...core.times import Timestamp
from ...core.workers import Diagnostic, Registration, WorkerEvent
from ...core.workflow_types.schemas import NO_TYPE_SCHEMAS, TypeSchemas


class WorkerVerbs(Protocol):
    """Workers and what happened to them. Each change is recorded as an event of the worker, in the same transaction."""

    async def register_worker(
        self, worker: WorkerRecord, now: Timestamp, schemas: Mapping[Served, TypeSchemas] = NO_TYPE_SCHEMAS
    ) -> Registration | Refused:
        """Insert or refresh. Also records each (type, version) that it serves, its namespace, and the `schemas` of what
        it serves if they differ from those registered last. A process that was told to drain and reconnects (same id,
        host and pid) stays DRAINING."""
        ...

    async def set_worker_status(self, namespace: str, worker_id: str, status: WorkerStatus, now: Timestamp) -> bool:
        """False: no such worker."""
        ...

    async def drain_worker(
        self, namespace: str, worker_id: str, detail: str, now: Timestamp, *, audit: AuditEntry | None = None
    ) -> WorkerRecord | None:
        """Set it to DRAINING, unless it has left. Returns the worker as it is now. None: no such worker."""
        ...

    async def worker_left(
        self, namespace: str, worker_id: str, now: Timestamp, *, hand_back: bool
    ) -> tuple[bool, Effects]:
        """OFFLINE if `hand_back` (its runs are PENDING at once), else DRAINING. False: no such worker."""
        ...

    async def worker_died(self, namespace: str, worker_id: str, now: Timestamp) -> int:
        """Its process has certainly ended: the worker is lost, and the next `fire` ends its leases even without
        `end_leases`. Returns how many runs it held."""
        ...

    async def expire_workers(
        self, unheard_since: Timestamp, now: Timestamp, limit: int, only: tuple[str, str] | None = None
    ) -> int:
        """Workers that are not OFFLINE and have not reported since `unheard_since` are lost: they become OFFLINE. Their
        leases end at their time. Returns how many. `only`: this one, by namespace and id."""
        ...

    async def note_diagnostics(
        self, namespace: str, worker_id: str, diagnostics: Sequence[Diagnostic], now: Timestamp
    ) -> None: ...

    async def get_worker(self, namespace: str, worker_id: str) -> WorkerRecord | None: ...

    async def list_workers(
        self,
        namespace: str,
        *,
        workflow_type: str | None,
        status: WorkerStatus | None,
        cursor: Cursor | None,
        limit: int,
        alive_since: Timestamp = 0,
    ) -> Rows[WorkerRecord]:
        """Newest registration first. A worker that has not reported since `alive_since` is returned as OFFLINE."""
        ...

    async def list_worker_events(
        self, namespace: str, *, worker_id: str | None, cursor: Cursor | None, limit: int
    ) -> Rows[WorkerEvent]:
        """Latest first. A cursor's id is the event's number. At most limits.WORKER_EVENTS are kept of each worker."""
        ...

    async def forget_workers(self, before: Timestamp, limit: int) -> int:
        """Delete events older than `before`, and OFFLINE workers that last reported before it. Returns how many."""
        ...

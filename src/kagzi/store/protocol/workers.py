"""Who executes runs."""

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
    """Workers, and what became of them. Each change is kept as an event of the worker, in the same transaction."""

    async def register_worker(
        self, worker: WorkerRecord, now: Timestamp, schemas: Mapping[Served, TypeSchemas] = NO_TYPE_SCHEMAS
    ) -> Registration | Refused:
        """Insert or refresh; also notes each (type, version) it serves, its namespace, and the `schemas` of what it
        serves if they are not those that were registered last. A process that was told to drain and comes back (same
        id, host and pid) is DRAINING still."""
        ...

    async def set_worker_status(self, namespace: str, worker_id: str, status: WorkerStatus, now: Timestamp) -> bool:
        """False: unknown."""
        ...

    async def drain_worker(
        self, namespace: str, worker_id: str, detail: str, now: Timestamp, *, audit: AuditEntry | None = None
    ) -> WorkerRecord | None:
        """DRAINING, unless it has left. Returns it as it is now; None: unknown."""
        ...

    async def worker_left(
        self, namespace: str, worker_id: str, now: Timestamp, *, hand_back: bool
    ) -> tuple[bool, Effects]:
        """The worker is OFFLINE (`hand_back`: its runs are PENDING at once) or else DRAINING. False: unknown."""
        ...

    async def worker_died(self, namespace: str, worker_id: str, now: Timestamp) -> int:
        """Its process has ended, which is proven: it is lost, and its leases end with the next `fire`, whatever that
        says about leases. How many runs it held."""
        ...

    async def expire_workers(
        self, unheard_since: Timestamp, now: Timestamp, limit: int, only: tuple[str, str] | None = None
    ) -> int:
        """Whoever is not OFFLINE and was not heard of since then is lost: OFFLINE. Their leases end by themselves.
        Returns how many. `only`: this one, by namespace and id."""
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
        """Newest registration first. Who was not heard of since `alive_since` counts as OFFLINE, and is answered so."""
        ...

    async def list_worker_events(
        self, namespace: str, *, worker_id: str | None, cursor: Cursor | None, limit: int
    ) -> Rows[WorkerEvent]:
        """Latest first. A cursor's id is the event's number. At most limits.WORKER_EVENTS are kept of each worker."""
        ...

    async def forget_workers(self, before: Timestamp, limit: int) -> int:
        """Delete events older than that, and OFFLINE workers last heard of before it. Returns how many."""
        ...

"""Who executes runs."""

from collections.abc import Sequence
from typing import Protocol

from ...core.cursor import Cursor
from ...core.records import Rows, WorkerRecord
from ...core.states import WorkerStatus
from ...core.times import Timestamp
from .hot import TypeKey


class WorkerVerbs(Protocol):
    """Workers, and what became of them."""

    async def register_worker(self, worker: WorkerRecord, now: Timestamp) -> None:
        """Insert or refresh; also notes each (type, version) it serves, and its namespace."""
        ...

    async def set_worker_status(self, namespace: str, worker_id: str, status: WorkerStatus, now: Timestamp) -> bool: ...

    async def worker_left(
        self, namespace: str, worker_id: str, now: Timestamp, *, hand_back: bool
    ) -> Sequence[TypeKey] | None:
        """The worker is OFFLINE (`hand_back`: every run it holds is PENDING at once) or, if not, DRAINING. None: unknown."""
        ...

    async def get_worker(self, namespace: str, worker_id: str) -> WorkerRecord | None: ...

    async def list_workers(
        self,
        namespace: str,
        *,
        workflow_type: str | None,
        status: WorkerStatus | None,
        cursor: Cursor | None,
        limit: int,
    ) -> Rows[WorkerRecord]:
        """Newest registration first."""
        ...

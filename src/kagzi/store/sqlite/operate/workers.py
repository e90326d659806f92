"""The verbs about workers, each in its thread."""

from collections.abc import Sequence

from ....core.effects import Effects
from ....core.pages.cursor import Cursor
from ....core.records import Rows, WorkerRecord
from ....core.run.outcomes import Refused
from ....core.states import WorkerStatus
from ....core.times import Timestamp
from ....core.workers import Registration, Trouble, WorkerEvent
from ..connection.connections import Lanes
from . import worker_rows as workers


class WorkerDesk(Lanes):
    """Keeps `store.protocol.WorkerVerbs`."""

    async def register_worker(self, worker: WorkerRecord, now: Timestamp) -> Registration | Refused:
        return await self._change(workers.register_worker, worker, now)

    async def set_worker_status(self, namespace: str, worker_id: str, status: WorkerStatus, now: Timestamp) -> bool:
        return await self._change(workers.set_worker_status, namespace, worker_id, status, now)

    async def drain_worker(self, namespace: str, worker_id: str, detail: str, now: Timestamp) -> WorkerRecord | None:
        return await self._change(workers.drain_worker, namespace, worker_id, detail, now)

    async def worker_left(
        self, namespace: str, worker_id: str, now: Timestamp, *, hand_back: bool
    ) -> tuple[bool, Effects]:
        return await self._change(workers.worker_left, namespace, worker_id, now, hand_back)

    async def worker_died(self, namespace: str, worker_id: str, now: Timestamp) -> int:
        return await self._change(workers.worker_died, namespace, worker_id, now)

    async def lose_workers(
        self, unheard_since: Timestamp, now: Timestamp, limit: int, only: tuple[str, str] | None = None
    ) -> int:
        return await self._change(workers.lose_workers, unheard_since, now, limit, only)

    async def note_troubles(self, namespace: str, worker_id: str, troubles: Sequence[Trouble], now: Timestamp) -> None:
        await self._change(workers.note_troubles, namespace, worker_id, troubles, now)

    async def get_worker(self, namespace: str, worker_id: str) -> WorkerRecord | None:
        return await self._read(workers.get_worker, namespace, worker_id)

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
        return await self._scan(
            namespace,
            workers.list_workers,
            namespace,
            workflow_type=workflow_type,
            status=status,
            cursor=cursor,
            limit=limit,
            alive_since=alive_since,
        )

    async def list_worker_events(
        self, namespace: str, *, worker_id: str | None, cursor: Cursor | None, limit: int
    ) -> Rows[WorkerEvent]:
        return await self._scan(
            namespace, workers.list_worker_events, namespace, worker_id=worker_id, cursor=cursor, limit=limit
        )

    async def forget_workers(self, before: Timestamp, limit: int) -> int:
        return await self._change(workers.forget_workers, before, limit)

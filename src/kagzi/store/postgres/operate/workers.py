"""The verbs about workers, each on its connection."""

from collections.abc import Sequence

from ....core.effects import Effects
from ....core.pages.cursor import Cursor
from ....core.records import Rows, WorkerRecord
from ....core.run.outcomes import Refused
from ....core.states import WorkerStatus
from ....core.times import Timestamp
from ....core.workers import Registration, Trouble, WorkerEvent
from ..connection.connections import Links
from . import worker_rows as workers


class WorkerDesk(Links):
    """Keeps `store.protocol.WorkerVerbs`."""

    async def register_worker(self, worker: WorkerRecord, now: Timestamp) -> Registration | Refused:
        async with self._questions.use() as session:
            return await workers.register_worker(session, worker, now)

    async def set_worker_status(self, namespace: str, worker_id: str, status: WorkerStatus, now: Timestamp) -> bool:
        async with self._questions.use() as session:
            return await workers.set_worker_status(session, namespace, worker_id, status, now)

    async def drain_worker(self, namespace: str, worker_id: str, detail: str, now: Timestamp) -> WorkerRecord | None:
        async with self._questions.use() as session:
            return await workers.drain_worker(session, namespace, worker_id, detail, now)

    async def worker_left(
        self, namespace: str, worker_id: str, now: Timestamp, *, hand_back: bool
    ) -> tuple[bool, Effects]:
        async with self._questions.use() as session:
            return await workers.worker_left(session, namespace, worker_id, now, hand_back=hand_back)

    async def worker_died(self, namespace: str, worker_id: str, now: Timestamp) -> int:
        async with self._duty.use(confirm=False) as session:
            return await workers.worker_died(session, namespace, worker_id, now)

    async def lose_workers(
        self, unheard_since: Timestamp, now: Timestamp, limit: int, only: tuple[str, str] | None = None
    ) -> int:
        async with self._duty.use(confirm=False) as session:
            return await workers.lose_workers(session, unheard_since, now, limit, only)

    async def note_troubles(self, namespace: str, worker_id: str, troubles: Sequence[Trouble], now: Timestamp) -> None:
        async with self._questions.use(confirm=False) as session:
            await workers.note_troubles(session, namespace, worker_id, troubles, now)

    async def get_worker(self, namespace: str, worker_id: str) -> WorkerRecord | None:
        async with self._readers.use(confirm=False) as session:
            return await workers.get_worker(session, namespace, worker_id)

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
        async with self._scan(namespace) as session:
            return await workers.list_workers(
                session,
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
        async with self._scan(namespace) as session:
            return await workers.list_worker_events(session, namespace, worker_id=worker_id, cursor=cursor, limit=limit)

    async def forget_workers(self, before: Timestamp, limit: int) -> int:
        async with self._questions.use(confirm=False) as session:
            return await workers.forget_workers(session, before, limit)

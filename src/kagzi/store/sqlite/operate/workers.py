"""What happens to the leases of a worker that is gone. The other verbs about workers are shared:
`store/operate/workers`."""

from ....core.effects import NO_EFFECTS, Effects
from ....core.records import HOLDER_DIED
from ....core.states import WorkerStatus
from ....core.times import LAST_TIME, Timestamp
from ....core.workers import left
from ...operate.workers import Workers, expire_workers, lock_worker, note_events, set_status
from ..claim.leases import freed
from ..connection.connections import Connections
from ..connection.session import WriterSession


class SqliteWorkers(Workers, Connections):
    """Implements `store.protocol.WorkerVerbs`."""

    async def worker_left(
        self, namespace: str, worker_id: str, now: Timestamp, *, hand_back: bool
    ) -> tuple[bool, Effects]:
        return await self._write_with(lambda session: _left(session, namespace, worker_id, now, hand_back=hand_back))

    async def worker_died(self, namespace: str, worker_id: str, now: Timestamp) -> int:
        return await self._write_with(lambda session: _died(session, namespace, worker_id, now))


async def _left(
    session: WriterSession, namespace: str, worker_id: str, now: Timestamp, *, hand_back: bool
) -> tuple[bool, Effects]:
    before = await lock_worker(session, namespace, worker_id)
    if before is None:
        return False, NO_EFFECTS
    if not hand_back:
        await set_status(session, namespace, worker_id, WorkerStatus.DRAINING, now)
        return True, NO_EFFECTS
    await session.read(
        "set_worker_status", namespace=namespace, worker_id=worker_id, status=WorkerStatus.OFFLINE.value, now=now
    )
    rows = session.writer.database.rows(
        "release_of_worker", {"namespace": namespace, "worker_id": worker_id, "now": now}
    )
    if events := left(before, len(rows)):
        await note_events(session, namespace, worker_id, events, now)
    return True, freed(session.writer, rows)


async def _died(session: WriterSession, namespace: str, worker_id: str, now: Timestamp) -> int:
    await expire_workers(session, LAST_TIME, now, 1, (namespace, worker_id))
    rows = await session.read("orphan_runs_of", namespace=namespace, worker_id=worker_id, until=HOLDER_DIED)
    for row in rows:
        session.writer.fences.forget(row["run_id"])
    return len(rows)

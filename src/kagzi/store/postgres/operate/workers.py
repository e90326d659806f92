"""What happens to the leases of a worker that is gone. The other verbs about workers are shared:
`store/operate/workers`."""

from ....core.effects import NO_EFFECTS, Effects
from ....core.records import HOLDER_DIED, Lease, RunKey, RunLease
from ....core.states import WorkerStatus
from ....core.times import LAST_TIME, Timestamp
from ....core.workers import left
from ...operate.workers import Workers, expire_workers, lock_worker, note_events, set_status
from ..claim.leases import release, shorten_leases
from ..connection.connection import Session
from ..connection.connections import Connections


class PostgresWorkers(Workers, Connections):
    """Implements `store.protocol.WorkerVerbs`."""

    async def worker_left(
        self, namespace: str, worker_id: str, now: Timestamp, *, hand_back: bool
    ) -> tuple[bool, Effects]:
        async with self._questions.use() as session:
            if not hand_back:
                known = await set_status(session, namespace, worker_id, WorkerStatus.DRAINING, now)
                return known, NO_EFFECTS
            return await _hand_back(session, namespace, worker_id, now)

    async def worker_died(self, namespace: str, worker_id: str, now: Timestamp) -> int:
        async with self._duty.use(confirm=False) as session:
            await expire_workers(session, LAST_TIME, now, 1, (namespace, worker_id))
            leases = await _leases(session, namespace, worker_id)
            if leases:
                await shorten_leases(session, leases, HOLDER_DIED)
        return len(leases)


async def _hand_back(session: Session, namespace: str, worker_id: str, now: Timestamp) -> tuple[bool, Effects]:
    async with session.transaction():
        before = await lock_worker(session, namespace, worker_id)
        if before is None:
            return False, NO_EFFECTS
        await session.read(
            "set_worker_status", namespace=namespace, worker_id=worker_id, status=WorkerStatus.OFFLINE.value, now=now
        )
        leases = await _leases(session, namespace, worker_id)
        if events := left(before, len(leases)):
            await note_events(session, namespace, worker_id, events, now)
    return True, await release(session, leases, now) if leases else NO_EFFECTS


async def _leases(session: Session, namespace: str, worker_id: str) -> list[RunLease]:
    rows = await session.read("runs_leased_by", namespace=namespace, worker_id=worker_id)
    return [RunLease(RunKey(namespace, row["run_id"]), Lease(row["lease"], row["nonce"])) for row in rows]

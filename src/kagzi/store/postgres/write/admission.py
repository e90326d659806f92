"""Admission of starts to types with limits: if the type is full, the new run is refused or the oldest is evicted.

Runs are always locked before types. Which runs are evicted is known only under the lock of the type: those that are not
locked yet are noted, and the transaction begins again with them.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ....core.effects import NO_EFFECTS, Effects, merge
from ....core.limits import CLEANUP_MS, EVICTED_AT_ONCE
from ....core.run.commands import StartRun
from ....core.run.outcomes import Refused
from ....core.times import US_PER_MS, Timestamp
from ....core.workflow_types.admission import begins_at_once, queues_of, type_full, why_evicted
from ....core.workflow_types.queues import TypeLimits
from ...protocol import TypeKey
from ...rows import read_limits
from ..claim.permits import lock_types
from ..connection.connection import Session
from ..run.control import cancel_locked
from .endings import MovedError, lock_family


class _Queue(NamedTuple):
    """What a limit applies to: a type, or a key of it."""

    type: TypeKey
    key: str | None

    @property
    def parameters(self) -> dict[str, str | None]:
        namespace, workflow_type = self.type
        return {"namespace": namespace, "workflow_type": workflow_type, "concurrency_key": self.key}


class TypeAdmission:
    """Counts the runs of types and keys, including each admitted start, and notes which runs are evicted."""

    def __init__(self, session: Session, locked: set[str]) -> None:
        """`locked`: the runs that this transaction has locked; missing ones are added before MovedError is raised."""
        self._session = session
        self._locked = locked
        self._limits: dict[TypeKey, TypeLimits] = {}
        self._inside: dict[_Queue, int] = {}
        self._oldest: dict[_Queue, list[str]] = {}
        self._created: set[str] = set()
        self._evictions: dict[str, list[tuple[str, str]]] = {}  # by new run: which runs it evicts, and why

    async def open(self, starts: Sequence[StartRun], now: Timestamp) -> None:
        """Lock the types of these starts and count their runs."""
        of_type: dict[TypeKey, list[StartRun]] = {}
        for start in starts:
            if begins_at_once(start, now):
                of_type.setdefault(TypeKey(start.run.namespace, start.workflow_type), []).append(start)
        for key, row in (await lock_types(self._session, of_type)).items():
            limits = read_limits(row)
            if limits.when_full != "queue":
                self._limits[key] = limits
                for queue in {queue for start in of_type[key] for queue, _ in self._queues(start)}:
                    await self._count(queue, limits, len(of_type[key]))

    async def _count(self, queue: _Queue, limits: TypeLimits, coming: int) -> None:
        limit = (limits.max_running if queue.key is None else limits.max_running_per_key) or 0
        if limits.when_full != "cancel-oldest":
            counted = await self._session.read("count_in_queue", **queue.parameters, limit=limit + coming)
            self._inside[queue], self._oldest[queue] = counted[0]["runs"], []
            return
        statement, parameters = "oldest_open_of_key", queue.parameters
        if queue.key is None:
            statement = "oldest_open_of_type"
            del parameters["concurrency_key"]
        rows = await self._session.read(statement, **parameters, limit=limit + coming + EVICTED_AT_ONCE)
        self._inside[queue], self._oldest[queue] = len(rows), [row["run_id"] for row in rows]

    def refuse(self, start: StartRun, now: Timestamp) -> Refused | None:
        """None: the start is admitted and counted, and the runs that it evicts are noted."""
        if not begins_at_once(start, now):
            return None
        queues = self._queues(start)
        for queue, limit in queues:
            if self._limits[queue.type].when_full == "reject" and self._inside[queue] >= limit:
                return type_full(queue.type.workflow_type, queue.key, limit)
        going: list[tuple[str, str]] = []
        for queue, limit in queues:
            while self._inside[queue] >= limit and (oldest := self._pick(queue)) is not None:
                going.append((oldest, why_evicted(start, queue.key, limit)))
        for queue, _ in queues:
            self._inside[queue] += 1
            self._oldest[queue].append(start.run.run_id)
        self._created.add(start.run.run_id)
        if going:
            self._evictions[start.run.run_id] = going
        return None

    def _pick(self, queue: _Queue) -> str | None:
        """The oldest run, which no longer counts for its type and its key."""
        oldest = self._oldest[queue]
        if not oldest:
            return None
        run_id = oldest[0]
        for other, waiting in self._oldest.items():
            if other.type == queue.type and run_id in waiting:
                waiting.remove(run_id)
                self._inside[other] -= 1
        return run_id

    def check_locks(self) -> None:
        """Raises MovedError if a run to be evicted is not locked."""
        going = {run_id for pairs in self._evictions.values() for run_id, _ in pairs}
        if missing := going - self._locked - self._created:
            self._locked |= missing
            raise MovedError

    async def evict(self, now: Timestamp) -> Effects:
        """Request the cancellation of the evicted runs."""
        if not self._evictions:
            return NO_EFFECTS
        run_ids = {run_id for pairs in self._evictions.values() for run_id, _ in pairs}
        rows = await lock_family(self._session, run_ids, run_ids)
        cancel_by = now + CLEANUP_MS * US_PER_MS
        effects = [
            (await cancel_locked(self._session, rows[run_id], reason, now, cancel_by))[1]
            for pairs in self._evictions.values()
            for run_id, reason in pairs
            if run_id in rows
        ]
        return merge(effects)

    def _queues(self, start: StartRun) -> list[tuple[_Queue, int]]:
        """The limits that apply to this start, the narrower first."""
        of_type = TypeKey(start.run.namespace, start.workflow_type)
        limits = self._limits.get(of_type)
        return [] if limits is None else [(_Queue(of_type, key), limit) for key, limit in queues_of(start, limits)]

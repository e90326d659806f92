"""The writer's cache of leased runs, so that an ordinary write needs no read.

A fence is valid as long as this process is the only writer and every change goes through it. Code that changes a leased
run updates or drops its fence; a rollback drops those that it may have touched.
"""

from collections.abc import Iterable

import msgspec

from ....core.records import Lease
from ..connection.connection import Database

NEVER = 1 << 62
_MOST_KEPT = 200_000


class Fence:
    """A RUNNING run: which lease may write to it, and its last seq."""

    __slots__ = (
        "cancelling",
        "deadline_at",
        "last_result",
        "lease",
        "lease_until",
        "lost_leases",
        "namespace",
        "nonce",
        "pausing",
        "related",
        "run_id",
        "seq",
        "steps_met",
        "steps_open",
        "worker_id",
    )

    def __init__(  # noqa: PLR0917  the columns of fences_of
        self,
        run_id: str,
        namespace: str,
        lease: int,
        nonce: int,
        seq: int,
        deadline_at: int | None,
        lease_until: int,
        worker_id: str,
        related: int = 0,
        cancelling: int = 0,
        lost_leases: int = 0,
        pausing: int = 0,
    ) -> None:
        self.run_id = run_id
        self.namespace = namespace
        self.lease = lease
        self.nonce = nonce
        self.seq = seq
        self.deadline_at = NEVER if deadline_at is None else deadline_at
        self.lease_until = lease_until
        self.worker_id = worker_id
        self.related = related  # its end concerns more than its row: a run that waits for it, children, unread signals
        self.cancelling = cancelling  # only steps of a cleanup may begin
        self.lost_leases = lost_leases  # without progress; below 0: there was progress, which the row does not show yet
        self.pausing = pausing  # to be PAUSED when its worker releases it
        self.last_result: int | None = 0 if seq == 0 else None  # highest seq of a result, if known
        self.steps_met: int | None = None  # the number of steps, once counted
        self.steps_open: frozenset[str] = (
            frozenset()
        )  # begun under an earlier lease: another attempt of these is not a new step

    def admits(self, lease: Lease) -> bool:
        return self.lease == lease.counter and self.nonce == lease.nonce

    def next_seq(self) -> int:
        self.seq += 1
        return self.seq

    def next_result(self) -> int:
        """The next seq, for a result."""
        self.seq += 1
        if self.last_result is not None:
            self.last_result = self.seq
        if self.lost_leases:
            self.lost_leases = -1
        return self.seq


class Fences:
    """Fences by run id. A missing one means unknown, not free."""

    def __init__(self) -> None:
        self._fences: dict[str, Fence] = {}
        self.get = self._fences.get

    def put(self, fence: Fence) -> None:
        if len(self._fences) >= _MOST_KEPT:
            self._fences.clear()
        self._fences[fence.run_id] = fence

    def forget(self, run_id: str) -> None:
        self._fences.pop(run_id, None)

    def forget_all(self) -> None:
        self._fences.clear()

    def load(self, database: Database, run_ids: Iterable[str]) -> None:
        """Read the fences of those of these runs that are unknown and RUNNING, in one statement."""
        missing = [run_id for run_id in run_ids if run_id not in self._fences]
        if missing:
            for row in database.rows("fences_of", (msgspec.json.encode(missing).decode(),)):
                self.put(Fence(*row))

"""Divides free slots between pending types, and claimed runs between claimants."""

from collections.abc import Iterable, Sequence
from itertools import zip_longest

from ...core.records import ClaimedRun, Lease, RunLease
from ...core.run.commands import StartRun
from ...core.times import Timestamp
from ...store.protocol import TypeKey
from .slots import Claimant


class Reservation:
    """Reserved slots of one claimant for one type, during a claim. `left`: slots that got no run."""

    __slots__ = ("claimant", "count", "key", "left")

    def __init__(self, claimant: Claimant, key: TypeKey) -> None:
        self.claimant = claimant
        self.key = key
        self.count = 0
        self.left = 0


def in_turn(pending: Iterable[TypeKey]) -> list[TypeKey]:
    """One type of each namespace at a time; within a namespace in the given order."""
    by_namespace: dict[str, list[TypeKey]] = {}
    for key in pending:
        by_namespace.setdefault(key.namespace, []).append(key)
    return [key for row in zip_longest(*by_namespace.values()) for key in row if key is not None]


def share_out(turn: Sequence[tuple[TypeKey, Sequence[Claimant]]], limit: int) -> list[Reservation]:
    """Reserves up to `limit` slots: equal shares of each claimant for all types it is ready for, the remainder in
    turn."""
    types: dict[Claimant, int] = {}
    for _, ready in turn:
        for claimant in ready:
            types[claimant] = types.get(claimant, 0) + 1
    shares = {claimant: max(1, claimant.offerable() // count) for claimant, count in types.items()}
    reservations: dict[tuple[Claimant, TypeKey], Reservation] = {}
    left = limit
    for share_only in (True, False):
        for key, ready in turn:
            for claimant in ready:
                slots = min(claimant.offerable(), shares[claimant] if share_only else limit, left)
                if slots <= 0:
                    continue
                reservation = reservations.get((claimant, key))
                if reservation is None:
                    reservation = reservations[claimant, key] = Reservation(claimant, key)
                claimant.reserve(slots)
                reservation.count += slots
                left -= slots
    return list(reservations.values())


def distribute(
    reservations: Sequence[Reservation], claimed: Sequence[ClaimedRun]
) -> tuple[dict[Claimant, list[ClaimedRun]], list[RunLease]]:
    """The runs for each claimant, and runs that no claimant is left for. A worker may have several claimants."""
    by_worker: dict[tuple[str, TypeKey], list[Reservation]] = {}
    for reservation in reservations:
        by_worker.setdefault((reservation.claimant.worker_id, reservation.key), []).append(reservation)
    deliveries: dict[Claimant, list[ClaimedRun]] = {}
    unmatched: list[RunLease] = []
    for run in claimed:
        key = TypeKey(run.run.namespace, run.workflow_type)
        for reservation in by_worker.get((run.worker_id, key), ()):
            if reservation.left:
                reservation.left -= 1
                deliveries.setdefault(reservation.claimant, []).append(run)
                break
        else:
            unmatched.append(RunLease(run.run, run.lease))
    return deliveries, unmatched


def claimed_at_start(command: StartRun, at: Timestamp) -> ClaimedRun:
    """The claim of a run that was created as leased: everything is known, nothing has to be read."""
    assignment = command.assignment
    assert assignment is not None
    return ClaimedRun(
        run=command.run,
        lease=Lease(1, assignment.nonce),
        worker_id=assignment.worker_id,
        workflow_id=command.workflow_id,
        workflow_type=command.workflow_type,
        version=assignment.version,
        attempt=1,
        input=command.input,
        context=command.context,
        labels=command.labels,
        created_at=at,
        claimed_at=at,
        ready_at=at,
        started_at=at,
        deadline_at=command.deadline_at,
    )

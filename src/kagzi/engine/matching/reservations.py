"""How free slots are shared out over what is pending, and claimed runs over those who asked."""

from collections.abc import Iterable, Sequence
from itertools import zip_longest

from ...core.records import ClaimedRun, Held, Lease
from ...core.run.commands import StartRun
from ...core.times import Timestamp
from ...store.protocol import TypeKey
from .slots import Taker


class Grant:
    """Reserved slots of one taker for one type, during a claim. `left`: those that nothing came for."""

    __slots__ = ("count", "key", "left", "taker")

    def __init__(self, taker: Taker, key: TypeKey) -> None:
        self.taker = taker
        self.key = key
        self.count = 0
        self.left = 0


def in_turn(pending: Iterable[TypeKey]) -> list[TypeKey]:
    """One type of each namespace at a time, within a namespace in the order given."""
    by_namespace: dict[str, list[TypeKey]] = {}
    for key in pending:
        by_namespace.setdefault(key.namespace, []).append(key)
    return [key for row in zip_longest(*by_namespace.values()) for key in row if key is not None]


def share_out(turn: Sequence[tuple[TypeKey, Sequence[Taker]]], limit: int) -> list[Grant]:
    """Reserve up to `limit` slots: of each taker equal shares for all types it is ready for, what is left over in turn."""
    types: dict[Taker, int] = {}
    for _, ready in turn:
        for taker in ready:
            types[taker] = types.get(taker, 0) + 1
    shares = {taker: max(1, taker.offerable() // count) for taker, count in types.items()}
    grants: dict[tuple[Taker, TypeKey], Grant] = {}
    left = limit
    for share_only in (True, False):
        for key, ready in turn:
            for taker in ready:
                slots = min(taker.offerable(), shares[taker] if share_only else limit, left)
                if slots <= 0:
                    continue
                grant = grants.get((taker, key))
                if grant is None:
                    grant = grants[taker, key] = Grant(taker, key)
                taker.reserve(slots)
                grant.count += slots
                left -= slots
    return list(grants.values())


def distribute(
    grants: Sequence[Grant], claimed: Sequence[ClaimedRun]
) -> tuple[dict[Taker, list[ClaimedRun]], list[Held]]:
    """What each taker gets, and runs that were claimed for nobody. A worker may have asked through several takers."""
    by_worker: dict[tuple[str, TypeKey], list[Grant]] = {}
    for grant in grants:
        by_worker.setdefault((grant.taker.worker_id, grant.key), []).append(grant)
    parcels: dict[Taker, list[ClaimedRun]] = {}
    strays: list[Held] = []
    for run in claimed:
        key = TypeKey(run.run.namespace, run.workflow_type)
        for grant in by_worker.get((run.worker_id, key), ()):
            if grant.left:
                grant.left -= 1
                parcels.setdefault(grant.taker, []).append(run)
                break
        else:
            strays.append(Held(run.run, run.lease))
    return parcels, strays


def born(command: StartRun, at: Timestamp) -> ClaimedRun:
    """The claim of a run that was inserted leased: everything is known, nothing needs to be read."""
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
        deadline_at=command.deadline_at,
    )

"""Which runs are leased through this server, and by which session: frees a slot once per run, and finds the receiver of
a notice."""

from collections import OrderedDict
from collections.abc import Iterable
from typing import Protocol

from ...core.records import Lease, RunKey, RunLease
from ...core.times import Timestamp
from .ports import NoticeKind

UNARY_RUNS = 50_000  # runs of unary workers that are remembered; a forgotten one only costs a read


class Holder(Protocol):
    """A session, as seen by the runs it holds."""

    def dropped(self, run_id: str) -> None:
        """The run is no longer held; its slot is free."""
        ...

    def notify(self, holding: "Holding", kind: NoticeKind, reason: str) -> None: ...

    def lost_leases(self, lost: Iterable[RunLease], reason: str = "") -> None: ...


class Holding:
    """A leased run. After a reconnect, `workflow_type` (empty until it is read) and `started_at` (None) are unknown.
    `sent_at`: when it was sent to the worker, by the event loop's clock."""

    __slots__ = ("cancel_notified", "holder", "leased", "received", "sent_at", "started_at", "workflow_type")

    def __init__(
        self,
        leased: RunLease,
        workflow_type: str,
        holder: Holder | None,
        *,
        received: bool = False,
        started_at: Timestamp | None = None,
        sent_at: float = 0.0,
    ) -> None:
        self.leased = leased
        self.workflow_type = workflow_type
        self.started_at = started_at
        self.holder = holder
        self.received = received
        self.sent_at = sent_at
        self.cancel_notified = False


class LeaseRegistry:
    def __init__(self) -> None:
        self._by_run: dict[str, Holding] = {}
        # An OrderedDict: finding the first key of a dict takes longer the more keys before it were deleted.
        self._unary: OrderedDict[str, Holding] = OrderedDict()

    def add(self, holding: Holding) -> None:
        """A newer lease replaces an older one, whether or not its holder has noticed."""
        run_id = holding.leased.run.run_id
        before = self._by_run.get(run_id)
        self._by_run[run_id] = holding
        if before is not None and before.holder is not None and before.holder is not holding.holder:
            before.holder.dropped(run_id)

    def add_unary(self, leased: RunLease, workflow_type: str, started_at: Timestamp | None = None) -> None:
        """A run that was handed out through a poll: no session to notify, but its type is remembered."""
        if len(self._unary) >= UNARY_RUNS:
            self._unary.popitem(last=False)
        self._unary[leased.run.run_id] = Holding(leased, workflow_type, None, received=True, started_at=started_at)

    def get(self, run_id: str, lease: Lease | None = None) -> Holding | None:
        """The holding of exactly this lease; of any lease if none is named."""
        holding = self._by_run.get(run_id) or self._unary.get(run_id)
        if holding is None or (lease is not None and holding.leased.lease != lease):
            return None
        return holding

    def count_by_type(self, runs: Iterable[RunKey]) -> dict[tuple[str, str], int]:
        """Counts the runs by namespace and workflow type; the type is empty for a run that is not held."""
        by_run, unary = self._by_run, self._unary
        counts: dict[tuple[str, str], int] = {}
        for run in runs:
            holding = by_run.get(run.run_id) or unary.get(run.run_id)
            key = (run.namespace, "" if holding is None else holding.workflow_type)
            counts[key] = counts.get(key, 0) + 1
        return counts

    def remove(self, run_id: str, lease: Lease | None = None) -> Holding | None:
        """The run left its holder. Returns the holding the first time, then None, so that a slot is freed once."""
        holding = self.get(run_id, lease)
        if holding is None:
            return None
        self._unary.pop(run_id, None)
        if self._by_run.pop(run_id, None) is not None and holding.holder is not None:
            holding.holder.dropped(run_id)
        return holding

    def forget(self, holdings: Iterable[Holding]) -> None:
        """Their session is closed: there is no slot to free."""
        for holding in holdings:
            run_id = holding.leased.run.run_id
            if self._by_run.get(run_id) is holding:
                del self._by_run[run_id]

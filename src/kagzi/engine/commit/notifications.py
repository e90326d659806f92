"""Who has to hear of what happened to a run: the matcher, if there is work; its holder, here or through another server; those
who wait for its end; the cascade, if it has children.

Everything here is quick and happens after it is durable. Whoever is missed finds out later: by a heartbeat, a look or a park.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, TypeAlias

from ...core.records import Held, RunKey
from ...core.run.outcomes import Ousted, Stirred
from ...core.times import Timestamp
from ...store.protocol import Cancelled, Changed, Poke, TypeKey
from ..matching.lease_registry import Holders
from ..matching.matcher import Matcher
from ..matching.ports import NoticeKind
from ..services.waits import WaitHub
from ..timing.timers import Timers
from .wakeups import Wakeups

PokeKind: TypeAlias = Literal["result", "cancel", "pause"]

_NOTICE_OF_POKE: dict[PokeKind, NoticeKind] = {
    "result": "result",
    "cancel": "cancel_requested",
    "pause": "pause_requested",
}


class News:
    """`on_children`: a run that ended, or is to be cancelled, has children. `on_touched`: something about these runs changed."""

    def __init__(
        self,
        *,
        holders: Holders,
        matcher: Matcher,
        timers: Timers,
        waits: WaitHub,
        wakeups: Wakeups,
        on_touched: Callable[[Iterable[str]], None],
        on_children: Callable[[], None],
    ) -> None:
        self._holders = holders
        self._matcher = matcher
        self._timers = timers
        self._waits = waits
        self._wakeups = wakeups
        self._on_touched = on_touched
        self._on_children = on_children

    def stirred(self, stirred: Sequence[Stirred]) -> None:
        """Something came for these runs: they are PENDING now, or their holders should ask."""
        if stirred:
            self._on_touched(item.run.run_id for item in stirred)
        for item in stirred:
            if item.woken:
                self._matcher.mark(TypeKey(item.run.namespace, item.workflow_type), announce=True)
            elif item.holder is not None:
                self.tell(Held(item.run, item.holder), item.worker_id, "result")

    def tell(self, held: Held, worker_id: str | None, kind: PokeKind, reason: str = "") -> None:
        """The holder, if its stream ends here; otherwise the other servers, one of which may have it."""
        holding = self._holders.get(held.run.run_id, held.lease)
        if holding is not None and holding.holder is not None:
            holding.holder.tell(holding, _NOTICE_OF_POKE[kind], reason)
        elif holding is None and worker_id:
            self._wakeups.poke(Poke(worker_id, held.run.namespace, held.run.run_id, kind))

    def ousted(self, ousted: Sequence[Ousted]) -> None:
        """Runs that had to make room for others."""
        for each in ousted:
            cancelled = Cancelled(
                each.status,
                ended=each.ended,
                holder=None if each.holder is None else Held(each.run, each.holder),
                worker_id=each.worker_id,
                stirred=each.stirred,
                has_children=each.has_children,
            )
            self.cancelled(each.run, cancelled, each.reason, each.cancel_by)

    def ended(self, run: RunKey) -> None:
        """It ended otherwise than by its worker's word: what those who wait for it are told has to be looked up."""
        self._matcher.permit_free(run.namespace)
        self._waits.look((run,))
        self._wakeups.ended(run)

    def cancelled(self, run: RunKey, cancelled: Cancelled, reason: str, cancel_by: Timestamp) -> None:
        """A run ended at once, or was asked to stop, by a caller or because its parent did."""
        self.touched(run)
        self.stirred(cancelled.stirred)
        if cancelled.has_children:
            self._on_children()
        if cancelled.ended:
            self.ended(run)
            return
        if cancelled.holder is not None:
            self.tell(cancelled.holder, cancelled.worker_id, "cancel", reason)
        if cancelled.woken is not None:
            self._matcher.mark(cancelled.woken, announce=True)
        if not cancelled.status.ended:
            self._timers.hear(cancel_by)

    def terminated(self, run: RunKey, changed: Changed, reason: str) -> None:
        self.touched(run)
        self.stirred(changed.stirred)
        if changed.has_children:
            self._on_children()
        if not changed.changed:
            return
        self.ended(run)
        holding = self._holders.get(run.run_id)
        if holding is not None and holding.holder is not None:
            holding.holder.lost_leases((holding.held,), reason or "the run was terminated")
        elif changed.holder is not None:
            self.tell(changed.holder, changed.worker_id, "cancel", reason)  # who asks hears that the lease is lost

    def touched(self, run: RunKey) -> None:
        """Its status, or what is asked of it, changed."""
        self._on_touched((run.run_id,))

    def pending(self, namespace: str, workflow_type: str) -> None:
        self._matcher.mark(TypeKey(namespace, workflow_type), announce=True)

    def children(self) -> None:
        self._on_children()

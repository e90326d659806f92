"""Effects: the consequences of a durable change for others than its caller.

Every store method that changes runs returns effects with its outcome, and the engine dispatches them once the change
is durable. They are hints: a party that misses one finds out later, through a heartbeat, a poll or a park.
"""

from collections.abc import Iterable
from itertools import chain
from typing import Literal, TypeAlias, TypeVar

import msgspec

from .records import RunEnd, RunKey, RunLease
from .run.handing_on import UnreadEnd
from .times import Timestamp
from .workflow_types.type_key import TypeKey

Item = TypeVar("Item")

LeaseEvent: TypeAlias = Literal["result", "cancel_requested", "pause_requested", "lease_lost"]


class LeaseNotice(msgspec.Struct, frozen=True, gc=False):
    """Something happened to a leased run. With `worker_id`, a worker that is connected to another server is notified
    too."""

    leased: RunLease
    event: LeaseEvent
    worker_id: str | None = None
    reason: str = ""


class Effects(msgspec.Struct, frozen=True, kw_only=True):
    pending: tuple[TypeKey, ...] = ()  # types with runs that can be claimed now
    released: tuple[TypeKey, ...] = ()  # types with runs that gave up their leases and permits
    notices: tuple[LeaseNotice, ...] = ()
    ended: tuple[RunEnd, ...] = ()  # runs that ended without a command of their worker
    due: tuple[Timestamp, ...] = ()  # next due times for the timers
    changed: tuple[RunKey, ...] = ()  # changed runs that neither ended nor are leased
    children_due: bool = False  # some children may have to be cancelled: see Store.cascade
    unread: tuple[UnreadEnd, ...] = ()  # runs that ended with unread signals


NO_EFFECTS = Effects()
CHILDREN_DUE = Effects(children_due=True)


def pending_effects(types: Iterable[TypeKey], *, released: bool = False) -> Effects:
    """Runs of these types can be claimed now; `released`: because their leases ended."""
    keys = tuple(sorted(set(types)))
    return Effects(pending=keys, released=keys if released else ()) if keys else NO_EFFECTS


def merge(parts: Iterable[Effects]) -> Effects:
    """Merges all effects in order. Returns NO_EFFECTS itself if there are none."""
    some = [part for part in parts if part is not NO_EFFECTS]
    if len(some) < 2:
        return some[0] if some else NO_EFFECTS
    return Effects(
        pending=_distinct(part.pending for part in some),
        released=_distinct(part.released for part in some),
        notices=_distinct(part.notices for part in some),
        ended=tuple(chain.from_iterable(part.ended for part in some)),
        due=_distinct(part.due for part in some),
        changed=_distinct(part.changed for part in some),
        children_due=any(part.children_due for part in some),
        unread=tuple(chain.from_iterable(part.unread for part in some)),
    )


def _distinct(parts: Iterable[tuple[Item, ...]]) -> tuple[Item, ...]:
    return tuple(dict.fromkeys(chain.from_iterable(parts)))

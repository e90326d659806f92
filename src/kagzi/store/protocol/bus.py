"""How servers on one store wake each other."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import msgspec

from ...core.workflow_types.type_key import TypeKey


class Bus(Protocol):
    """Wakes servers that share a store. Without it everything still works, more slowly."""

    async def open(self, on_wake: "Callable[[Wake], None]") -> None:
        """Subscribe. After a lost connection, `on_wake(POLL_AGAIN)` is called once it is re-established."""
        ...

    async def publish(self, wake: "Wake") -> None:
        """Notify the other servers. The caller coalesces; the message contains names only."""
        ...

    async def close(self) -> None: ...


class RemoteNotice(NamedTuple):
    """What another server may have to do: notify the worker of a leased run; let a worker drain; with a workflow type
    in place of a run, drop its cached versions or note when its permits become free; with a key in place of a run, read
    that key again."""

    worker_id: str
    namespace: str
    run_id: str
    kind: str  # an event of core/effects.py; "drain"; "versions", "permits", "keys"


class EndedRun(NamedTuple):
    """Names an ended run and nothing else: waiting callers look it up."""

    namespace: str
    run_id: str


class Wake(msgspec.Struct, frozen=True):
    pending: frozenset[TypeKey] = frozenset()  # types with new work
    ended: frozenset[str] = frozenset()  # namespaces in which too many runs ended to name them
    poll_again: bool = False
    notices: frozenset[RemoteNotice] = frozenset()
    ended_runs: frozenset[EndedRun] = frozenset()


POLL_AGAIN = Wake(poll_again=True)


class NullBus:
    """For a store that only one server uses."""

    async def open(self, on_wake: Callable[[Wake], None]) -> None: ...

    async def publish(self, wake: Wake) -> None: ...

    async def close(self) -> None: ...

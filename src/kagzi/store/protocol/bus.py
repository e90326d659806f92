"""How servers on one store wake each other."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import msgspec

from ...core.workflow_types.type_key import TypeKey


class Bus(Protocol):
    """How servers on one store wake each other. Everything works, more slowly, without it."""

    async def open(self, on_wake: "Callable[[Wake], None]") -> None:
        """Subscribe. After a lost connection `on_wake(POLL_AGAIN)` is called once it is back."""
        ...

    async def publish(self, wake: "Wake") -> None:
        """Notify the other servers. The caller coalesces; nothing but names is in it."""
        ...

    async def close(self) -> None: ...


class RemoteNotice(NamedTuple):
    """What another server may have to do: notify the worker of a leased run; let a worker drain; or, with a workflow
    type in place of a run, forget its versions, or say when permits of it become free; or, with a key in place of a
    run, read it again."""

    worker_id: str
    namespace: str
    run_id: str
    kind: str  # an event of core/effects.py; "drain"; "versions", "permits", "keys"


class EndedRun(NamedTuple):
    """Whoever waits for it can look it up, and nothing else."""

    namespace: str
    run_id: str


class Wake(msgspec.Struct, frozen=True):
    pending: frozenset[TypeKey] = frozenset()  # types with new work
    ended: frozenset[str] = frozenset()  # namespaces in which so many runs ended that they are not named
    poll_again: bool = False
    notices: frozenset[RemoteNotice] = frozenset()
    ended_runs: frozenset[EndedRun] = frozenset()


POLL_AGAIN = Wake(poll_again=True)


class NullBus:
    """For a store with one server."""

    async def open(self, on_wake: Callable[[Wake], None]) -> None: ...

    async def publish(self, wake: Wake) -> None: ...

    async def close(self) -> None: ...

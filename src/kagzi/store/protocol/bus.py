"""How servers on one store wake each other."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import msgspec

from .hot import TypeKey


class Bus(Protocol):
    """How servers on one store wake each other. Everything works, more slowly, without it."""

    async def open(self, on_wake: "Callable[[Wake], None]") -> None:
        """Subscribe. After a lost connection `on_wake(LOOK_AGAIN)` is called once it is back."""
        ...

    async def publish(self, wake: "Wake") -> None:
        """Tell the other servers. The caller coalesces; nothing but names is in it."""
        ...

    async def close(self) -> None: ...


class Poke(NamedTuple):
    """A held run whose worker should hear of it: something has come, it is to be cancelled, or paused; a worker that is to drain;
    or a workflow type (in place of a run) whose versions have changed, or for whose permits the sender waits."""

    worker_id: str
    namespace: str
    run_id: str
    kind: str  # "result", "cancel", "pause"; "drain"; "versions", "permits"


class EndedRun(NamedTuple):
    """Whoever waits for it can look it up, and nothing else."""

    namespace: str
    run_id: str


class Wake(msgspec.Struct, frozen=True):
    pending: frozenset[TypeKey] = frozenset()  # types with new work
    ended: frozenset[str] = frozenset()  # namespaces in which so many runs ended that they are not named
    look_again: bool = False
    pokes: frozenset[Poke] = frozenset()
    ended_runs: frozenset[EndedRun] = frozenset()


LOOK_AGAIN = Wake(look_again=True)


class NullBus:
    """For a store with one server."""

    async def open(self, on_wake: Callable[[Wake], None]) -> None: ...

    async def publish(self, wake: Wake) -> None: ...

    async def close(self) -> None: ...

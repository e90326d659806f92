"""How things stand on the whole server, for those who watch it: a bounded look at what waits, is open, and is there."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from ...core.records import RunKey
from ...core.states import RunStatus, WorkerStatus
from ...core.times import Timestamp
from ...core.workflow_types.type_key import TypeKey


class QueueGauge(msgspec.Struct, frozen=True, kw_only=True):
    """Runs of a type that wait for a worker. An empty type: of all types that follow in the order of names."""

    key: TypeKey
    waiting: int  # counted no further than a cap
    oldest_since: Timestamp | None
    served: bool = True  # a worker that is there has registered the type
    limited: bool = False  # its type has limits, or is paused


class OpenRunsGauge(msgspec.Struct, frozen=True, kw_only=True):
    """Of one namespace; all numbers are counted no further than a cap."""

    namespace: str
    by_status: Mapping[RunStatus, int]
    retrying: int  # a step of theirs failed and is tried again
    awaiting_signal: int


class WorkersGauge(msgspec.Struct, frozen=True, kw_only=True):
    """Workers that are there, and their slots."""

    namespace: str
    status: WorkerStatus
    workers: int
    slots: int
    used: int


class RunType(NamedTuple):
    """What is asked of a run to count it: its type, and when it was first claimed."""

    workflow_type: str
    started_at: Timestamp | None


class GaugeVerbs(Protocol):
    """Every verb reads no more rows than its limits say, by indexes, however much is stored."""

    async def queue_gauges(self, alive_since: Timestamp, *, types: int, runs: int) -> Sequence[QueueGauge]:
        """The first `types` types with pending runs, by namespace and name, and one more for all that follow. About
        `runs` runs are counted, of each type as many."""
        ...

    async def open_run_gauges(self, *, namespaces: int, runs: int) -> Sequence[OpenRunsGauge]:
        """Of the `namespaces` that were created first. About `runs` are counted, of each namespace and status as
        many."""
        ...

    async def worker_gauges(self, alive_since: Timestamp, *, workers: int) -> Sequence[WorkersGauge]: ...

    async def first_names(self, *, namespaces: int, types: int) -> tuple[Sequence[str], Sequence[str]]:
        """The namespaces that were created first, and the first names of registered workflow types."""
        ...

    async def types_of(self, runs: Sequence[RunKey], /) -> Mapping[str, RunType]:
        """By run id; without those that are not there."""
        ...

    @property
    def connections(self) -> Mapping[str, int]:
        """To the database, by state: in use, idle."""
        ...

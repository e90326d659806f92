"""Gauges of the whole server for monitoring: waiting runs, open runs and workers, with bounded cost."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from ...core.records import RunKey
from ...core.states import RunStatus, WorkerStatus
from ...core.times import Timestamp
from ...core.workflow_types.type_key import TypeKey


class QueueGauge(msgspec.Struct, frozen=True, kw_only=True):
    """Runs of a type that wait for a worker. With an empty type: of all types after the listed ones, by name."""

    key: TypeKey
    waiting: int  # counting stops at a cap
    oldest_since: Timestamp | None
    served: bool = True  # a worker that is alive has registered the type
    limited: bool = False  # the type has limits, or is paused


class OpenRunsGauge(msgspec.Struct, frozen=True, kw_only=True):
    """Open runs of one namespace; each count stops at a cap."""

    namespace: str
    by_status: Mapping[RunStatus, int]
    retrying: int  # runs with a failed step that will be retried
    awaiting_signal: int


class WorkersGauge(msgspec.Struct, frozen=True, kw_only=True):
    """Workers that are alive, and their slots."""

    namespace: str
    status: WorkerStatus
    workers: int
    slots: int
    used: int


class RunType(NamedTuple):
    """What metrics need of a run: its type, and when it was first claimed."""

    workflow_type: str
    started_at: Timestamp | None


class GaugeVerbs(Protocol):
    """No verb reads more rows than its limits allow, whatever is stored; all use indexes."""

    async def queue_gauges(self, alive_since: Timestamp, *, types: int, runs: int) -> Sequence[QueueGauge]:
        """The first `types` types with pending runs, by namespace and name, and one entry for all that follow. About
        `runs` runs are counted, divided evenly among the types."""
        ...

    async def open_run_gauges(self, *, namespaces: int, runs: int) -> Sequence[OpenRunsGauge]:
        """For the `namespaces` created first. About `runs` runs are counted, divided evenly among namespaces and
        statuses."""
        ...

    async def worker_gauges(self, alive_since: Timestamp, *, workers: int) -> Sequence[WorkersGauge]: ...

    async def first_names(self, *, namespaces: int, types: int) -> tuple[Sequence[str], Sequence[str]]:
        """The namespaces created first, and the first registered workflow types by name."""
        ...

    async def types_of(self, runs: Sequence[RunKey], /) -> Mapping[str, RunType]:
        """By run id, without runs that do not exist."""
        ...

    @property
    def connections(self) -> Mapping[str, int]:
        """The number of connections to the database by state: in use, idle."""
        ...

"""Events of workers, stored for people to read."""

from collections.abc import Iterable
from enum import StrEnum
from typing import TypeAlias

import msgspec

from .records import WorkerRecord
from .states import WorkerStatus
from .times import Timestamp


class WorkerEventKind(StrEnum):
    REGISTERED = "registered"
    RECONNECTED = "reconnected"
    DRAINING = "draining"  # it takes no more runs
    DRAINED = "drained"  # it left after draining
    LEFT = "left"
    LOST = "lost"  # it did not report for longer than a lease
    TROUBLE = "trouble"  # it reported a problem; the detail describes it


class WorkerEvent(msgspec.Struct, frozen=True, kw_only=True):
    """`number` orders events that have the same time."""

    worker_id: str
    kind: WorkerEventKind
    at: Timestamp
    detail: str = ""
    number: int = 0


class Diagnostic(msgspec.Struct, frozen=True):
    """A problem of a worker: loop_blocked, threads_full, gil_held; with a description and the remedy."""

    kind: str
    detail: str


class Registration(msgspec.Struct, frozen=True):
    """`draining`: this process was told to drain before it reconnected. `new_versions`: it serves a version that was
    never served before, or has new data about one."""

    known_before: bool
    draining: bool
    new_versions: bool


Happened: TypeAlias = tuple[WorkerEventKind, str]
"""The kind of an event, and its description."""

EVENT_OF_STATUS = {
    WorkerStatus.ONLINE: WorkerEventKind.RECONNECTED,
    WorkerStatus.DRAINING: WorkerEventKind.DRAINING,
    WorkerStatus.OFFLINE: WorkerEventKind.LEFT,
}
LOST: Happened = (
    WorkerEventKind.LOST,
    "it sent no heartbeat for longer than a lease; other workers take over its runs",
)


def registered(worker: WorkerRecord, *, known_before: bool) -> list[Happened]:
    parts = (
        worker.hostname and f"host {worker.hostname}",
        worker.pid and f"pid {worker.pid}",
        worker.build_id and f"build {worker.build_id}",
        worker.sdk_version and f"SDK {worker.sdk_version}",
    )
    kind = WorkerEventKind.RECONNECTED if known_before else WorkerEventKind.REGISTERED
    return [(kind, ", ".join(part for part in parts if part))]


def left(before: WorkerStatus, handed_back: int) -> list[Happened]:
    """Empty if it had left before."""
    if before is WorkerStatus.OFFLINE:
        return []
    runs = f"{handed_back} {'run was' if handed_back == 1 else 'runs were'} handed back" if handed_back else ""
    events = [(WorkerEventKind.LEFT, runs)]
    return [(WorkerEventKind.DRAINED, ""), *events] if before is WorkerStatus.DRAINING else events


def troubled(diagnostics: Iterable[Diagnostic]) -> list[Happened]:
    return [(WorkerEventKind.TROUBLE, f"{trouble.kind}: {trouble.detail}") for trouble in diagnostics]


def with_liveness(worker: WorkerRecord, alive_since: Timestamp) -> WorkerRecord:
    """The worker as OFFLINE if it has not reported since then."""
    if worker.last_heartbeat_at >= alive_since or worker.status is WorkerStatus.OFFLINE:
        return worker
    return msgspec.structs.replace(worker, status=WorkerStatus.OFFLINE, active_count=0)

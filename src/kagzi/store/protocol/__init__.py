"""The whole storage contract. Each verb is atomic; hot verbs take a batch and return results in order.

Rules for every verb:
- A verb that changes runs returns its outcome and its effects (core/effects.py), or only effects if it has no outcome.
- `now` comes from the caller; no verb reads a clock (except `poll`, which reports the store's own).
- Durable when it returns. A cancelled or failed call may or may not have taken effect: every verb can be repeated.
- Run rows are locked in the order of their ids, steps only after their run.
- Namespaces see nothing of each other: a run id of another namespace is RunNotFound / None.
- An administrative verb takes an `audit` entry, which its transaction writes if it changes something. None: no entry.
- A lost connection raises `errors.Unavailable`; no exception of a driver leaves the store.
"""

from typing import Protocol

from ...core.workflow_types.type_key import TypeKey
from .audit import AuditVerbs
from .bulk import BulkVerbs
from .bus import POLL_AGAIN, Bus, EndedRun, NullBus, RemoteNotice, Wake
from .counts import CountVerbs
from .events import EventVerbs
from .gauges import GaugeVerbs, OpenRunsGauge, QueueGauge, RunType, WorkersGauge
from .hot import (
    Claimed,
    ExpiredLease,
    Fired,
    Heartbeat,
    HotVerbs,
    LeaseTerms,
    Overdue,
    PendingWork,
    Renewal,
    Want,
)
from .keys import KeyVerbs
from .namespaces import NamespaceVerbs
from .queues import QueueVerbs
from .retention import RetentionVerbs
from .runs import Fork, RequestVerb, RunVerbs, SignalCheck, Signalled, SignalReplaced, fits_any_run
from .schedules import DueSchedules, ScheduleVerbs
from .schema import Migrator, SchemaStatus
from .stats import StatsVerbs
from .step_logs import StepLogVerbs
from .transfers import TransferVerbs
from .versions import VersionVerbs
from .workers import WorkerVerbs

__all__ = [
    "POLL_AGAIN",
    "Bus",
    "Claimed",
    "DueSchedules",
    "EndedRun",
    "ExpiredLease",
    "Fired",
    "Fork",
    "Heartbeat",
    "LeaseTerms",
    "Migrator",
    "NullBus",
    "OpenRunsGauge",
    "Overdue",
    "PendingWork",
    "QueueGauge",
    "RemoteNotice",
    "Renewal",
    "RequestVerb",
    "RunType",
    "SchemaStatus",
    "SignalCheck",
    "SignalReplaced",
    "Signalled",
    "Store",
    "TypeKey",
    "Wake",
    "Want",
    "WorkersGauge",
    "fits_any_run",
]


class Store(
    HotVerbs,
    RunVerbs,
    WorkerVerbs,
    NamespaceVerbs,
    ScheduleVerbs,
    QueueVerbs,
    VersionVerbs,
    BulkVerbs,
    RetentionVerbs,
    TransferVerbs,
    StatsVerbs,
    StepLogVerbs,
    CountVerbs,
    EventVerbs,
    KeyVerbs,
    AuditVerbs,
    GaugeVerbs,
    Protocol,
):
    """Implemented for PostgreSQL and SQLite; one conformance suite checks that both behave alike."""

    name: str
    """"postgresql" or "sqlite"."""

    start_batches: int
    """How many batches of starts one client should have in flight: two if another process writes them, so that the next
    is prepared meanwhile; one if this process does, where two transactions cost more than they gain."""

    @property
    def statements(self) -> int:
        """SQL statements (round trips) issued so far, for tests and metrics."""
        ...

    @property
    def transactions(self) -> int:
        """Commits so far."""
        ...

    async def open(self) -> None:
        """Connect and check the schema version. Raises SchemaMismatch if it is not exactly the expected one."""
        ...

    async def close(self) -> None: ...

"""The whole storage contract. Each verb is one atomic act of the domain; hot verbs take a batch and answer in order.

Rules that hold for every verb:
- A verb that changes runs returns its outcome and its effects (core/effects.py); one without outcome only effects.
- `now` comes from the caller; no verb reads a clock (except `poll`, which reports the store's own).
- Durable when it returns. A cancelled or failed call may or may not have taken effect: every verb can be repeated.
- Run rows are locked in the order of their ids, steps only after their run.
- Namespaces see nothing of each other: a foreign run id is RunNotFound / None.
- An administrative verb takes the `audit` entry that its transaction writes if it changes something; None: no entry.
- Connection loss raises `errors.Unavailable`; nothing driver-specific leaves the store.
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
    """PostgreSQL and SQLite keep it alike; one conformance suite says whether they do."""

    name: str
    """"postgresql" or "sqlite"."""

    start_batches: int
    """How many batches of starts one client should have under way: two where processes of their own write, so that one
    is prepared meanwhile; one where this process writes itself, and two transactions cost more than they gain."""

    @property
    def statements(self) -> int:
        """SQL statements (round trips) issued so far. For tests and metrics."""
        ...

    @property
    def transactions(self) -> int:
        """Commits so far."""
        ...

    async def open(self) -> None:
        """Connect and check the schema version. Raises SchemaMismatch if it is not exactly the one this code knows."""
        ...

    async def close(self) -> None: ...

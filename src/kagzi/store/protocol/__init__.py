"""The whole storage contract. Each verb is one atomic act of the domain; hot verbs take a batch and answer in order.

Rules that hold for every verb:
- A verb that changes runs returns its outcome and its effects (core/effects.py); one without outcome only effects.
- `now` comes from the caller; no verb reads a clock (except `poll`, which reports the store's own).
- Durable when it returns. A cancelled or failed call may or may not have taken effect: every verb can be repeated.
- Run rows are locked in the order of their ids, steps only after their run.
- Namespaces see nothing of each other: a foreign run id is RunNotFound / None.
- Connection loss raises `errors.Unavailable`; nothing driver-specific leaves the store.
"""

from typing import Protocol

from ...core.workflow_types.type_key import TypeKey
from .bulk import BulkVerbs
from .bus import POLL_AGAIN, Bus, EndedRun, NullBus, RemoteNotice, Wake
from .counts import CountVerbs
from .events import EventVerbs
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
from .namespaces import NamespaceVerbs
from .queues import QueueVerbs
from .retention import RetentionVerbs
from .runs import Fork, RunVerbs, Signalled, SignalReplaced
from .schedules import DueSchedules, ScheduleVerbs
from .schema import Migrator, SchemaStatus
from .stats import StatsVerbs
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
    "Overdue",
    "PendingWork",
    "RemoteNotice",
    "Renewal",
    "SchemaStatus",
    "SignalReplaced",
    "Signalled",
    "Store",
    "TypeKey",
    "Wake",
    "Want",
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
    CountVerbs,
    EventVerbs,
    Protocol,
):
    """PostgreSQL and SQLite keep it alike; one conformance suite says whether they do."""

    name: str
    """"postgresql" or "sqlite"."""

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

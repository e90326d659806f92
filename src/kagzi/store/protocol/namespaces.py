"""Namespaces: the tenants whose runs are executed."""

from collections.abc import Collection
from typing import Protocol

import msgspec

from ...core.keys.audit import AuditEntry
from ...core.pages.cursor import Cursor
from ...core.records import NamespaceRecord, Rows
from ...core.times import Timestamp


class Deletion(msgspec.Struct, frozen=True):
    """Granted if nothing is open in the namespace; otherwise what is, with counts up to a cap."""

    granted: bool
    open_runs: int = 0
    schedules: int = 0


class NamespaceChores(msgspec.Struct, frozen=True):
    """A namespace to remove, and one to measure; empty: none."""

    purge: str = ""
    measure: str = ""


class Measured(msgspec.Struct, frozen=True):
    """The bytes of some runs. `after`: where to continue; None: these were the last."""

    stored_bytes: int
    after: Cursor | None


class NamespaceVerbs(Protocol):
    """Namespaces, with their limits."""

    async def get_namespace(self, namespace: str) -> NamespaceRecord | None: ...

    async def list_namespaces(self, cursor: Cursor | None, limit: int) -> Rows[NamespaceRecord]:
        """Sorted by name. A "prev" cursor reads backwards; its rows are sorted by name, too."""
        ...

    async def put_namespace(
        self, record: NamespaceRecord, now: Timestamp, *, new: bool = False, audit: AuditEntry | None = None
    ) -> bool:
        """Insert or, unless `new`, replace a namespace with its limits and retention. False: it exists already."""
        ...

    async def update_namespace(
        self, record: NamespaceRecord, fields: Collection[str], *, audit: AuditEntry | None = None
    ) -> NamespaceRecord | None:
        """Set these fields from the record and leave the others. None: no such namespace, or it is being deleted."""
        ...

    async def delete_namespace(
        self, namespace: str, now: Timestamp, cap: int, *, audit: AuditEntry | None = None
    ) -> Deletion | None:
        """Mark the namespace for removal, after which it accepts nothing new, unless it has open runs or enabled
        schedules. None: no such namespace."""
        ...

    async def namespace_chores(self, now: Timestamp, measured_until: Timestamp) -> NamespaceChores:
        """Which namespaces need work. The one to measure is given to no other caller until `measured_until`."""
        ...

    async def purge_namespace(self, namespace: str, limit: int) -> bool:
        """Delete up to `limit` rows of a deleted namespace, and the namespace itself once none are left. Returns
        whether there is more to delete. Deletes nothing while the namespace has runs."""
        ...

    async def measure_runs(self, namespace: str, after: Cursor | None, limit: int) -> Measured:
        """The bytes of payloads and errors that some runs store, oldest runs first."""
        ...

    async def note_stored_bytes(self, namespace: str, stored_bytes: int, now: Timestamp) -> None:
        """Record what all runs of a namespace store: starts are refused while it is above the limit."""
        ...

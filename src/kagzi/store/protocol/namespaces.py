"""For whom runs are executed."""

from collections.abc import Collection
from typing import Protocol

import msgspec

from ...core.keys.audit import AuditEntry
from ...core.pages.cursor import Cursor
from ...core.records import NamespaceRecord, Rows
from ...core.times import Timestamp


class Deletion(msgspec.Struct, frozen=True):
    """Granted if nothing is open in the namespace; otherwise what is, counted no further than a cap."""

    granted: bool
    open_runs: int = 0
    schedules: int = 0


class NamespaceChores(msgspec.Struct, frozen=True):
    """A namespace to be removed, and one to be measured; empty: none."""

    purge: str = ""
    measure: str = ""


class Measured(msgspec.Struct, frozen=True):
    """The bytes of some runs. `after`: where to go on; None: that was the last."""

    stored_bytes: int
    after: Cursor | None


class NamespaceVerbs(Protocol):
    """Tenants, with their limits."""

    async def get_namespace(self, namespace: str) -> NamespaceRecord | None: ...

    async def list_namespaces(self, cursor: Cursor | None, limit: int) -> Rows[NamespaceRecord]:
        """By name. A "prev" cursor reads towards the beginning; its rows come by name, too."""
        ...

    async def put_namespace(
        self, record: NamespaceRecord, now: Timestamp, *, new: bool = False, audit: AuditEntry | None = None
    ) -> bool:
        """Insert or, unless it is to be `new`, replace: limits, retention and all. False: it was there."""
        ...

    async def update_namespace(
        self, record: NamespaceRecord, fields: Collection[str], *, audit: AuditEntry | None = None
    ) -> NamespaceRecord | None:
        """Take these fields of the record; the others stay as they are. None: there is none, or it is being deleted."""
        ...

    async def delete_namespace(
        self, namespace: str, now: Timestamp, cap: int, *, audit: AuditEntry | None = None
    ) -> Deletion | None:
        """From now on it takes nothing new, and is to be removed; unless runs are open in it, or schedules are enabled.
        None: there is none."""
        ...

    async def namespace_chores(self, now: Timestamp, measured_until: Timestamp) -> NamespaceChores:
        """What is to be done for namespaces. Who is told to measure one is the only one until `measured_until`."""
        ...

    async def purge_namespace(self, namespace: str, limit: int) -> bool:
        """Remove up to `limit` rows of a deleted namespace whose runs are gone, and when there are none the namespace
        itself. Returns whether there is more to be removed. While there are runs nothing is."""
        ...

    async def measure_runs(self, namespace: str, after: Cursor | None, limit: int) -> Measured:
        """How many bytes of payloads and errors some runs keep, the oldest first."""
        ...

    async def note_stored_bytes(self, namespace: str, stored_bytes: int, now: Timestamp) -> None:
        """What all the runs of a namespace keep: starts are refused while it is above the limit."""
        ...

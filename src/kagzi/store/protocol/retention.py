"""Deletes runs that have ended."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from ...core.records import NamespaceRecord
from ...core.states import RunStatus
from ...core.times import Timestamp

LONG_HISTORY_SEQ = 4_000
"""A longer history is deleted in parts after the run itself, so that no transaction takes long."""


class Purged(msgspec.Struct, frozen=True):
    """`reached`: nothing older is left to delete, except locked runs."""

    runs: int
    reached: Timestamp
    more: bool


class RetentionVerbs(Protocol):
    """Deletes in small batches; open runs are never touched."""

    async def purge_runs(
        self, namespace: str, statuses: Sequence[RunStatus], *, after: Timestamp, until: Timestamp, limit: int
    ) -> Purged:
        """Delete up to `limit` runs that ended with one of these statuses from `after` to `until` (both inclusive),
        oldest first, with their steps, attempts, labels, signals and links. Locked runs, and runs with children still
        to be cancelled, are kept."""
        ...

    async def delete_runs(self, namespace: str, run_ids: Sequence[str], *, until: Timestamp) -> Sequence[str]:
        """Delete those of these runs that ended by `until`, in one transaction. Returns the deleted ones."""
        ...

    async def purge_leftovers(self, limit: int) -> bool:
        """Delete up to `limit` rows of histories too long to go with their runs. Returns whether there may be more."""
        ...

    async def namespaces_after(self, namespace: str, limit: int) -> Sequence[NamespaceRecord]:
        """Namespaces after this one, by name."""
        ...

    async def claim_chore(self, name: str, now: Timestamp, until: Timestamp) -> bool:
        """Reserve a chore until `until`. False: another server has reserved it."""
        ...

"""Forgetting what has ended."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from ...core.records import NamespaceRecord
from ...core.states import RunStatus
from ...core.times import Timestamp

LONG_HISTORY_SEQ = 4_000
"""Beyond this a run's history goes bit by bit after the run itself, so that no transaction takes long."""


class Purged(msgspec.Struct, frozen=True):
    """`reached`: nothing older is left to delete, except what was locked."""

    runs: int
    reached: Timestamp
    more: bool


class RetentionVerbs(Protocol):
    """Small batches; live runs are never touched."""

    async def purge_runs(
        self, namespace: str, statuses: Sequence[RunStatus], *, after: Timestamp, until: Timestamp, limit: int
    ) -> Purged:
        """Delete up to `limit` runs that ended in one of these ways, from `after` to `until` (both inclusive), oldest
        first, with their steps, attempts, labels, signals and links. Runs with children still to be cancelled, and
        locked ones, stay."""
        ...

    async def delete_runs(self, namespace: str, run_ids: Sequence[str], *, until: Timestamp) -> Sequence[str]:
        """Delete those of these runs that have ended by `until`, in one transaction; returns which. The others stay."""
        ...

    async def purge_leftovers(self, limit: int) -> bool:
        """Delete up to `limit` rows of histories too long to go with their runs. Returns whether more may be left."""
        ...

    async def namespaces_after(self, namespace: str, limit: int) -> Sequence[NamespaceRecord]:
        """Namespaces by name, those that come after this one."""
        ...

    async def claim_chore(self, name: str, now: Timestamp, until: Timestamp) -> bool:
        """Whether nobody else does it now. Until `until` nobody else will."""
        ...

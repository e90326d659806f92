"""Versions of workflow types."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from ...core.effects import Effects
from ...core.keys.audit import AuditEntry
from ...core.pages.cursor import Cursor
from ...core.records import Rows
from ...core.times import Timestamp
from ...core.workflow_types.schemas import TypeSchemas
from ...core.workflow_types.versions import BuildReplay, VersionChange, VersionMark, VersionRecord


class VersionVerbs(Protocol):
    """Which versions exist, which is the default, which take no new runs. Registering workers add them."""

    async def versions_of(self, namespace: str, workflow_types: Sequence[str]) -> Sequence[VersionMark]:
        """All known versions of these types, newest first by first_seen_at; at most limits.VERSIONS of each."""
        ...

    async def get_schemas(self, namespace: str, digests: Sequence[str]) -> Mapping[str, TypeSchemas]:
        """Those of these schemas that are known, by digest."""
        ...

    async def change_version(
        self,
        namespace: str,
        workflow_type: str,
        version: str,
        change: VersionChange,
        *,
        audit: AuditEntry | None = None,
    ) -> Sequence[VersionMark]:
        """Atomic. Returns the versions of the type after the change. Raises what core.versions.check_change raises."""
        ...

    async def wake_for_new_builds(
        self, alive_since: Timestamp, now: Timestamp, limit: int
    ) -> tuple[BuildReplay | None, Effects]:
        """If all workers of a version have another build than before, its runs that wait for a signal are woken once,
        to be replayed by that build: looks at the next `limit` sleeping runs of one such version, and makes those
        PENDING. Workers count while they are online and reported since `alive_since`. None: there is nothing to do."""
        ...

    async def list_versions(
        self,
        namespace: str,
        *,
        workflow_type: str | None,
        version: str | None,
        alive_since: Timestamp,
        cursor: Cursor | None,
        limit: int,
        count_cap: int,
    ) -> Rows[VersionRecord]:
        """Newest first by first_seen_at. Open runs are counted among the `count_cap` oldest of the namespace; workers
        count if they reported since `alive_since` and have not left. A cursor's id is JSON of type and version."""
        ...

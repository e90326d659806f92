"""Versions of workflow types."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from ...core.keys.audit import AuditEntry
from ...core.pages.cursor import Cursor
from ...core.records import Rows
from ...core.times import Timestamp
from ...core.workflow_types.schemas import TypeSchemas
from ...core.workflow_types.versions import VersionChange, VersionMark, VersionRecord


class VersionVerbs(Protocol):
    """Which versions there are, which is the default, which take no new runs. Workers note them by registering."""

    async def versions_of(self, namespace: str, workflow_types: Sequence[str]) -> Sequence[VersionMark]:
        """All that are known of these types, the latest first seen first; at most limits.VERSIONS of each."""
        ...

    async def get_schemas(self, namespace: str, digests: Sequence[str]) -> Mapping[str, TypeSchemas]:
        """By digest, those of these that are known."""
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
        """Atomic. Returns what is known of the type after it. Raises what core.versions.check_change raises."""
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
        """Latest first seen first. Open runs are counted among the `count_cap` oldest of the namespace; workers are
        those that were heard of since `alive_since` and have not left. A cursor's id is JSON of type and version."""
        ...

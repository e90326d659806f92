"""Workflow types as queues: paused or limited, and how many runs wait."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from ...core.keys.audit import AuditEntry
from ...core.pages.cursor import Cursor
from ...core.records import Rows
from ...core.times import Timestamp
from ...core.workflow_types.queues import Pressure, QueueDepth, TypeLimits, WorkflowTypeRecord


class QueueVerbs(Protocol):
    """An operator's settings for a type, and the depth of its queue."""

    async def get_type_limits(self, namespace: str, workflow_type: str) -> TypeLimits | None:
        """None: nothing is set for this type."""
        ...

    async def put_type_limits(
        self,
        namespace: str,
        workflow_type: str,
        limits: TypeLimits,
        now: Timestamp,
        *,
        audit: AuditEntry | None = None,
    ) -> None:
        """Insert or replace. Claims in progress may still use the old limits; none does once this has returned."""
        ...

    async def list_workflow_types(
        self, namespace: str, cursor: Cursor | None, limit: int, *, workflow_type: str = ""
    ) -> Rows[WorkflowTypeRecord]:
        """Types that have settings, and types that workers have registered, by name. The cursor's id is the name; its
        time is not used. Versions and open runs are not filled in."""
        ...

    async def open_runs_by_type(self, namespace: str, cap: int) -> Mapping[str, int]:
        """The number of open runs by type, among the `cap` oldest open runs. Types without any are left out."""
        ...

    async def queue_depths(self, namespace: str, workflow_type: str, *, cap: int) -> Sequence[QueueDepth]:
        """Pending runs by pinned version, of one type or of all types that have some (at most 1,000)."""
        ...

    async def type_pressure(self, namespace: str, workflow_type: str, key: str) -> Pressure | None:
        """How far the limits of a type, and of one of its keys, are used. None: it has no limits."""
        ...

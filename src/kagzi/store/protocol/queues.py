"""Workflow types as queues: paused, limited, and how much waits in them."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from ...core.keys.audit import AuditEntry
from ...core.pages.cursor import Cursor
from ...core.records import Rows
from ...core.times import Timestamp
from ...core.workflow_types.queues import Pressure, QueueDepth, TypeLimits, WorkflowTypeRecord


class QueueVerbs(Protocol):
    """What an operator says about a type, and how deep its queue is."""

    async def get_type_limits(self, namespace: str, workflow_type: str) -> TypeLimits | None:
        """None: nobody has said anything about it."""
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
        """Insert or replace. Claims that began before may still count by the old ones; none does after it returned."""
        ...

    async def list_workflow_types(
        self, namespace: str, cursor: Cursor | None, limit: int, *, workflow_type: str = ""
    ) -> Rows[WorkflowTypeRecord]:
        """By name: those somebody has said something about, and those that workers have registered. The cursor's id is
        the name; its time means nothing. Without versions and open runs."""
        ...

    async def open_runs_by_type(self, namespace: str, cap: int) -> Mapping[str, int]:
        """How many of the `cap` oldest open runs are of each type that has some."""
        ...

    async def queue_depths(self, namespace: str, workflow_type: str, *, cap: int) -> Sequence[QueueDepth]:
        """Of one type, or of all with pending runs (at most 1,000), by the version they are pinned to."""
        ...

    async def type_pressure(self, namespace: str, workflow_type: str, key: str) -> Pressure | None:
        """How far the limits of a type are used, and those of a key of it. None: it has none."""
        ...

"""Queues: runs that wait for a worker."""

from ....core.workflow_types.queues import QueueStanding
from ..route import Input
from .common import Moment, View, moment


class QueueQuery(Input, frozen=True, kw_only=True):
    """`workflow`: only this type."""

    workflow: str | None = None


class QueueView(View, frozen=True, kw_only=True):
    """Runs of a type that wait for a worker. `version` null: not pinned. `limit_reason`: why none begins although slots
    are free; null: no limit applies."""

    workflow: str
    version: str | None
    waiting: int
    oldest_waiting_since: Moment | None
    workers: int
    free_slots: int
    limit_reason: str | None


def queue_view(standing: QueueStanding) -> QueueView:
    depth = standing.depth
    return QueueView(
        workflow=depth.workflow_type,
        version=depth.version or None,
        waiting=depth.waiting,
        oldest_waiting_since=moment(depth.oldest_since),
        workers=standing.workers,
        free_slots=standing.free_slots,
        limit_reason=standing.limit_reason or None,
    )

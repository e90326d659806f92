"""Bulk operations: their views and requests, with the names of `kagzi bulk --json`."""

from collections.abc import Mapping

from ....core.bulk import BulkAction, BulkOperation
from ....core.records import NO_LABELS, RunFilter
from ....core.states import RunStatus
from ..route import Input
from .common import Moment, View, moment
from .runs import FilterIn, RunView, filter_of


class OperationFilterIn(FilterIn, frozen=True, kw_only=True):
    """Selects runs. Without a status: those that the action applies to."""

    labels: Mapping[str, str] = NO_LABELS

    @property
    def where(self) -> RunFilter:
        return filter_of(self, self.labels)


class OperationIn(Input, frozen=True, kw_only=True):
    """An action on all runs that match. Send it first with `dry_run`, which changes nothing and returns a
    `filter_digest`; then with that digest, so that the operation affects what was shown."""

    action: BulkAction
    filter: OperationFilterIn
    reason: str = ""
    dry_run: bool = False
    filter_digest: str = ""


class FilterView(View, frozen=True, kw_only=True):
    """The filter of an operation; it always has a status, unless any matches."""

    status: tuple[RunStatus, ...]
    workflow: tuple[str, ...]
    labels: Mapping[str, str]
    since: Moment | None
    until: Moment | None
    id: str | None
    version: str | None
    parent: str | None
    schedule: str | None
    key: str | None
    worker: str | None
    problem: bool | None
    failing: bool | None
    waiting: bool | None
    ended_since: Moment | None
    ended_until: Moment | None
    id_prefix: str | None
    run: tuple[str, ...]


def filter_view(where: RunFilter) -> FilterView:
    return FilterView(
        status=where.statuses,
        workflow=where.workflow_types,
        labels=where.labels,
        since=moment(where.created_after),
        until=moment(where.created_before),
        id=where.workflow_id or None,
        version=where.version or None,
        parent=where.parent_run_id or None,
        schedule=where.schedule_id or None,
        key=where.concurrency_key or None,
        worker=where.worker_id or None,
        problem=where.has_problem,
        failing=where.failing,
        waiting=where.waiting,
        ended_since=moment(where.ended_after),
        ended_until=moment(where.ended_before),
        id_prefix=where.id_prefix or None,
        run=where.run_ids,
    )


class OperationView(View, frozen=True, kw_only=True):
    """`matched` is `done` plus `failed` so far and, once it has finished, the total."""

    operation_id: str
    action: BulkAction
    filter: FilterView
    matched: int
    done: int
    failed: int
    finished: bool
    stopped: bool
    last_error: str | None
    reason: str | None
    created_at: Moment
    finished_at: Moment | None


def operation_view(operation: BulkOperation) -> OperationView:
    return OperationView(
        operation_id=operation.operation_id,
        action=operation.action,
        filter=filter_view(operation.where),
        matched=operation.matched,
        done=operation.done,
        failed=operation.failed,
        finished=operation.finished_at is not None,
        stopped=operation.stopped,
        last_error=operation.last_error or None,
        reason=operation.reason or None,
        created_at=moment(operation.created_at) or "",
        finished_at=moment(operation.finished_at),
    )


class PreviewView(View, frozen=True, kw_only=True):
    """The runs that an operation would affect. `capped`: there are more. `samples`: the newest of them."""

    action: BulkAction
    filter: FilterView
    count: int
    capped: bool
    samples: tuple[RunView, ...]
    filter_digest: str

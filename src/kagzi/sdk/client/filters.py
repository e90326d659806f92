"""The keywords of `client.list`, `client.count` and `client.bulk` that select runs, as a filter."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, TypedDict, Unpack, cast

from ...core.checks.attributes import checked_labels
from ...core.duration import Duration, parse_duration
from ...core.errors import InvalidArgument
from ...core.records import RunFilter, RunOrder
from ...core.states import RunStatus
from ...core.times import Timestamp, from_datetime, us_from_timedelta
from ...v1 import workflow_pb2 as pb
from ...wire.requests import RUN_ORDER_TO_WIRE, write_filter
from ..workflow.workflow import Workflow
from .run import Run


class Matching(TypedDict, total=False):
    """The conditions that select runs. A run must match all that are given."""

    status: (
        RunStatus | str | Iterable[RunStatus | str]
    )  #: one state or several: "failed", RunStatus.FAILED, ["failed", "paused"]
    workflow: Workflow[Any, Any] | str | Iterable[Workflow[Any, Any] | str]  #: one or several, or their names
    labels: Mapping[str, str] | None  #: labels that a run must have, all of them
    since: datetime | Duration | None  #: created at or after this time, or this long ago ("2h")
    until: datetime | Duration | None  #: created before this time, or this long ago
    id: str | None  #: runs with this workflow_id
    parent: Run[Any] | str | None  #: the run whose children are selected, or its run id
    version: int | str | None  #: runs pinned to this version of their workflow
    schedule: str | None  #: the id of the schedule that started them
    concurrency_key: str | None  #: runs that were started with this key
    worker: str | None  #: the id of the worker that holds them now
    problem: bool | None  #: True: only runs that Kagzi paused because of a problem; False: all others
    failing: bool | None  #: True: only runs with a step that is being retried, or with a problem; False: all others
    waiting: bool | None  #: True: only runs with a step that waits for a signal; False: all others
    ended_since: datetime | Duration | None  #: ended at or after this time, or this long ago ("24h")
    ended_until: datetime | Duration | None  #: ended before this time, or this long ago
    id_prefix: str | None  #: the start of the run id or workflow id; returns at most 1,000 runs


def run_filter(now: Timestamp, **matching: Unpack[Matching]) -> RunFilter:
    """The filter for the keywords of `Matching`. Raises InvalidArgument."""
    check_keywords(matching, Matching)
    parent, version = matching.get("parent"), matching.get("version")
    return RunFilter(
        statuses=_statuses(matching.get("status", ())),
        workflow_types=_types(matching.get("workflow", ())),
        labels=checked_labels(matching.get("labels")),
        created_after=moment(matching.get("since"), now, "since"),
        created_before=moment(matching.get("until"), now, "until"),
        workflow_id=matching.get("id") or "",
        parent_run_id=parent.id if isinstance(parent, Run) else parent or "",
        version="" if version is None else str(version),
        schedule_id=matching.get("schedule") or "",
        concurrency_key=matching.get("concurrency_key") or "",
        worker_id=matching.get("worker") or "",
        has_problem=matching.get("problem"),
        failing=matching.get("failing"),
        waiting=matching.get("waiting"),
        ended_after=moment(matching.get("ended_since"), now, "ended_since"),
        ended_before=moment(matching.get("ended_until"), now, "ended_until"),
        id_prefix=matching.get("id_prefix") or "",
    )


def list_request(
    namespace: str, now: Timestamp, order: RunOrder | None, /, **matching: Unpack[Matching]
) -> pb.ListWorkflowsRequest:
    """Raises InvalidArgument."""
    if order not in (None, *RUN_ORDER_TO_WIRE):
        raise InvalidArgument(f'order={order!r} must be "created" or "ended".', field="order")
    request = pb.ListWorkflowsRequest(namespace_id=namespace, filter=write_filter(run_filter(now, **matching)))
    if order is not None:
        request.order = RUN_ORDER_TO_WIRE[order]
    return request


def check_keywords(keywords: Mapping[str, object], known: type[Any]) -> None:
    """Raises TypeError, as Python does, for a keyword that the TypedDict does not have."""
    for name in keywords.keys() - known.__annotations__.keys():
        hint = ". Use client.in_namespace(...)" if name == "namespace" else ""
        raise TypeError(f"got an unexpected keyword argument {name!r}{hint}")


def _statuses(status: object) -> tuple[RunStatus, ...]:
    try:
        if isinstance(status, str) or not isinstance(status, Iterable):
            return (RunStatus(str(status)),)
        return tuple(RunStatus(str(each)) for each in cast("Iterable[object]", status))
    except ValueError as error:
        known = ", ".join(each.value for each in RunStatus)
        raise InvalidArgument(f"status: {error}. Known are: {known}.", field="status") from None


def _types(workflow: "Workflow[Any, Any] | str | Iterable[Workflow[Any, Any] | str]") -> tuple[str, ...]:
    workflows = (workflow,) if isinstance(workflow, (str, Workflow)) else workflow
    return tuple(each if isinstance(each, str) else each.name for each in workflows)


def moment(at: "datetime | Duration | None", now: Timestamp, what: str) -> Timestamp | None:
    """The point in time, given as such or as how long ago it was."""
    if at is None:
        return None
    if isinstance(at, (str, timedelta)):
        return now - us_from_timedelta(parse_duration(at, what=what))
    if not isinstance(at, datetime):  # pyright: ignore[reportUnnecessaryIsInstance]  callers are users
        raise InvalidArgument(
            f'{what}={at!r} is neither a duration nor a datetime. Write "2h", or datetime(..., tzinfo=UTC).', field=what
        )
    return from_datetime(at, what=what)

"""Which runs are meant: what `client.list` and `client.count` take, as a filter."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, cast

from ...core.duration import Duration, parse_duration
from ...core.errors import InvalidArgument
from ...core.records import RunFilter
from ...core.states import RunStatus
from ...core.times import Timestamp, from_datetime, us_from_timedelta
from ..workflow.workflow import Workflow
from .run import Run
from .start import checked_labels


def run_filter(
    *,
    now: Timestamp,
    status: RunStatus | str | Iterable[RunStatus | str],
    workflow: Workflow[Any, Any] | str | Iterable[Workflow[Any, Any] | str],
    labels: Mapping[str, str] | None,
    since: datetime | Duration | None,
    until: datetime | Duration | None,
    parent: Run[Any] | str | None,
    version: int | str | None = None,
    schedule: str | None = None,
    concurrency_key: str | None = None,
    problem: bool | None = None,
) -> RunFilter:
    """Raises InvalidArgument."""
    return RunFilter(
        statuses=_statuses(status),
        workflow_types=_types(workflow),
        labels=checked_labels(labels),
        created_after=moment(since, now, "since"),
        created_before=moment(until, now, "until"),
        parent_run_id=parent.id if isinstance(parent, Run) else parent or "",
        version="" if version is None else str(version),
        schedule_id=schedule or "",
        concurrency_key=concurrency_key or "",
        has_problem=problem,
    )


def _statuses(status: object) -> tuple[RunStatus, ...]:
    try:
        if isinstance(status, str) or not isinstance(status, Iterable):
            return (RunStatus(str(status)),)
        return tuple(RunStatus(str(each)) for each in cast("Iterable[object]", status))
    except ValueError as error:
        known = ", ".join(each.value for each in RunStatus)
        raise InvalidArgument(f"status: {error}. Known are: {known}.", field="status") from None


def _types(workflow: "Workflow[Any, Any] | str | Iterable[Workflow[Any, Any] | str]") -> tuple[str, ...]:
    given = (workflow,) if isinstance(workflow, (str, Workflow)) else workflow
    return tuple(each if isinstance(each, str) else each.name for each in given)


def moment(said: "datetime | Duration | None", now: Timestamp, what: str) -> Timestamp | None:
    """A moment, or how long ago."""
    if said is None:
        return None
    if isinstance(said, (str, timedelta)):
        return now - us_from_timedelta(parse_duration(said, what=what))
    return from_datetime(said, what=what)

"""Which runs are meant: the keywords of `client.list`, `client.count` and `client.bulk`, as a filter."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, TypedDict, Unpack, cast

from ...core.duration import Duration, parse_duration
from ...core.errors import InvalidArgument
from ...core.records import RunFilter
from ...core.states import RunStatus
from ...core.times import Timestamp, from_datetime, us_from_timedelta
from ..workflow.workflow import Workflow
from .run import Run
from .start import checked_labels


class Matching(TypedDict, total=False):
    """Which runs are meant. Those that match everything given."""

    status: (
        RunStatus | str | Iterable[RunStatus | str]
    )  #: one state or several: "failed", RunStatus.FAILED, ["failed", "paused"]
    workflow: Workflow[Any, Any] | str | Iterable[Workflow[Any, Any] | str]  #: one workflow or several, or their names
    labels: Mapping[str, str] | None  #: labels that a run must all have
    since: datetime | Duration | None  #: created at or after this moment, or this long ago ("2h")
    until: datetime | Duration | None  #: created before this moment, or this long ago
    id: str | None  #: runs with this workflow_id
    parent: Run[Any] | str | None  #: a run, or its run id, whose children are meant
    version: int | str | None  #: runs pinned to this version of their workflow
    schedule: str | None  #: the id of the schedule that started them
    concurrency_key: str | None  #: runs that were started with this key
    problem: bool | None  #: True: only runs that the engine has paused because of a problem; False: all others


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
        has_problem=matching.get("problem"),
    )


def check_keywords(keywords: Mapping[str, object], known: type[Any]) -> None:
    """Raises TypeError, as Python does, for a keyword that is not in a TypedDict."""
    for name in keywords.keys() - known.__annotations__.keys():
        raise TypeError(f"got an unexpected keyword argument {name!r}")


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
    """A moment, or how long ago."""
    if at is None:
        return None
    if isinstance(at, (str, timedelta)):
        return now - us_from_timedelta(parse_duration(at, what=what))
    return from_datetime(at, what=what)

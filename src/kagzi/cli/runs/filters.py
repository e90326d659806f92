"""Which runs are meant: the options of `kagzi list`, `kagzi count` and all that is done to many runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

import click

from ...core.states import RunStatus
from ..options import Command, duration, key_value

if TYPE_CHECKING:
    from ...core.times import Timestamp
    from ...v1 import workflow_pb2


def filter_options(command: Command) -> Command:
    """The command gets them as keywords: hand them to `run_filter`."""
    for option in (
        click.option(
            "--problem/--no-problem",
            default=None,
            help="Only runs that Kagzi paused because of a problem, or only the others.",
        ),
        click.option("--concurrency-key", default="", metavar="KEY", help="Only runs with this concurrency key."),
        click.option("--schedule", default="", metavar="ID", help="Only runs that this schedule started."),
        click.option("--version", default="", metavar="VERSION", help="Only runs of this version."),
        click.option("--id", "workflow_id", default="", metavar="WORKFLOW_ID", help="Only runs with this workflow id."),
        click.option("--parent", default="", metavar="RUN_ID", help="Only children of this run; give its whole id."),
        click.option(
            "--until", type=duration, metavar="DURATION", help="Only runs created longer ago than this: 2h, 1 day."
        ),
        click.option(
            "--since", type=duration, metavar="DURATION", help="Only runs created within this time: 2h, 1 day."
        ),
        click.option(
            "--label",
            "labels",
            multiple=True,
            type=key_value,
            metavar="KEY=VALUE",
            help="Only runs with this label. Repeatable; all must match.",
        ),
        click.option(
            "--workflow", "workflows", multiple=True, metavar="NAME", help="Only runs of this workflow. Repeatable."
        ),
        click.option(
            "--status",
            "statuses",
            multiple=True,
            type=click.Choice([str(status) for status in RunStatus]),
            help="Only runs with this status. Repeatable.",
        ),
    ):
        command = option(command)
    return command


def run_filter(
    *,
    statuses: Sequence[str],
    workflows: Sequence[str],
    labels: Sequence[tuple[str, str]],
    since: timedelta | None,
    until: timedelta | None,
    parent: str,
    workflow_id: str,
    version: str,
    schedule: str,
    concurrency_key: str,
    problem: bool | None,
) -> workflow_pb2.WorkflowFilter:
    from ...core.records import RunFilter
    from ...wire.runs import write_filter

    where = RunFilter(
        statuses=tuple(RunStatus(status) for status in statuses),
        workflow_types=tuple(workflows),
        labels=dict(labels),
        created_after=ago(since),
        created_before=ago(until),
        parent_run_id=parent.lower(),
        workflow_id=workflow_id,
        version=version,
        schedule_id=schedule,
        concurrency_key=concurrency_key,
        has_problem=problem,
    )
    return write_filter(where)


def ago(span: timedelta | None) -> Timestamp | None:
    from ...core.times import us_from_timedelta
    from ...system import SystemClock

    return None if span is None else SystemClock().now() - us_from_timedelta(span)

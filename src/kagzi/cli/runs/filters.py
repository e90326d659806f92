"""Options that choose runs: those of `kagzi list`, `kagzi count` and of every command for many runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, cast

import click

from ...core.states import RunStatus
from ..options import Command, duration, key_value

if TYPE_CHECKING:
    from ...sdk.client.filters import Matching


def filter_options(command: Command) -> Command:
    """The command gets them as keywords: hand them to `chosen_runs`."""
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


def chosen_runs(
    *,
    statuses: Sequence[str],
    workflows: Sequence[str],
    labels: Sequence[tuple[str, str]],
    since: timedelta | None,
    until: timedelta | None,
    parent: str,
    workflow_id: str,
    **others: str | bool | None,
) -> Matching:
    """What the client takes; empty if no option was given."""
    options = {
        "status": statuses,
        "workflow": workflows,
        "labels": dict(labels),
        "since": _ago(since),
        "until": _ago(until),
        "parent": parent.lower(),
        "id": workflow_id,
        **others,
    }
    return cast("Matching", {name: value for name, value in options.items() if value or value is False})


def _ago(span: timedelta | None) -> datetime | None:
    from ...core.times import to_datetime
    from ...system import SystemClock

    return None if span is None else to_datetime(SystemClock().now()) - span

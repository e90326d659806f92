"""Options that select runs: those of `kagzi list`, `kagzi count` and of every command for many runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

import click

from ...core.states import RunStatus
from ..options import DURATION, PAIR, options
from ..times import now

if TYPE_CHECKING:
    from ...sdk.client.filters import Matching


filter_options = options(
    click.option(
        "--status",
        multiple=True,
        type=click.Choice([str(status) for status in RunStatus]),
        help="Only runs with this status. Repeatable.",
    ),
    click.option("--workflow", multiple=True, metavar="WORKFLOW", help="Only runs of this workflow. Repeatable."),
    click.option(
        "--label", "labels", multiple=True, type=PAIR, help="Only runs with this label. Repeatable; all must match."
    ),
    click.option("--since", type=DURATION, help="Only runs created within this time: 2h, 1 day."),
    click.option("--until", type=DURATION, help="Only runs created longer ago than this: 2h, 1 day."),
    click.option("--parent", default="", metavar="RUN_ID", help="Only children of this run; give its whole id."),
    click.option("--id", default="", metavar="WORKFLOW_ID", help="Only runs with this workflow id."),
    click.option("--version", default="", metavar="VERSION", help="Only runs of this version."),
    click.option("--schedule", default="", metavar="ID", help="Only runs that this schedule started."),
    click.option("--concurrency-key", default="", metavar="KEY", help="Only runs with this concurrency key."),
    click.option(
        "--problem/--no-problem",
        default=None,
        help="Only runs that Kagzi paused because of a problem, or only the others.",
    ),
)
"""The command gets them as keywords: hand them to `chosen_runs`."""


def chosen_runs(
    *, labels: Sequence[tuple[str, str]], since: timedelta | None, until: timedelta | None, parent: str, **others: Any
) -> Matching:
    """The keywords of the client's filters; empty if no option was given."""
    chosen = {"labels": dict(labels), "since": _ago(since), "until": _ago(until), "parent": parent.lower(), **others}
    return cast("Matching", {name: value for name, value in chosen.items() if value or value is False})


def _ago(span: timedelta | None) -> datetime | None:
    return None if span is None else now() - span

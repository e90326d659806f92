"""Options that select runs, for `kagzi list`, `kagzi count` and every command on many runs."""

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
    click.option("--ended-since", type=DURATION, help="Only runs that ended within this time: 24h."),
    click.option("--ended-until", type=DURATION, help="Only runs that ended longer ago than this: 24h."),
    click.option("--parent", default="", metavar="RUN_ID", help="Only children of this run; give its whole id."),
    click.option("--id", default="", metavar="WORKFLOW_ID", help="Only runs with this workflow id."),
    click.option(
        "--id-prefix", default="", metavar="TEXT", help="Only runs whose run id or workflow id begins with this."
    ),
    click.option("--version", default="", metavar="VERSION", help="Only runs of this version."),
    click.option("--schedule", default="", metavar="ID", help="Only runs that this schedule started."),
    click.option("--concurrency-key", default="", metavar="KEY", help="Only runs with this concurrency key."),
    click.option("--worker", default="", metavar="WORKER_ID", help="Only runs that this worker holds now."),
    click.option(
        "--problem/--no-problem",
        default=None,
        help="Only runs that Kagzi paused because of a problem, or only the others.",
    ),
    click.option(
        "--failing/--no-failing",
        default=None,
        help="Only runs with a step that has failed and is retried, or with a problem; or only the others.",
    ),
    click.option("--waiting/--no-waiting", default=None, help="Only runs that wait for a signal, or only the others."),
)
"""The command receives them as keywords for `chosen_runs`."""


_SPANS = ("since", "until", "ended_since", "ended_until")


def chosen_runs(*, labels: Sequence[tuple[str, str]], parent: str, **others: Any) -> Matching:
    """The filter keywords of the client; empty if no option was set."""
    chosen = {**others, "labels": dict(labels), "parent": parent.lower()}
    chosen |= {name: _ago(others.get(name)) for name in _SPANS}
    return cast("Matching", {name: value for name, value in chosen.items() if value or value is False})


def refuse_search(matching: Matching) -> None:
    """For commands that change every run that matches. Raises UsageError."""
    if "id_prefix" in matching:
        raise click.UsageError("--id-prefix is a search: it shows some runs, not all. Name them, or use other options.")


def _ago(span: timedelta | None) -> datetime | None:
    return None if span is None else now() - span

"""`kagzi list` and `kagzi count`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from ..console import put, status_text
from ..options import Server
from ..output import Output, Rows, list_command, server_command
from ..times import age_text, now
from ..views import cells
from .filters import chosen_runs, filter_options
from .views import queued_text, run_view

if TYPE_CHECKING:
    from ...core.records import RunOrder
    from ...sdk.client.client import Kagzi
    from ...sdk.client.run_records import RunCount, RunInfo


@click.command("list")
@filter_options
@click.option(
    "--order",
    type=click.Choice(["created", "ended"]),
    default=None,
    help="What comes first: the run that was created last, or the one that ended last. "
    "Default: ended with --ended-since or --ended-until, else created.",
)
@list_command("run", limit=50)
def list_runs(*, limit: int, order: RunOrder | None, server: Server, **options: Any) -> Rows[RunInfo]:
    """List runs, newest first."""
    matching = chosen_runs(**options)

    async def fetch(client: Kagzi) -> list[RunInfo]:
        from .find import list_infos

        return [run async for run in list_infos(client, matching, limit + 1, order=order)]

    runs = server.ask(fetch)
    by_end = order == "ended" or "ended_since" in matching or "ended_until" in matching
    empty = "No runs match." if matching else "No runs. Start one: kagzi start WORKFLOW INPUT"
    more = f"there are more than {limit}; --limit {limit * 10} shows more" if len(runs) > limit else ""
    row = partial(_row, by_end=by_end, with_queued=any(queued_text(run) for run in runs))
    return Rows(runs[:limit], run_view, row, empty, more)


def _row(run: RunInfo, *, by_end: bool, with_queued: bool) -> dict[str, str]:
    """`queued`, if any run waited: how long it has waited for workers."""
    at = now()
    age = {"ended": age_text(run.finished_at, at)} if by_end else {"created": age_text(run.created_at, at)}
    return {**_names(run), **({"queued": queued_text(run)} if with_queued else {}), **age}


def _names(run: RunInfo) -> dict[str, str]:
    return {**cells(run, "run=id", "workflow", "workflow_id"), "status": status_text(run.status)}


@click.command()
@filter_options
@server_command
def count(*, server: Server, **options: Any) -> Output:
    """Count runs."""

    async def ask(client: Kagzi) -> RunCount:
        return await client.count(**chosen_runs(**options))

    runs = server.ask(ask)
    return Output({"count": runs, "capped": runs.capped}, lambda: put(f"{runs}{'+' if runs.capped else ''}"))

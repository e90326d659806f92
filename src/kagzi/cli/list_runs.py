"""`kagzi list`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from ..core.states import RunStatus
from .console import put_json, put_table, say, status_text
from .exits import Exit
from .options import address_options, duration, json_option, key_value

if TYPE_CHECKING:
    from ..v1 import workflow_pb2


@click.command("list")
@click.option(
    "--status",
    "statuses",
    multiple=True,
    type=click.Choice([str(status) for status in RunStatus]),
    help="May be repeated.",
)
@click.option("--workflow", "workflows", multiple=True, metavar="NAME", help="May be repeated.")
@click.option("--label", "labels", multiple=True, type=key_value, help="All must match. May be repeated.")
@click.option("--since", type=duration, help="Only runs created in the last 2h, 1 day ...")
@click.option("--limit", type=click.IntRange(1, 100_000), default=50, show_default=True)
@click.option("--jsonl", is_flag=True, help="Print JSON, one run a line.")
@json_option
@address_options
def list_runs(
    *,
    statuses: Sequence[str],
    workflows: Sequence[str],
    labels: Sequence[tuple[str, str]],
    since: timedelta | None,
    limit: int,
    jsonl: bool,
    as_json: bool,
    address: str | None,
    namespace: str | None,
) -> int:
    """List runs, newest first."""
    views, has_more = asyncio.run(_fetch(_filter(statuses, workflows, dict(labels), since), limit, address, namespace))
    if jsonl:
        for view in views:
            put_json(view, lines=True)
    elif as_json:
        put_json(views)
    else:
        _put_runs(views)
    if has_more:
        say(f"There are more than {limit}: --limit {limit * 10}")
    return Exit.OK


def _filter(
    statuses: Sequence[str], workflows: Sequence[str], labels: dict[str, str], since: timedelta | None
) -> workflow_pb2.WorkflowFilter:
    from ..core.times import us_from_timedelta
    from ..system import SystemClock
    from ..v1 import workflow_pb2
    from ..wire.common import write_time
    from ..wire.enums import RUN_STATUS_TO_WIRE

    return workflow_pb2.WorkflowFilter(
        statuses=[RUN_STATUS_TO_WIRE[RunStatus(status)] for status in statuses],
        workflow_types=workflows,
        labels=labels,
        created_after=None if since is None else write_time(SystemClock().now() - us_from_timedelta(since)),
    )


async def _fetch(
    where: workflow_pb2.WorkflowFilter, limit: int, address: str | None, namespace: str | None
) -> tuple[list[dict[str, Any]], bool]:
    """At most `limit` runs, and whether there are more."""
    from .connection import connected
    from .views import run_view

    views: list[dict[str, Any]] = []
    async with connected(address, namespace) as server:
        async for run in server.runs(where, limit + 1):
            if len(views) == limit:
                return views, True
            views.append(run_view(run))
    return views, False


def _put_runs(views: list[dict[str, Any]]) -> None:
    from ..core.times import to_datetime
    from ..system import SystemClock
    from .views import age_text

    if not views:
        say("No runs. Start one: kagzi start WORKFLOW INPUT")
        return
    now = to_datetime(SystemClock().now())
    put_table(
        [
            {
                "run": view["run_id"],
                "workflow": view["workflow"],
                "workflow id": view["workflow_id"],
                "status": status_text(view["status"]),
                "created": age_text(view["created_at"], now),
            }
            for view in views
        ]
    )

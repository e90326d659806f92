"""`kagzi list`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click

from ..console import hint, put_list, status_text
from ..exits import Exit
from ..options import address_options, list_options
from .filters import filter_options, run_filter

if TYPE_CHECKING:
    from datetime import datetime

    from ...v1 import workflow_pb2


@click.command("list")
@filter_options
@list_options("run", limit=50)
@address_options
def list_runs(
    *,
    limit: int,
    jsonl: bool,
    as_json: bool,
    address: str | None,
    namespace: str | None,
    **which: Any,
) -> int:
    """List runs, newest first."""
    from ...core.times import to_datetime
    from ...system import SystemClock

    where = run_filter(**which)
    views, has_more = asyncio.run(_fetch(where, limit, address, namespace))
    empty = "No runs match." if where.ByteSize() else "No runs. Start one: kagzi start WORKFLOW INPUT"
    now = to_datetime(SystemClock().now())
    put_list(views, lambda view: view, lambda view: _row(view, now), jsonl=jsonl, as_json=as_json, empty=empty)
    if has_more:
        hint(f"there are more than {limit}; --limit {limit * 10} shows more")
    return Exit.OK


async def _fetch(
    where: workflow_pb2.WorkflowFilter, limit: int, address: str | None, namespace: str | None
) -> tuple[list[dict[str, Any]], bool]:
    """At most `limit` runs, and whether there are more."""
    from ..connection import connected
    from .views import run_view

    views: list[dict[str, Any]] = []
    async with connected(address, namespace) as server:
        async for run in server.runs(where, limit + 1):
            if len(views) == limit:
                return views, True
            views.append(run_view(run))
    return views, False


def _row(view: dict[str, Any], now: datetime) -> dict[str, str]:
    from ..times import age_text

    return {
        "run": view["run_id"],
        "workflow": view["workflow"],
        "workflow id": view["workflow_id"],
        "status": status_text(view["status"]),
        "created": age_text(view["created_at"], now),
    }

"""`kagzi list` and `kagzi count`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ..console import hint, put, put_json, put_list, status_text
from ..exits import Exit
from ..options import Server, json_option, list_options, server_options
from .filters import chosen_runs, filter_options

if TYPE_CHECKING:
    from datetime import datetime

    from ...sdk.client.client import Kagzi
    from ...sdk.client.filters import Matching
    from ...sdk.client.run_records import RunCount


@click.command("list")
@filter_options
@list_options("run", limit=50)
@server_options
def list_runs(*, limit: int, jsonl: bool, as_json: bool, server: Server, **options: Any) -> int:
    """List runs, newest first."""
    from ...core.times import to_datetime
    from ...system import SystemClock

    matching = chosen_runs(**options)
    views = server.ask(lambda client: _fetch(client, matching, limit + 1))
    empty = "No runs match." if matching else "No runs. Start one: kagzi start WORKFLOW INPUT"
    now = to_datetime(SystemClock().now())
    put_list(views[:limit], lambda view: view, lambda view: _row(view, now), jsonl=jsonl, as_json=as_json, empty=empty)
    if len(views) > limit:
        hint(f"there are more than {limit}; --limit {limit * 10} shows more")
    return Exit.OK


async def _fetch(client: Kagzi, matching: Matching, limit: int) -> list[dict[str, Any]]:
    from .find import list_infos
    from .views import run_view

    return [run_view(run) async for run in list_infos(client, matching, limit)]


def _row(view: dict[str, Any], now: datetime) -> dict[str, str]:
    from ..times import age_text

    return {
        "run": view["run_id"],
        "workflow": view["workflow"],
        "workflow id": view["workflow_id"],
        "status": status_text(view["status"]),
        "created": age_text(view["created_at"], now),
    }


@click.command()
@filter_options
@json_option
@server_options
def count(*, as_json: bool, server: Server, **options: Any) -> int:
    """Count runs."""

    async def ask(client: Kagzi) -> RunCount:
        return await client.count(**chosen_runs(**options))

    counted = server.ask(ask)
    if as_json:
        put_json({"count": counted, "capped": counted.capped})
    else:
        put(f"{counted}{'+' if counted.capped else ''}")
    return Exit.OK

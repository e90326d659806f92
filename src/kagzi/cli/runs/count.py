"""`kagzi count`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click

from ..console import put, put_json
from ..exits import Exit
from ..options import address_options, json_option
from .filters import filter_options, run_filter

if TYPE_CHECKING:
    from ...v1 import workflow_pb2


@click.command()
@filter_options
@json_option
@address_options
def count(
    *,
    as_json: bool,
    address: str | None,
    namespace: str | None,
    **which: Any,
) -> int:
    """Count runs."""
    where = run_filter(**which)
    answer = asyncio.run(_count(where, address, namespace))
    if as_json:
        put_json({"count": answer.count, "capped": answer.capped})
    else:
        put(f"{answer.count}{'+' if answer.capped else ''}")
    return Exit.OK


async def _count(
    where: workflow_pb2.WorkflowFilter, address: str | None, namespace: str | None
) -> workflow_pb2.CountWorkflowsResponse:
    from ..connection import connected

    async with connected(address, namespace) as server:
        return await server.count(where)

"""`kagzi terminate`."""

import asyncio
from collections.abc import Sequence
from typing import Any

import click

from ..console import put_json, say
from ..exits import Exit
from ..options import address_options, json_option
from .bulk import bulk_options, refuse_filters, run_bulk


@click.command()
@click.argument("run", metavar="[RUN]", default="", required=False)
@bulk_options
@click.option("--reason", default="", help="Reason, kept with the run.")
@json_option
@address_options
def terminate(
    *, run: str, reason: str, yes: bool, filters: Sequence[tuple[str, str]], as_json: bool, **where: Any
) -> int:
    """End a run, or all that match, at once and without cleanup.

    RUN is a run id, the beginning of one, or a workflow id (its latest run). It ends as cancelled; `kagzi cancel` lets it clean up
    first. Without RUN, options choose the runs: the count is shown, and --yes terminates those that have not ended.
    """
    if not run:
        return run_bulk("terminate", reason=reason, yes=yes, filters=filters, as_json=as_json, **where)
    address, namespace = where.pop("address"), where.pop("namespace")
    refuse_filters(run, yes, filters, where)
    run_id, status = asyncio.run(_terminate(run, reason, address, namespace))
    if as_json:
        put_json({"run_id": run_id, "status": status})
    elif status == "cancelled":
        say(f"{run_id} is cancelled")
    else:
        say(f"{run_id} had already {status}: nothing to terminate")
    return Exit.OK


async def _terminate(run: str, reason: str, address: str | None, namespace: str | None) -> tuple[str, str]:
    from ...system import SystemIds
    from ..connection import connected
    from .views import run_status

    async with connected(address, namespace) as server:
        found = await server.find_run(run)
        return found.run_id, str(run_status(await server.terminate(found.run_id, reason, SystemIds().token())))

"""`kagzi cancel`."""

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
def cancel(
    *,
    run: str,
    reason: str,
    yes: bool,
    filters: Sequence[tuple[str, str]],
    as_json: bool,
    address: str | None,
    namespace: str | None,
    **which: Any,
) -> int:
    """Cancel a run, or all that match. A cancelled run may clean up first.

    RUN is a run id, the beginning of one, or a workflow id (its latest run). Without RUN, options choose the runs: the count is
    shown, and --yes cancels those that have not ended.
    """
    if not run:
        return run_bulk(
            "cancel",
            reason=reason,
            yes=yes,
            filters=filters,
            as_json=as_json,
            address=address,
            namespace=namespace,
            **which,
        )
    refuse_filters(run, yes, filters, which)
    run_id, status = asyncio.run(_cancel(run, reason, address, namespace))
    if as_json:
        put_json({"run_id": run_id, "status": status})
    elif status in ("completed", "failed"):
        say(f"{run_id} had already {status}: nothing to cancel")
    elif status == "cancelled":
        say(f"{run_id} is cancelled")
    else:
        say(f"{run_id} is {status} and was asked to stop")
    return Exit.OK


async def _cancel(run: str, reason: str, address: str | None, namespace: str | None) -> tuple[str, str]:
    from ..connection import connected
    from .views import run_status

    async with connected(address, namespace) as server:
        found = await server.find_run(run)
        return found.run_id, str(run_status(await server.cancel(found.run_id, reason)))

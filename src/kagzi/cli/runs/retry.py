"""`kagzi retry`."""

import asyncio
from collections.abc import Sequence
from typing import Any

import click

from ..console import put_json, say
from ..exits import Exit
from ..options import address_options, json_option, same_server
from .bulk import bulk_options, refuse_filters, run_bulk


@click.command()
@click.argument("run", metavar="[RUN]", default="", required=False)
@bulk_options
@click.option(
    "--from-step", default="", metavar="STEP", help="Reopen RUN at this step instead; see kagzi get RUN --steps."
)
@json_option
@address_options
def retry(
    *, run: str, from_step: str, yes: bool, filters: Sequence[tuple[str, str]], as_json: bool, **where: Any
) -> int:
    """Reopen a failed run, or all that match, at the step that failed.

    RUN is a run id, the beginning of one, or a workflow id (its latest run). What was recorded before that step is kept and does not
    run again. Without RUN, options choose the runs: the count is shown, and --yes retries those that failed.
    """
    if not run:
        if from_step:
            raise click.UsageError("--from-step needs a RUN.")
        return run_bulk("retry", yes=yes, filters=filters, as_json=as_json, **where)
    address, namespace = where.pop("address"), where.pop("namespace")
    refuse_filters(run, yes, filters, where)
    run_id, status = asyncio.run(_retry(run, from_step, address, namespace))
    if as_json:
        put_json({"run_id": run_id, "status": status})
    else:
        say(f"{run_id} is {status} again. Show it: kagzi get {run_id} --steps{same_server()}")
    return Exit.OK


async def _retry(run: str, from_step: str, address: str | None, namespace: str | None) -> tuple[str, str]:
    from ...system import SystemIds
    from ..connection import connected
    from .views import run_status

    async with connected(address, namespace) as server:
        found = await server.find_run(run)
        return found.run_id, str(run_status(await server.retry(found.run_id, from_step, SystemIds().token())))

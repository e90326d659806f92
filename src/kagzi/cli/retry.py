"""`kagzi retry`."""

import asyncio

import click

from .console import put_json, say
from .exits import Exit
from .options import address_options, json_option


@click.command()
@click.argument("run", metavar="RUN")
@click.option("--from-step", default="", metavar="STEP", help="Reopen it here instead; see kagzi get RUN --steps.")
@json_option
@address_options
def retry(run: str, from_step: str, as_json: bool, address: str | None, namespace: str | None) -> int:
    """Reopen a failed run at the step that failed it.

    RUN is a run id, the beginning of one, or a workflow id (its latest run).
    What was recorded before that step is kept and does not run again.
    """
    run_id, status = asyncio.run(_retry(run, from_step, address, namespace))
    if as_json:
        put_json({"run_id": run_id, "status": status})
    else:
        say(f"{run_id} is {status} again. See how it goes: kagzi get {run_id} --steps")
    return Exit.OK


async def _retry(run: str, from_step: str, address: str | None, namespace: str | None) -> tuple[str, str]:
    from ..system import SystemIds
    from .connection import connected
    from .views import run_status

    async with connected(address, namespace) as server:
        found = await server.find_run(run)
        return found.run_id, str(run_status(await server.retry(found.run_id, from_step, SystemIds().token())))

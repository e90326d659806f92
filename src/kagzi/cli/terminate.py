"""`kagzi terminate`."""

import asyncio

import click

from .console import put_json, say
from .exits import Exit
from .options import address_options, json_option


@click.command()
@click.argument("run", metavar="RUN")
@click.option("--reason", default="", help="Kept with the run.")
@json_option
@address_options
def terminate(run: str, reason: str, as_json: bool, address: str | None, namespace: str | None) -> int:
    """End a run now, without cleanup.

    RUN is a run id, the beginning of one, or a workflow id (its latest run).
    It ends as cancelled; `kagzi cancel` lets it clean up first.
    """
    run_id, status = asyncio.run(_terminate(run, reason, address, namespace))
    if as_json:
        put_json({"run_id": run_id, "status": status})
    elif status == "cancelled":
        say(f"{run_id} is cancelled")
    else:
        say(f"{run_id} had already {status}: nothing to end")
    return Exit.OK


async def _terminate(run: str, reason: str, address: str | None, namespace: str | None) -> tuple[str, str]:
    from ..system import SystemIds
    from .connection import connected
    from .views import run_status

    async with connected(address, namespace) as server:
        found = await server.find_run(run)
        return found.run_id, str(run_status(await server.terminate(found.run_id, reason, SystemIds().token())))

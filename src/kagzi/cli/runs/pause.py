"""`kagzi pause` and `kagzi resume`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from ..console import put_json, say
from ..exits import Exit
from ..options import address_options, json_option, same_server
from .bulk import bulk_options, refuse_filters, run_bulk

if TYPE_CHECKING:
    from ..connection import ServerConnection

ENDED = ("completed", "failed", "cancelled")


@click.command()
@click.argument("run", metavar="RUN")
@click.option("--reason", default="", help="Reason, kept with the run.")
@json_option
@address_options
def pause(run: str, reason: str, as_json: bool, address: str | None, namespace: str | None) -> int:
    """Pause a run: no more steps begin until it is resumed.

    RUN is a run id, the beginning of one, or a workflow id (its latest run).
    Steps that are running finish and are recorded; signals and timers wait.
    """
    run_id, status = asyncio.run(_change(run, address, namespace, lambda server, run_id: server.pause(run_id, reason)))
    if as_json:
        put_json({"run_id": run_id, "status": status})
    elif status in ENDED:
        say(f"{run_id} has {status}: nothing to pause")
    elif status == "paused":
        say(f"{run_id} is paused. Resume it: kagzi resume {run_id}{same_server()}")
    else:
        say(f"{run_id} is {status} and will pause when its running steps are done")
    return Exit.OK


@click.command()
@click.argument("run", metavar="[RUN]", default="", required=False)
@bulk_options
@json_option
@address_options
def resume(*, run: str, yes: bool, filters: Sequence[tuple[str, str]], as_json: bool, **where: Any) -> int:
    """Resume a paused run, or all that match.

    RUN is a run id, the beginning of one, or a workflow id (its latest run). Without it, options choose the runs: the command shows how
    many match, and --yes resumes those that are paused.
    Kagzi pauses runs that have a problem (--problem); kagzi explain RUN says which one. Solve it before you resume the run.
    """
    if not run:
        return run_bulk("resume", yes=yes, filters=filters, as_json=as_json, **where)
    address, namespace = where.pop("address"), where.pop("namespace")
    refuse_filters(run, yes, filters, where)
    run_id, status = asyncio.run(_change(run, address, namespace, lambda server, run_id: server.resume(run_id)))
    if as_json:
        put_json({"run_id": run_id, "status": status})
    elif status in ENDED:
        say(f"{run_id} has {status}: nothing to resume")
    else:
        say(f"{run_id} is {status}")
    return Exit.OK


async def _change(
    run: str,
    address: str | None,
    namespace: str | None,
    change: Callable[[ServerConnection, str], Awaitable[int]],
) -> tuple[str, str]:
    from ..connection import connected
    from .views import run_status

    async with connected(address, namespace) as server:
        found = await server.find_run(run)
        return found.run_id, str(run_status(await change(server, found.run_id)))

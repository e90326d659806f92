"""`kagzi import`."""

import asyncio
from typing import Any, BinaryIO

import click

from ...core.plurals import counted
from ..console import put, put_json, say
from ..exits import Exit
from ..options import address_options, json_option


@click.command("import")
@click.argument("file", metavar="FILE", type=click.File("rb"))
@json_option
@address_options
def import_runs(*, file: BinaryIO, as_json: bool, address: str | None, namespace: str | None) -> int:
    """Import runs that were exported, perhaps from another store.

    FILE is what `kagzi export` wrote; - is stdin. Each run is imported whole or not at all. A run that exists already with the same
    content is skipped, so you can import a file again if something went wrong.
    """
    created, there = asyncio.run(_import(file, as_json, address, namespace))
    say(f"{counted(created, 'run')} imported" + (f", {there} existed already" if there else ""))
    return Exit.OK


async def _import(file: BinaryIO, as_json: bool, address: str | None, namespace: str | None) -> tuple[int, int]:
    from ...sdk.client.operations.transfers import Transfers, as_lines
    from ..connection import connected

    created = there = 0
    views: list[dict[str, Any]] = []
    async with connected(address, namespace) as server:
        async for run in Transfers(server.connection, server.namespace).import_runs(as_lines(file)):
            created += run.created
            there += not run.created
            if as_json:
                views.append({"run_id": run.id, "created": run.created})
            else:
                put(run.id)
    if as_json:
        put_json(views)
    return created, there

"""`kagzi export`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from ...core.plurals import counted
from ..console import say, warn
from ..exits import Exit
from ..options import address_options
from .filters import filter_options, run_filter

if TYPE_CHECKING:
    from ...v1 import workflow_pb2
    from ..connection import ServerConnection

_MOST_RUNS = 100_000_000


@click.command()
@click.argument("runs", metavar="[RUN]...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Export all runs that match the options, oldest first.")
@filter_options
@click.option(
    "--output",
    "-o",
    type=click.File("wb", lazy=True),
    default="-",
    metavar="FILE",
    help="Write to this file.  [default: stdout]",
)
@address_options
def export(
    *,
    runs: Sequence[str],
    everything: bool,
    output: BinaryIO,
    address: str | None,
    namespace: str | None,
    **which: Any,
) -> int:
    """Export runs with their history, as lines of JSON.

    \b
    kagzi export RUN > run.jsonl
    kagzi export --all > runs.jsonl
    kagzi import runs.jsonl --address OTHER

    RUN is a run id, the beginning of one, or a workflow id (its latest run). Pause runs or stop their workers before you move them: a
    run that changes during the export is refused, and a running one is imported as pending.
    """
    if bool(runs) == everything:
        raise click.UsageError("give one or more RUNs, or --all, with options such as --status to choose among them.")
    where = run_filter(**which)
    if runs and where.ByteSize():
        raise click.UsageError("options such as --status need --all; they do not go with a RUN.")
    return asyncio.run(_export(runs, where, output, address, namespace))


async def _export(
    runs: Sequence[str],
    where: workflow_pb2.WorkflowFilter,
    output: BinaryIO,
    address: str | None,
    namespace: str | None,
) -> int:
    from ...core.transfers import RUNNING_NOTE
    from ...sdk.client.operations.transfers import Transfers
    from ..connection import connected

    count = running = 0
    async with connected(address, namespace) as server:
        transfers = Transfers(server.connection, server.namespace)
        async for run_id in _ids(server, runs, where):
            async for line in transfers.export(run_id):
                running += line.startswith(b'{"kagzi"') and RUNNING_NOTE.encode() in line[:400]
                output.write(line)
            count += 1
    output.flush()
    if running:
        warn(
            f"{counted(running, 'run')} exported while running: imported as pending. Stop workers before you move runs"
        )
    if not sys.stdout.isatty() or output is not sys.stdout.buffer:
        say(f"{counted(count, 'run')} exported")
    return Exit.OK


async def _ids(server: ServerConnection, runs: Sequence[str], where: workflow_pb2.WorkflowFilter) -> AsyncIterator[str]:
    """Oldest first: parents before their children."""
    if runs:
        for run in runs:
            yield (await server.find_run(run)).run_id
        return
    found = [run.run_id async for run in server.runs(where, _MOST_RUNS)]
    for run_id in reversed(found):
        yield run_id

"""`kagzi export` and `kagzi import`."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from ...core.text.plurals import counted
from ..console import Progress, put, put_json, say, warn
from ..exits import Exit
from ..options import Server, export_file, server_options
from .filters import chosen_runs, filter_options, refuse_search

if TYPE_CHECKING:
    from ...sdk.client.client import Kagzi
    from ...sdk.client.filters import Matching
    from ...sdk.client.operations.transfers import Export
    from ...sdk.client.run import Run


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
@click.option("--pytest", "as_test", is_flag=True, help="Write RUN as a test for pytest, which replays it.")
@click.option("--code", metavar="MODULE", help="With --pytest: module or file that has the workflow, app.flows.")
@export_file("With --pytest: take the run from this file of kagzi export instead of a server.")
@server_options
def export(
    *,
    runs: Sequence[str],
    everything: bool,
    output: BinaryIO,
    as_test: bool,
    code: str | None,
    file: Path | None,
    server: Server,
    **options: Any,
) -> int:
    """Export runs with their history, as lines of JSON.

    \b
    kagzi export RUN > run.jsonl
    kagzi export RUN --pytest --code app.flows > test_run.py
    kagzi export --from run.jsonl --pytest --code app.flows > test_run.py
    kagzi export --all > runs.jsonl
    kagzi import runs.jsonl --address OTHER

    RUN is a run id, the beginning of one, or a workflow id (its latest run). Pause runs or stop their workers before
    you move them: a run that changes during the export is refused, and a running one is imported as pending.
    """
    for option, value in (("--code", code), ("--from", file)):
        if value is not None and not as_test:
            raise click.UsageError(f"{option} needs --pytest.")
    matching = chosen_runs(**options)
    if matching and not everything:
        raise click.UsageError("options such as --status need --all; they cannot be combined with a RUN.")
    if as_test:
        if everything or len(runs) > 1 or not (runs or file):
            raise click.UsageError("--pytest writes one test: give one RUN, or a file with one run: --from FILE.")
        from ..develop.pytest_files import test_of

        output.write(test_of(runs[0] if runs else None, file, code, server))
        output.flush()
        return Exit.OK
    if bool(runs) == everything:
        raise click.UsageError("give one or more RUNs, or --all with options such as --status to select runs.")
    refuse_search(matching)
    count, running = server.ask(lambda client: _export(client, runs, matching, output))
    if running:
        exported = f"{counted(running, 'run')} exported while running: pending after an import"
        warn(f"{exported}. Stop the workers before you move runs")
    if not sys.stdout.isatty() or output is not sys.stdout.buffer:
        say(f"{counted(count, 'run')} exported")
    return Exit.OK


async def _export(client: Kagzi, names: Sequence[str], matching: Matching, output: BinaryIO) -> tuple[int, int]:
    """Returns how many runs were exported, and how many of them were running."""
    from ...core.transfers.images import RUNNING_NOTE

    runs = await _chosen(client, names, matching)
    progress = Progress("exported", len(runs))
    running = 0
    async with aclosing(_exports(runs)) as exports:
        async for export in exports:
            async for line in export.lines():
                running += line.startswith(b'{"kagzi"') and RUNNING_NOTE.encode() in line[:400]
                output.write(line)
            progress.add()
    output.flush()
    progress.end()
    return len(runs), running


async def _exports(runs: Sequence[Run[Any]]) -> AsyncGenerator[Export]:
    """In order, a few at the same time."""
    from ...sdk.client.operations.transfers import AT_ONCE, Export

    open_: deque[Export] = deque()
    try:
        for run in runs:
            open_.append(Export(run.export()))
            if len(open_) == AT_ONCE:
                yield open_[0]
                open_.popleft()
        while open_:
            yield open_[0]
            open_.popleft()
    finally:
        for export in open_:
            await export.close()


async def _chosen(client: Kagzi, names: Sequence[str], matching: Matching) -> list[Run[Any]]:
    """Oldest first: parents before their children."""
    from .find import find_run

    if names:
        return [await find_run(client, name) for name in names]
    return [client.get(run_id) for run_id in reversed([run.id async for run in client.list(**matching)])]


@click.command("import")
@click.argument("file", metavar="FILE", type=click.File("rb"))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@server_options
def import_runs(*, file: BinaryIO, as_json: bool, server: Server) -> int:
    """Import runs from a file that kagzi export wrote.

    FILE may come from another store; - is stdin. Each run is imported whole or not at all. A run that already exists
    with the same content is skipped, so you can import a file again if something went wrong.
    """
    views = server.ask(lambda client: _import(client, file))
    if as_json:
        put_json(views)
    elif not sys.stdout.isatty():
        for view in views:
            put(view["run_id"])
    created = sum(view["created"] for view in views)
    there = len(views) - created
    say(f"{counted(created, 'run')} imported" + (f", {there} already existed" if there else ""))
    return Exit.OK


async def _import(client: Kagzi, file: BinaryIO) -> list[dict[str, Any]]:
    from ...sdk.client.operations.transfers import AT_ONCE

    views: list[dict[str, Any]] = []
    progress = Progress("imported")
    async for run in client.import_runs(file, at_once=AT_ONCE):
        views.append({"run_id": run.id, "created": run.created})
        progress.add()
    progress.end()
    return views

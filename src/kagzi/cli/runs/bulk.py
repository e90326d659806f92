"""Operations on many runs: `kagzi cancel|retry|resume|terminate|delete --status ... --yes`, and `kagzi bulk`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from ...core.text.commands import quoted
from ...core.text.plurals import counted
from ..console import hint, put_fields, say
from ..exits import Exit, Stop
from ..groups import Listing
from ..options import PAIR, Server, options, same_server
from ..output import Output, Rows, list_command, server_command
from ..views import cells, view
from .filters import chosen_runs, filter_options, refuse_search

if TYPE_CHECKING:
    from ...core.bulk import BulkAction
    from ...sdk.client.client import Kagzi
    from ...sdk.client.filters import Matching
    from ...sdk.client.operations.bulk import BulkOperation, BulkProgress

    _Operation = tuple[str, BulkProgress]  # its id and progress

_FILTERS = {
    option.opts[0].removeprefix("--"): option
    for option in click.command()(filter_options(lambda: None)).params
    if isinstance(option, click.Option)
}
_DONE = {
    "cancel": "cancelled",
    "retry": "reopened",
    "resume": "resumed",
    "terminate": "terminated",
    "delete": "deleted",
}
_PAUSE_S = 0.2


bulk_options = options(
    click.option(
        "--filter",
        "filters",
        multiple=True,
        type=PAIR,
        help="Same as --KEY VALUE; labels are label.NAME=VALUE. Repeatable.",
    ),
    filter_options,
    click.option("--yes", "-y", is_flag=True, help="Change the runs. Without --yes, only their number is shown."),
)
"""Select runs instead of RUN. The command receives them as keywords for `run_bulk`."""


def run_bulk(
    action: BulkAction,
    *,
    run: str = "",
    reason: str = "",
    yes: bool,
    filters: Sequence[tuple[str, str]],
    server: Server,
    **options: Any,
) -> Output:
    """Changes every run that matches (or RUN, if it is set), and waits for the operation."""
    matching = chosen_runs(**_merged(options, filters))
    refuse_search(matching)
    if not matching and not run:
        raise click.UsageError(
            f"give a RUN, or select runs with options: kagzi {action} --status failed, --workflow WORKFLOW, "
            "--label team=a ..."
        )
    return server.ask(lambda client: _run(client, action, matching, run, reason, yes=yes))


def refuse_filters(run: str, *, yes: bool, filters: Sequence[tuple[str, str]], **options: Any) -> None:
    """RUN selects a single run and excludes filter options. Raises UsageError."""
    if filters or yes or any(value not in ("", None, ()) for value in options.values()):
        raise click.UsageError(f"give either a RUN ({run}) or options that select runs, not both.")


def _merged(options: dict[str, Any], filters: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """--filter KEY=VALUE means --KEY VALUE, and label.NAME=VALUE --label NAME=VALUE. Raises BadParameter."""
    merged = dict(options)
    for key, value in filters:
        kind, _, label = key.partition(".")
        option = _FILTERS.get(kind)
        if option is None or (kind == "label") != bool(label):
            known = ", ".join(_FILTERS).replace("label", "label.NAME")
            raise click.BadParameter(f"{key}={value} is not one of {known}.", param_hint="'--filter'")
        chosen = option.type.convert(f"{label}={value}" if label else value, option, click.get_current_context())
        merged[option.name] = (*merged[option.name], chosen) if option.multiple else chosen
    return merged


async def _run(client: Kagzi, action: BulkAction, matching: Matching, run: str, reason: str, *, yes: bool) -> Output:
    from ...core.bulk import meant
    from ...sdk.client.filters import run_filter

    if run:
        matching = await _only(client, run)
    where = run_filter(0, **matching)  # all its times are absolute
    concerned: Matching = {**matching, "status": meant(action, where).statuses}
    count = await client.count(**concerned)
    text = counted(count, "run", capped=count.capped)
    if not count and not yes:
        nothing = {"operation_id": None, "action": action, "matched": 0, "done": 0, "failed": 0, "finished": True}
        return Output(nothing, lambda: say(f"no runs match; there is nothing to {action}"))
    if not yes:
        verb, them = ("matches", "it") if count == 1 else ("match", "them")
        raise Stop(Exit.USAGE, f"{text} {verb}; nothing was done", f"add --yes to {action} {them}")
    operation = await client.bulk.start(action, where, reason)
    say(f"operation {operation.id}: {text} to {action}")
    progress = await _watch(operation, count)
    failed = f", {progress.failed} failed" if progress.failed else ""
    return _output(
        operation.id,
        progress,
        lambda: say(f"{counted(progress.done, 'run')} {_DONE[progress.action]}{failed}"),
        Exit.FAILED if progress.failed else Exit.OK,
    )


async def _only(client: Kagzi, name: str) -> Matching:
    """A filter that matches exactly this run."""
    from .find import find_info

    _, run = await find_info(client, name)
    return {"id": run.workflow_id, "since": run.created_at, "until": run.created_at + timedelta(microseconds=1)}


async def _watch(operation: BulkOperation, expected: int) -> BulkProgress:
    """Waits until it has finished. Leaving does not stop it."""
    try:
        with click.progressbar(length=max(expected, 1), file=sys.stderr, hidden=not sys.stderr.isatty()) as bar:
            shown = 0
            while not (progress := await operation.progress()).finished:
                bar.update(min(progress.matched, expected) - shown)
                shown = min(progress.matched, expected)
                await asyncio.sleep(_PAUSE_S)
            bar.update(max(expected, 1) - shown)
    except (KeyboardInterrupt, asyncio.CancelledError):
        say(f"interrupted; operation {operation.id} continues in the server")
        where = same_server()
        hint(
            f"kagzi bulk get {quoted(operation.id)}{where} shows its progress, "
            f"kagzi bulk stop {quoted(operation.id)}{where} stops it"
        )
        raise
    return progress


def _output(operation_id: str, progress: BulkProgress, show: Callable[[], None], code: Exit = Exit.OK) -> Output:
    def show_all() -> None:
        show()
        if progress.last_error:
            say(f"the last error: {progress.last_error}", colour="yellow")

    return Output(_view((operation_id, progress)), show_all, code)


def _view(operation: _Operation) -> dict[str, Any]:
    operation_id, progress = operation
    names = ("action", "matched", "done", "failed", "finished", "stopped", "last_error?", "reason?")
    return {"operation_id": operation_id} | view(progress, *names, "created_at", "finished_at")


# --- existing operations ----------------------------------------------------------------------------------------------


@click.group(cls=Listing)
def bulk() -> None:
    """List, show and stop operations on many runs."""


@bulk.command("list")
@list_command("operation", limit=20)
def list_bulk(*, limit: int, server: Server) -> Rows[_Operation]:
    """List operations, newest first."""

    async def fetch(client: Kagzi) -> list[_Operation]:
        return [(each.id, each.last) async for each in client.bulk.list(limit) if each.last is not None]

    empty = "No operations. Begin one: kagzi cancel --status pending --yes"
    return Rows(server.ask(fetch), _view, _row, empty)


@bulk.command()
@click.argument("operation", metavar="OPERATION")
@server_command
def get(*, operation: str, server: Server) -> Output:
    """Show the progress of an operation."""
    progress = server.ask(lambda client: client.bulk.get(operation).progress())
    return _output(operation, progress, lambda: put_fields(_row((operation, progress))))


@bulk.command()
@click.argument("operation", metavar="OPERATION")
@server_command
def stop(*, operation: str, server: Server) -> Output:
    """Stop an operation. Runs that it has changed stay changed."""
    progress = server.ask(lambda client: client.bulk.stop(operation))
    return _output(operation, progress, lambda: put_fields(_row((operation, progress))))


def _row(operation: _Operation) -> dict[str, str]:
    operation_id, progress = operation
    state = "stopped" if progress.stopped else "finished" if progress.finished else "running"
    counts = cells(progress, "matched", "done", "failed", "created=created_at")
    return {"operation": operation_id, "action": progress.action, "state": state, **counts}

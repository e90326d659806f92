"""`kagzi cancel|retry|resume|terminate|delete --status ... --yes`, and `kagzi bulk` for the operations that they began."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from ...core.text.plurals import counted
from ..console import hint, put_fields, put_json, put_list, say
from ..exits import Exit, Stop
from ..groups import Listing
from ..options import Command, Server, duration, json_option, key_value, list_options, same_server, server_options
from ..times import local_text, utc_text
from .filters import chosen_runs, filter_options

if TYPE_CHECKING:
    from ...core.bulk import BulkAction
    from ...sdk.client.client import Kagzi
    from ...sdk.client.filters import Matching
    from ...sdk.client.operations.bulk import BulkOperation, BulkProgress

_LISTS = {"status": "statuses", "workflow": "workflows"}
_NAMES = {"id": "workflow_id", "concurrency-key": "concurrency_key"}
_PLAIN = ("parent", "version", "schedule", "id", "concurrency-key")
_DONE = {
    "cancel": "cancelled",
    "retry": "reopened",
    "resume": "resumed",
    "terminate": "terminated",
    "delete": "deleted",
}
_PAUSE_S = 0.2


def bulk_options(command: Command) -> Command:
    """Which runs are meant, instead of RUN. The command gets them as keywords: hand them to `run_bulk`."""
    command = click.option("--yes", "-y", is_flag=True, help="Do it. Without --yes only the number of runs is shown.")(
        command
    )
    command = filter_options(command)
    return click.option(
        "--filter",
        "filters",
        multiple=True,
        type=key_value,
        metavar="KEY=VALUE",
        help="Same as --KEY VALUE; labels are label.NAME=VALUE. Repeatable.",
    )(command)


def run_bulk(
    action: BulkAction,
    *,
    run: str = "",
    reason: str = "",
    yes: bool,
    filters: Sequence[tuple[str, str]],
    as_json: bool,
    server: Server,
    **options: Any,
) -> int:
    """Do it to every run that matches (or to RUN, where that is given), and wait for it."""
    matching = chosen_runs(**_merged(options, filters))
    if not matching and not run:
        raise click.UsageError(
            f"give a RUN, or choose runs with options: kagzi {action} --status failed, --workflow NAME, --label team=a ..."
        )
    return server.ask(lambda client: _run(client, action, matching, run, reason, yes=yes, as_json=as_json))


def refuse_filters(run: str, *, yes: bool, filters: Sequence[tuple[str, str]], **options: Any) -> None:
    """RUN names one run: then nothing else does. Raises UsageError."""
    if filters or yes or any(value not in ("", None, ()) for value in options.values()):
        raise click.UsageError(f"give a RUN ({run}), or options that choose runs and --yes, not both.")


def _merged(options: dict[str, Any], filters: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """--filter KEY=VALUE means --KEY VALUE. Raises BadParameter."""
    merged = dict(options)
    for key, value in filters:
        if key.startswith("label."):
            merged["labels"] = (*merged["labels"], (key.removeprefix("label."), value))
        elif key in _LISTS:
            merged[_LISTS[key]] = (*merged[_LISTS[key]], _status(value) if key == "status" else value)
        elif key in ("since", "until"):
            merged[key] = duration(value)
        elif key == "problem" and value in ("true", "false"):
            merged[key] = value == "true"
        elif key in _PLAIN:
            merged[_NAMES.get(key, key)] = value
        else:
            known = ", ".join((*_LISTS, "label.NAME", "since", "until", "problem=true", *_PLAIN))
            raise click.BadParameter(f"{key}={value} is not one of {known}.", param_hint="'--filter'")
    return merged


def _status(value: str) -> str:
    from ...core.states import RunStatus

    if value not in list(RunStatus):
        raise click.BadParameter(f"status={value} is not one of {', '.join(RunStatus)}.", param_hint="'--filter'")
    return value


async def _run(
    client: Kagzi, action: BulkAction, matching: Matching, run: str, reason: str, *, yes: bool, as_json: bool
) -> int:
    from ...core.bulk import meant
    from ...sdk.client.filters import run_filter

    if run:
        matching = await _only(client, run)
    where = run_filter(0, **matching)  # its times are moments
    concerned: Matching = {**matching, "status": meant(action, where).statuses}
    found = await client.count(**concerned)
    text = counted(found, "run", capped=found.capped)
    if not found and not yes:
        return _report_nothing(action, as_json=as_json)
    if not yes:
        verb, them = ("matches", "it") if found == 1 else ("match", "them")
        raise Stop(Exit.USAGE, f"{text} {verb}; nothing was done", f"add --yes to {action} {them}")
    operation = await client.bulk.start(action, where, reason)
    say(f"{operation.id}: {text} to {action}")
    progress = await _watch(operation, found)
    return _report(operation, progress, as_json=as_json)


async def _only(client: Kagzi, name: str) -> Matching:
    """What means exactly this run."""
    from .find import find_info

    _, run = await find_info(client, name)
    return {"id": run.workflow_id, "since": run.created_at, "until": run.created_at + timedelta(microseconds=1)}


async def _watch(operation: BulkOperation, expected: int) -> BulkProgress:
    """Until it has finished. Leaving does not stop it."""
    try:
        with click.progressbar(length=max(expected, 1), file=sys.stderr, hidden=not sys.stderr.isatty()) as bar:
            shown = 0
            while not (progress := await operation.progress()).finished:
                bar.update(min(progress.matched, expected) - shown)
                shown = min(progress.matched, expected)
                await asyncio.sleep(_PAUSE_S)
            bar.update(max(expected, 1) - shown)
    except (KeyboardInterrupt, asyncio.CancelledError):
        say(f"interrupted; operation {operation.id} goes on in the server")
        where = same_server()
        hint(f"kagzi bulk get {operation.id}{where} shows its progress, kagzi bulk stop {operation.id}{where} stops it")
        raise
    return progress


def _report_nothing(action: BulkAction, *, as_json: bool) -> int:
    """There is nothing to confirm."""
    if as_json:
        put_json({"operation_id": None, "action": action, "matched": 0, "done": 0, "failed": 0, "finished": True})
    else:
        say(f"no runs match; there is nothing to {action}")
    return Exit.OK


def _report(operation: BulkOperation, progress: BulkProgress, *, as_json: bool) -> int:
    if as_json:
        put_json(_view(operation.id, progress))
    else:
        say(
            f"{counted(progress.done, 'run')} {_DONE[progress.action]}"
            + (f", {progress.failed} could not be" if progress.failed else "")
        )
        if progress.last_error:
            say(f"the last error: {progress.last_error}", colour="yellow")
    return Exit.FAILED if progress.failed else Exit.OK


def _view(operation_id: str, progress: BulkProgress) -> dict[str, Any]:
    return {
        "operation_id": operation_id,
        "action": progress.action,
        "matched": progress.matched,
        "done": progress.done,
        "failed": progress.failed,
        "finished": progress.finished,
        "stopped": progress.stopped,
        "last_error": progress.last_error or None,
        "reason": progress.reason or None,
        "created_at": utc_text(progress.created_at),
        "finished_at": None if progress.finished_at is None else utc_text(progress.finished_at),
    }


# --- what was begun ------------------------------------------------------------------------------------------------------------


@click.group(cls=Listing)
def bulk() -> None:
    """List, show and stop operations on many runs."""


@bulk.command("list")
@list_options("operation", limit=20)
@server_options
def list_bulk(*, limit: int, jsonl: bool, as_json: bool, server: Server) -> int:
    """List operations, newest first."""

    async def fetch(client: Kagzi) -> list[dict[str, Any]]:
        return [_view(one.id, one.last) async for one in client.bulk.list(limit) if one.last is not None]

    empty = "No operations. Begin one: kagzi cancel --status pending --yes"
    put_list(server.ask(fetch), lambda view: view, _row, jsonl=jsonl, as_json=as_json, empty=empty)
    return Exit.OK


@bulk.command()
@click.argument("operation", metavar="OPERATION")
@json_option
@server_options
def get(*, operation: str, as_json: bool, server: Server) -> int:
    """Show the progress of an operation."""
    return _put(operation, server.ask(lambda client: client.bulk.get(operation).progress()), as_json=as_json)


@bulk.command()
@click.argument("operation", metavar="OPERATION")
@json_option
@server_options
def stop(*, operation: str, as_json: bool, server: Server) -> int:
    """Stop an operation. What is done stays done."""
    return _put(operation, server.ask(lambda client: client.bulk.stop(operation)), as_json=as_json)


def _put(operation: str, progress: BulkProgress, *, as_json: bool) -> int:
    view = _view(operation, progress)
    if as_json:
        put_json(view)
        return Exit.OK
    put_fields(_row(view))
    if progress.last_error:
        say(f"the last error: {progress.last_error}", colour="yellow")
    return Exit.OK


def _row(view: dict[str, Any]) -> dict[str, str]:
    state = "stopped" if view["stopped"] else "finished" if view["finished"] else "running"
    return {
        "operation": view["operation_id"],
        "action": view["action"],
        "state": state,
        "matched": str(view["matched"]),
        "done": str(view["done"]),
        "failed": str(view["failed"]),
        "created": local_text(view["created_at"]),
    }

"""`kagzi pause`, `resume`, `cancel`, `terminate`, `retry` and `delete`: one run, or all that options choose."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import click

from ..console import put_json, say
from ..exits import Exit
from ..options import Server, json_option, same_server, server_options
from .bulk import bulk_options, refuse_filters, run_bulk

if TYPE_CHECKING:
    from ...sdk.client.client import Kagzi
    from ...sdk.client.run import Run

_ENDED = ("completed", "failed", "cancelled")


@click.command()
@click.argument("run", metavar="RUN")
@click.option("--reason", default="", help="Reason, kept with the run.")
@json_option
@server_options
def pause(*, run: str, reason: str, as_json: bool, server: Server) -> int:
    """Pause a run: no more steps begin until it is resumed.

    RUN is a run id, the beginning of one, or a workflow id (its latest run).
    Steps that are running finish and are recorded; signals and timers wait.
    """
    run_id, status = server.ask(lambda client: _change(client, run, lambda run: run.pause(reason)))
    if status in _ENDED:
        text = f"{run_id} has {status}: nothing to pause"
    elif status == "paused":
        text = f"{run_id} is paused. Resume it: kagzi resume {run_id}{same_server()}"
    else:
        text = f"{run_id} is {status} and will pause when its running steps are done"
    return _report(run_id, status, text, as_json=as_json)


@click.command()
@click.argument("run", metavar="[RUN]", default="", required=False)
@bulk_options
@json_option
@server_options
def resume(*, run: str, as_json: bool, server: Server, **options: Any) -> int:
    """Resume a paused run, or all that match.

    RUN is a run id, the beginning of one, or a workflow id (its latest run). Without it, options choose the runs: the command shows how
    many match, and --yes resumes those that are paused.
    Kagzi pauses runs that have a problem (--problem); kagzi explain RUN says which one. Solve it before you resume the run.
    """
    if not run:
        return run_bulk("resume", as_json=as_json, server=server, **options)
    refuse_filters(run, **options)
    run_id, status = server.ask(lambda client: _change(client, run, lambda run: run.resume()))
    text = f"{run_id} has {status}: nothing to resume" if status in _ENDED else f"{run_id} is {status}"
    return _report(run_id, status, text, as_json=as_json)


@click.command()
@click.argument("run", metavar="[RUN]", default="", required=False)
@bulk_options
@click.option("--reason", default="", help="Reason, kept with the run.")
@json_option
@server_options
def cancel(*, run: str, reason: str, as_json: bool, server: Server, **options: Any) -> int:
    """Cancel a run, or all that match. A cancelled run may clean up first.

    RUN is a run id, the beginning of one, or a workflow id (its latest run). Without RUN, options choose the runs: the count is
    shown, and --yes cancels those that have not ended.
    """
    if not run:
        return run_bulk("cancel", reason=reason, as_json=as_json, server=server, **options)
    refuse_filters(run, **options)
    run_id, status = server.ask(lambda client: _change(client, run, lambda run: run.cancel(reason)))
    if status in ("completed", "failed"):
        text = f"{run_id} had already {status}: nothing to cancel"
    elif status == "cancelled":
        text = f"{run_id} is cancelled"
    else:
        text = f"{run_id} is {status} and was asked to stop"
    return _report(run_id, status, text, as_json=as_json)


@click.command()
@click.argument("run", metavar="[RUN]", default="", required=False)
@bulk_options
@click.option("--reason", default="", help="Reason, kept with the run.")
@json_option
@server_options
def terminate(*, run: str, reason: str, as_json: bool, server: Server, **options: Any) -> int:
    """End a run, or all that match, at once and without cleanup.

    RUN is a run id, the beginning of one, or a workflow id (its latest run). It ends as cancelled; `kagzi cancel` lets it clean up
    first. Without RUN, options choose the runs: the count is shown, and --yes terminates those that have not ended.
    """
    if not run:
        return run_bulk("terminate", reason=reason, as_json=as_json, server=server, **options)
    refuse_filters(run, **options)
    run_id, status = server.ask(lambda client: _change(client, run, lambda run: run.terminate(reason)))
    nothing = f"{run_id} had already {status}: nothing to terminate"
    return _report(run_id, status, f"{run_id} is cancelled" if status == "cancelled" else nothing, as_json=as_json)


@click.command()
@click.argument("run", metavar="[RUN]", default="", required=False)
@bulk_options
@click.option(
    "--from-step", default="", metavar="STEP", help="Reopen RUN at this step instead; see kagzi get RUN --steps."
)
@json_option
@server_options
def retry(*, run: str, from_step: str, as_json: bool, server: Server, **options: Any) -> int:
    """Reopen a failed run, or all that match, at the step that failed.

    RUN is a run id, the beginning of one, or a workflow id (its latest run). What was recorded before that step is kept and does not
    run again. Without RUN, options choose the runs: the count is shown, and --yes retries those that failed.
    """
    if not run:
        if from_step:
            raise click.UsageError("--from-step needs a RUN.")
        return run_bulk("retry", as_json=as_json, server=server, **options)
    refuse_filters(run, **options)
    run_id, status = server.ask(lambda client: _change(client, run, lambda run: run.retry(from_step=from_step)))
    text = f"{run_id} is {status} again. Show it: kagzi get {run_id} --steps{same_server()}"
    return _report(run_id, status, text, as_json=as_json)


@click.command()
@click.argument("run", metavar="[RUN]", default="", required=False)
@bulk_options
@click.option("--reason", default="", help="Reason, kept with the operation.")
@json_option
@server_options
def delete(*, run: str, reason: str, yes: bool, as_json: bool, server: Server, **options: Any) -> int:
    """Delete runs that have ended, with their history.

    RUN is a run id, the beginning of one, or a workflow id (its latest run). Without RUN, options choose the runs. Either way the count
    is shown, and --yes deletes them. Runs that have not ended are kept.
    """
    if run:
        refuse_filters(run, yes=False, **options)
    return run_bulk("delete", run=run, reason=reason, yes=yes, as_json=as_json, server=server, **options)


async def _change(client: Kagzi, name: str, change: Callable[[Run[Any]], Awaitable[None]]) -> tuple[str, str]:
    """The id of the run, and its status after the change."""
    from .find import find_run

    run = await find_run(client, name)
    await change(run)
    return run.id, str(run.last_status)


def _report(run_id: str, status: str, text: str, *, as_json: bool) -> int:
    if as_json:
        put_json({"run_id": run_id, "status": status})
    else:
        say(text)
    return Exit.OK

"""`kagzi pause`, `resume`, `cancel`, `terminate`, `retry` and `delete`: one run, or all that options select."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial, wraps
from typing import TYPE_CHECKING, Any

import click

from ...core.text.commands import quoted
from ..options import Command, Server, options, same_server
from ..output import Output, server_command
from .bulk import bulk_options, refuse_filters, run_bulk
from .pages import say_of_run

if TYPE_CHECKING:
    from ...core.bulk import BulkAction
    from ...sdk.client.client import Kagzi
    from ...sdk.client.run import Run

Change = Callable[..., Awaitable[str]]
_ENDED = ("completed", "failed", "cancelled")
_reason = click.option("--reason", default="", help="Reason, kept with the run.")
_from_step = click.option(
    "--from-step", default="", metavar="STEP", help="Reopen RUN at this step instead; see kagzi get RUN --steps."
)


def _run_or_bulk(action: BulkAction, *own_options: Callable[[Command], Command]) -> Callable[[Change], click.Command]:
    """A command that changes RUN, or all runs that options select.

    The decorated function changes one run, with its own options, and returns the message about the outcome.
    """

    def add(change: Change) -> click.Command:
        @click.command(action)
        @click.argument("run", metavar="[RUN]", default="", required=False)
        @bulk_options
        @options(*own_options)
        @server_command
        @wraps(change)
        def command(*, run: str, server: Server, **filters: Any) -> Output:
            own = {name: filters.pop(name) for name in ("reason", "from_step") if name in filters}
            if run:
                refuse_filters(run, **filters)
                return server.ask(lambda client: _changed(client, run, partial(change, **own)))
            if own.pop("from_step", ""):
                raise click.UsageError("--from-step needs a RUN.")
            return run_bulk(action, server=server, **own, **filters)

        return command

    return add


async def _changed(client: Kagzi, name: str, change: Change) -> Output:
    from .find import find_run

    run = await find_run(client, name)
    text = await change(run)
    return Output({"run_id": run.id, "status": str(run.last_status)}, lambda: say_of_run(run, text))


@click.command()
@click.argument("run", metavar="RUN")
@_reason
@server_command
def pause(*, run: str, reason: str, server: Server) -> Output:
    """Pause a run: no more steps begin until it is resumed.

    RUN is a run id, the beginning of one, or a workflow id (its latest run).
    Steps that are running finish and are recorded; signals and timers wait.
    """

    async def change(run: Run[Any]) -> str:
        await run.pause(reason)
        if run.last_status in _ENDED:
            return f"{run.id} has already {run.last_status}: nothing to pause"
        if run.last_status == "paused":
            return f"{run.id} is paused. Resume it: kagzi resume {quoted(run.id)}{same_server()}"
        return f"{run.id} is {run.last_status} and will be paused when its running steps have finished"

    return server.ask(lambda client: _changed(client, run, change))


@_run_or_bulk("resume")
async def resume(run: Run[Any]) -> str:
    """Resume a paused run, or all that match.

    RUN is a run id, the beginning of one, or a workflow id (its latest run). Without RUN, options select the runs: you
    see how many match, and --yes resumes those that are paused.
    Kagzi pauses runs that have a problem (--problem); kagzi explain RUN says which one. Solve it before you resume the
    run.
    """
    await run.resume()
    ended = run.last_status in _ENDED
    return f"{run.id} has already {run.last_status}: nothing to resume" if ended else f"{run.id} is {run.last_status}"


@_run_or_bulk("cancel", _reason)
async def cancel(run: Run[Any], reason: str) -> str:
    """Cancel a run, or all that match. A cancelled run may clean up first.

    RUN is a run id, the beginning of one, or a workflow id (its latest run). Without RUN, options select the runs: you
    see how many match, and --yes cancels those that have not ended.
    """
    await run.cancel(reason)
    if run.last_status == "cancelled":
        return f"{run.id} is cancelled"
    if run.last_status in _ENDED:
        return f"{run.id} has already {run.last_status}: nothing to cancel"
    return f"{run.id} is {run.last_status} and was asked to stop"


@_run_or_bulk("terminate", _reason)
async def terminate(run: Run[Any], reason: str) -> str:
    """End a run, or all that match, at once and without cleanup.

    RUN is a run id, the beginning of one, or a workflow id (its latest run). It ends as cancelled; use kagzi cancel to
    let it clean up first. Without RUN, options select the runs: you see how many match, and --yes terminates those that
    have not ended.
    """
    await run.terminate(reason)
    if run.last_status == "cancelled":
        return f"{run.id} is cancelled"
    return f"{run.id} has already {run.last_status}: nothing to terminate"


@_run_or_bulk("retry", _from_step)
async def retry(run: Run[Any], from_step: str) -> str:
    """Reopen a failed run, or all that match, at the step that failed.

    RUN is a run id, the beginning of one, or a workflow id (its latest run). Steps before that one keep their results
    and do not run again. Without RUN, options select the runs: you see how many match, and --yes retries those that
    failed.
    """
    await run.retry(from_step=from_step)
    return f"{run.id} is {run.last_status} again. Show it: kagzi get {quoted(run.id)} --steps{same_server()}"


@click.command()
@click.argument("run", metavar="[RUN]", default="", required=False)
@bulk_options
@click.option("--reason", default="", help="Reason, kept with the operation.")
@server_command
def delete(*, run: str, yes: bool, server: Server, **filters: Any) -> Output:
    """Delete runs that have ended, with their history.

    RUN is a run id, the beginning of one, or a workflow id (its latest run). Without RUN, options select the runs.
    Either way you see how many match, and --yes deletes them. Runs that have not ended are kept.
    """
    reason = filters.pop("reason")
    if run:
        refuse_filters(run, yes=False, **filters)
    return run_bulk("delete", run=run, reason=reason, yes=yes, server=server, **filters)

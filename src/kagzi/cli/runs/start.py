"""`kagzi start`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

import click
from msgspec import Raw

from ..console import fail, hint, put, put_json, say, warn
from ..exits import Exit
from ..options import Kebab, Server, duration, json_option, key_value, same_server, server_options
from .inputs import read_input, text_option

if TYPE_CHECKING:
    from ...core.run.commands import OnConflict
    from ...sdk.client.client import Kagzi
    from ...sdk.client.run import Run
    from ...sdk.client.run_records import RunInfo
    from ...sdk.client.start import StartKeywords

NO_WORKER_NOTICE_S = 1.5
_WORKERS_ASKED = 1_000
ON_CONFLICT = ("existing", "existing_or_completed", "fail", "replace")


@click.command()
@click.argument("workflow")
@click.argument("input", nargs=-1)
@text_option("INPUT")
@click.option(
    "--id", "workflow_id", default="", metavar="ID", help="Your own id for the run, unique among the open ones."
)
@click.option("--wait", is_flag=True, help="Wait for the run to end and print its result.")
@click.option(
    "--timeout", type=duration, metavar="DURATION", help="Wait at most this long with --wait, then exit with code 124."
)
@click.option("--delay", type=duration, metavar="DURATION", help="Start the run this much later.")
@click.option(
    "--label", "labels", multiple=True, type=key_value, metavar="KEY=VALUE", help="Label the run. Repeatable."
)
@click.option(
    "--version", default="", metavar="VERSION", help="Version of the workflow.  [default: its default version]"
)
@click.option(
    "--priority", type=int, default=0, show_default=True, help="Waiting runs with a higher priority begin first."
)
@click.option(
    "--concurrency-key", default="", metavar="KEY", help="Key that per-key limits count by, such as a customer."
)
@click.option(
    "--on-conflict",
    type=Kebab(ON_CONFLICT),
    default="existing",
    show_default=True,
    help="What to do if an open run has the same id.",
)
@json_option
@server_options
def start(
    *,
    workflow: str,
    input: Sequence[str],
    as_text: bool,
    workflow_id: str,
    wait: bool,
    timeout: timedelta | None,
    delay: timedelta | None,
    labels: Sequence[tuple[str, str]],
    version: str,
    priority: int,
    concurrency_key: str,
    on_conflict: str,
    as_json: bool,
    server: Server,
) -> int:
    """Start a run of WORKFLOW.

    \b
    INPUT   JSON if it is valid, else text        kagzi start hello world
            key=text and key:=json pairs          kagzi start order user=ada total:=9.5
            @file, or - for stdin                 kagzi start order @order.json

    Prints the run id, or with --wait the result. Ctrl-C ends the wait, not the run.
    """
    if timeout is not None and not wait:
        raise click.UsageError("--timeout needs --wait.")
    data = read_input(input, sys.stdin.buffer.read, as_text=as_text)
    options: StartKeywords = {
        "id": workflow_id or None,
        "delay": delay,
        "labels": dict(labels),
        "version": version or None,
        "priority": priority,
        "concurrency_key": concurrency_key or None,
        "on_conflict": cast("OnConflict", on_conflict),
    }
    if wait:
        return server.ask(lambda client: _start_and_wait(client, workflow, data, options, timeout, as_json=as_json))
    return server.ask(lambda client: _start(client, workflow, data, options, as_json=as_json))


async def _start(client: Kagzi, workflow: str, data: bytes | None, options: StartKeywords, *, as_json: bool) -> int:
    run, _ = await _acknowledged(client, workflow, data, options, wait=False)
    view = {
        "run_id": run.id,
        "workflow_id": run.workflow_id,
        "status": str(run.last_status),
        "created": run.created,
        "url": run.url or None,
    }
    put_json(view) if as_json else put(run.id)
    return Exit.OK


async def _start_and_wait(
    client: Kagzi,
    workflow: str,
    data: bytes | None,
    options: StartKeywords,
    timeout: timedelta | None,  # noqa: ASYNC109  of the option, which is also shown
    *,
    as_json: bool,
) -> int:
    run, served = await _acknowledged(client, workflow, data, options, wait=True)
    notice = asyncio.create_task(_notice_missing_worker(client, workflow, run)) if served else None
    try:
        end = await run.wait(timeout=timeout)
    except TimeoutError:
        end = await run.info()
        while end.continued_as:
            end = await client.get(end.continued_as).info()
    except asyncio.CancelledError:  # Ctrl-C
        say(f"interrupted; run {run.id} goes on")
        hint(_way_back(run.id))
        raise
    finally:
        if notice is not None:
            notice.cancel()
    return _put_end(end, as_json=as_json, run_id=run.id, workflow_id=run.workflow_id)


async def _acknowledged(
    client: Kagzi, workflow: str, data: bytes | None, options: StartKeywords, *, wait: bool
) -> tuple[Run[Any], bool]:
    """The run, and whether a worker is known to serve it."""
    from ...sdk.client.start import ABSENT
    from ...sdk.client.unserved import UNSERVED

    warnings: list[str] = []
    try:
        with UNSERVED.shown_by(warnings.append):
            run = await client.start(workflow, ABSENT if data is None else Raw(data), **options)
    except asyncio.CancelledError:  # Ctrl-C
        say("interrupted before the server answered: the run may have been started")
        hint(f"kagzi list --workflow {workflow}{same_server()} shows whether it was")
        raise
    if not run.created:
        say(f"run {run.id} exists already, with id {run.workflow_id!r}")
    elif wait:
        say(f"run {run.id} started")
    for warning in warnings:
        warn(warning)
        hint("start a worker that has it: kagzi worker FILE")
    return run, not warnings


async def _notice_missing_worker(client: Kagzi, workflow: str, run: Run[Any]) -> None:
    """Say once that the run waits for a worker, if it does. Never the reason why the command fails."""
    from ...core.errors import KagziError

    await asyncio.sleep(NO_WORKER_NOTICE_S)
    try:
        if [worker async for worker in client.workers.list(status="online", workflow=workflow, limit=1)]:
            return
        others = [worker.workflows async for worker in client.workers.list(status="online", limit=_WORKERS_ASKED)]
    except KagziError:
        return
    names = sorted({name for served in others for name, _ in served})
    served = f"Workers here serve: {', '.join(names)}." if names else "No worker is connected at all."
    warn(
        f"no worker serves {workflow!r} in namespace {str(run.namespace)!r}; run {run.id} waits for one. {served}\n"
        f"         Start a worker that has it: kagzi worker FILE"
    )


def _way_back(run_id: str) -> str:
    where = same_server()
    return f"kagzi get {run_id}{where} shows it, kagzi tail {run_id}{where} follows it to its end"


def _put_end(end: RunInfo, *, as_json: bool, run_id: str, workflow_id: str) -> int:
    from .views import error_view, payload_view, value_text

    view: dict[str, Any] = {
        "run_id": run_id,
        "workflow_id": workflow_id,
        "status": str(end.status),
        "output": payload_view(end.output, end.encoding),
        "error": error_view(end.error),
    }
    if as_json:
        put_json(view)
    if not end.status.ended:
        fail(f"run {run_id} is still {end.status} after the timeout; it goes on", _way_back(run_id))
        return Exit.TIMED_OUT
    if end.status == "completed":
        if not as_json:
            put(value_text(view["output"]))
        return Exit.OK
    text = end.error.text if end.error else ""
    what = "was cancelled" if end.status == "cancelled" else end.status
    fail(
        f"run {run_id} {what}" + (f": {text}" if text else ""),
        f"kagzi get {run_id} --steps{same_server()} shows what it did",
    )
    return Exit.FAILED

"""`kagzi start`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

import click
from msgspec import Raw

from ...core.text.commands import quoted
from ..console import hint, put, say, say_page, warn
from ..exits import Exit, Stop
from ..option_names import in_options
from ..options import DURATION, PAIR, Kebab, Server, same_server
from ..output import Output, server_command
from ..views import error_view
from .inputs import read_input, text_option
from .pages import put_run
from .views import payload_view, value_text

if TYPE_CHECKING:
    from ...core.errors import InvalidArgument
    from ...sdk.client.client import Kagzi
    from ...sdk.client.run import Run
    from ...sdk.client.run_records import RunInfo
    from ...sdk.client.start import StartKeywords

NO_WORKER_NOTICE_S = 1.5
_WORKERS_LISTED = 1_000
ON_CONFLICT = ("existing", "existing_or_completed", "fail", "replace")


@click.command()
@click.argument("workflow")
@click.argument("input", nargs=-1)
@text_option("INPUT")
@click.option("--id", metavar="ID", help="Your own id for the run, unique among the open ones.")
@click.option("--wait", is_flag=True, help="Wait for the run to end and print its result.")
@click.option("--timeout", type=DURATION, help="With --wait: wait at most this long, then exit with code 124.")
@click.option("--delay", type=DURATION, help="Start the run this much later.")
@click.option("--label", "labels", multiple=True, type=PAIR, help="Label the run. Repeatable.")
@click.option("--version", metavar="VERSION", help="Version of the workflow.  [default: its default version]")
@click.option(
    "--priority",
    type=int,
    default=0,
    show_default=True,
    metavar="N",
    help="Waiting runs with a higher priority begin first.",
)
@click.option("--concurrency-key", metavar="KEY", help="Key that per-key limits count by, such as a customer.")
@click.option(
    "--on-conflict",
    type=Kebab(ON_CONFLICT),
    default="existing",
    show_default=True,
    help="What to do if an open run has the same id.",
)
@server_command
def start(
    *,
    workflow: str,
    input: Sequence[str],
    as_text: bool,
    wait: bool,
    timeout: timedelta | None,
    labels: Sequence[tuple[str, str]],
    server: Server,
    **options: Any,
) -> Output:
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
    keywords = cast(
        "StartKeywords", {"labels": dict(labels), **{name: options[name] for name in options if options[name]}}
    )
    if wait:
        return server.ask(lambda client: _start_and_wait(client, workflow, data, keywords, timeout))
    run, _ = server.ask(lambda client: _start(client, workflow, data, keywords, wait=False))
    view = {"run_id": run.id, "workflow_id": run.workflow_id, "status": str(run.last_status), "created": run.created}
    return Output({**view, "url": run.url or None}, lambda: put_run(run))


def _input_remedy(workflow: str, data: bytes | None, error: InvalidArgument) -> str:
    """What to type instead, if the value was probably parsed differently from what was meant; or empty."""
    if error.field != "input":
        return ""
    if data is None:
        return f"no INPUT was given: kagzi start {quoted(workflow)} INPUT"
    is_bare = data[:1] not in (b'"', b"{", b"[")
    return "to send it as text, add --text" if is_bare and "expected string" in error.message else ""


async def _start_and_wait(
    client: Kagzi,
    workflow: str,
    data: bytes | None,
    options: StartKeywords,
    timeout: timedelta | None,  # noqa: ASYNC109  the option's value, which is also shown
) -> Output:
    run, served = await _start(client, workflow, data, options, wait=True)
    notice = asyncio.create_task(_notice_missing_worker(client, workflow, run)) if served else None
    try:
        end = await run.wait(timeout=timeout)
    except TimeoutError:
        end = await run.info()
        while end.continued_as:
            end = await client.get(end.continued_as).info()
    except asyncio.CancelledError:  # Ctrl-C
        say(f"interrupted; run {run.id} continues")
        hint(_way_back(run.id))
        raise
    finally:
        if notice is not None:
            notice.cancel()
    return _output(end, run.id, run.workflow_id)


async def _start(
    client: Kagzi, workflow: str, data: bytes | None, options: StartKeywords, *, wait: bool
) -> tuple[Run[Any], bool]:
    """The run, and whether a worker is known to serve it."""
    from ...core.errors import InvalidArgument
    from ...sdk.client.start import ABSENT
    from ...sdk.client.unserved import UNSERVED

    warnings: list[str] = []
    try:
        with UNSERVED.shown_by(warnings.append):
            run = await client.start(workflow, ABSENT if data is None else Raw(data), **options)
    except asyncio.CancelledError:  # Ctrl-C
        say("interrupted before the server responded: the run may have been started")
        hint(f"kagzi list --workflow {quoted(workflow)}{same_server()} shows whether it was started")
        raise
    except InvalidArgument as error:
        remedy = _input_remedy(workflow, data, error)
        if not remedy:
            raise
        command = click.get_current_context().command
        raise Stop(Exit.REFUSED, in_options(str(error), command, error.field), remedy) from error
    if not run.created:
        say(f"run {run.id} already exists, with id {run.workflow_id!r}")
    elif wait:
        say(f"run {run.id} started")
        say_page(run.url)
    for warning in warnings:
        warn(warning)
        hint("start a worker that serves it: kagzi worker FILE")
    return run, not warnings


async def _notice_missing_worker(client: Kagzi, workflow: str, run: Run[Any]) -> None:
    """Prints once that the run waits for a worker, if it does. Never makes the command fail."""
    from ...core.errors import KagziError

    await asyncio.sleep(NO_WORKER_NOTICE_S)
    try:
        if [worker async for worker in client.workers.list(status="online", workflow=workflow, limit=1)]:
            return
        others = [worker.workflows async for worker in client.workers.list(status="online", limit=_WORKERS_LISTED)]
    except KagziError:
        return
    names = sorted({name for served in others for name, _ in served})
    served = f"Workers here serve: {', '.join(names)}." if names else "No worker is connected."
    warn(
        f"no worker serves {workflow!r} in namespace {str(run.namespace)!r}; run {run.id} waits for one. {served}\n"
        f"         Start a worker that serves it: kagzi worker FILE"
    )


def _way_back(run_id: str) -> str:
    where = same_server()
    return f"kagzi get {quoted(run_id)}{where} shows it, kagzi tail {quoted(run_id)}{where} follows it to its end"


def _output(end: RunInfo, run_id: str, workflow_id: str) -> Output:
    """The end of a run, which may have continued as new; shown under the ids it was started with."""
    view: dict[str, Any] = {
        "run_id": run_id,
        "workflow_id": workflow_id,
        "status": str(end.status),
        "output": payload_view(end.output, end.encoding),
        "error": error_view(end.error),
    }
    if end.status == "completed":
        return Output(view, lambda: put(value_text(view["output"])))
    if not end.status.ended:
        text = f"run {run_id} is still {end.status} after the timeout; it continues"
        return Output(view, lambda: None, stop=Stop(Exit.TIMED_OUT, text, _way_back(run_id)))
    what = "was cancelled" if end.status == "cancelled" else end.status
    text = f"run {run_id} {what}" + (f": {end.error.text}" if end.error and end.error.text else "")
    remedy = f"kagzi get {quoted(run_id)} --steps{same_server()} shows what it did"
    return Output(view, lambda: None, stop=Stop(Exit.FAILED, text, remedy))

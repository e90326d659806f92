"""`kagzi start`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

import click

from ..console import fail, hint, put, put_json, say, warn
from ..exits import Exit
from ..options import Kebab, address_options, duration, json_option, key_value, same_server
from .inputs import read_input, text_option

if TYPE_CHECKING:
    from ...core.commands import OnConflict
    from ...v1 import workflow_pb2
    from ..connection import ServerConnection

NO_WORKER_NOTICE_S = 1.5
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
@address_options
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
    address: str | None,
    namespace: str | None,
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
    letter = _letter(
        workflow=workflow,
        data=data,
        workflow_id=workflow_id,
        delay=delay,
        labels=dict(labels),
        version=version,
        on_conflict=cast("OnConflict", on_conflict),
    )
    letter.priority, letter.concurrency_key = priority, concurrency_key
    return asyncio.run(
        _start(letter, wait=wait, patience=timeout, as_json=as_json, address=address, namespace=namespace)
    )


def _letter(
    *,
    workflow: str,
    data: bytes | None,
    workflow_id: str,
    delay: timedelta | None,
    labels: dict[str, str],
    version: str,
    on_conflict: OnConflict,
) -> workflow_pb2.StartWorkflowRequest:
    from ...core.times import us_from_timedelta
    from ...system import SystemIds
    from ...v1 import common_pb2, workflow_pb2
    from ...wire.common import write_duration
    from ...wire.enums import ON_CONFLICT_TO_WIRE

    return workflow_pb2.StartWorkflowRequest(
        workflow_type=workflow,
        workflow_id=workflow_id,
        input=None if data is None else common_pb2.Payload(data=data),
        delay=None if delay is None else write_duration(us_from_timedelta(delay)),
        labels=labels,
        version=version,
        on_conflict=ON_CONFLICT_TO_WIRE[on_conflict],
        request_id=SystemIds().token(),
    )


async def _start(
    letter: workflow_pb2.StartWorkflowRequest,
    *,
    wait: bool,
    patience: timedelta | None,
    as_json: bool,
    address: str | None,
    namespace: str | None,
) -> int:
    from ..connection import connected
    from .views import run_status

    async with connected(address, namespace) as server:
        letter.namespace_id = server.namespace
        started = await _acknowledged(server, letter)
        if started.already_exists:
            say(f"run {started.run_id} exists already, with id {started.workflow_id!r}")
        elif wait:
            say(f"run {started.run_id} started")
        if started.warning:
            warn(started.warning)
            hint("start a worker that has it: kagzi worker FILE")
        if not wait:
            view = {
                "run_id": started.run_id,
                "workflow_id": started.workflow_id,
                "status": str(run_status(started.status)),
                "created": not started.already_exists,
                "url": started.url or None,
            }
            put_json(view) if as_json else put(started.run_id)
            return Exit.OK
        notice = None
        if not started.warning:
            notice = asyncio.create_task(_notice_missing_worker(server, letter.workflow_type, started.run_id))
        try:
            outcome = await _wait(server, started.run_id, patience)
        except asyncio.CancelledError:  # Ctrl-C
            say(f"interrupted; run {started.run_id} goes on")
            hint(_way_back(started.run_id))
            raise
        finally:
            if notice is not None:
                notice.cancel()
        return _put_outcome(outcome, as_json=as_json, run_id=started.run_id, workflow_id=started.workflow_id)


async def _acknowledged(
    server: ServerConnection, letter: workflow_pb2.StartWorkflowRequest
) -> workflow_pb2.StartWorkflowResponse:
    try:
        return await server.start(letter)
    except asyncio.CancelledError:  # Ctrl-C
        say("interrupted before the server answered: the run may have been started")
        hint(f"kagzi list --workflow {letter.workflow_type}{same_server()} shows whether it was")
        raise


async def _wait(
    server: ServerConnection, run_id: str, patience: timedelta | None
) -> workflow_pb2.RunOutcome | workflow_pb2.WorkflowStatus:
    """How the run ended (or the one it was continued as), or its status when the time was up."""
    from ..connection import WAIT_POLL_S

    loop = asyncio.get_running_loop()
    end = None if patience is None else loop.time() + patience.total_seconds()
    while True:
        left_s = WAIT_POLL_S if end is None else max(end - loop.time(), 0.0)
        answer = await server.wait(run_id, left_s)
        if answer.ended and answer.outcome.continued_as:
            run_id = answer.outcome.continued_as
            continue
        if answer.ended:
            return answer.outcome
        if end is not None and loop.time() >= end:
            return answer.status


async def _notice_missing_worker(server: ServerConnection, workflow: str, run_id: str) -> None:
    """Say once that the run waits for a worker, if it does. Never the reason why the command fails."""
    from ...core.errors import KagziError

    await asyncio.sleep(NO_WORKER_NOTICE_S)
    try:
        if await server.workers(workflow):
            return
        others = sorted({name for worker in await server.workers() for name in worker.workflow_types})
    except KagziError:
        return
    served = f"Workers here serve: {', '.join(others)}." if others else "No worker is connected at all."
    warn(
        f"no worker serves {workflow!r} in namespace {server.namespace!r}; run {run_id} waits for one. {served}\n"
        f"         Start a worker that has it: kagzi worker FILE"
    )


def _way_back(run_id: str) -> str:
    where = same_server()
    return f"kagzi get {run_id}{where} shows it, kagzi tail {run_id}{where} follows it to its end"


def _put_outcome(
    outcome: workflow_pb2.RunOutcome | workflow_pb2.WorkflowStatus, *, as_json: bool, run_id: str, workflow_id: str
) -> int:
    from .views import error_view, payload_view, run_status, value_text

    view: dict[str, Any] = {"run_id": run_id, "workflow_id": workflow_id, "status": None, "output": None, "error": None}
    if isinstance(outcome, int):
        view["status"] = str(run_status(outcome))
        if as_json:
            put_json(view)
        fail(
            f"run {run_id} is still {view['status']} after the timeout; it goes on",
            _way_back(run_id),
        )
        return Exit.TIMED_OUT
    view["status"] = str(run_status(outcome.status))
    view["output"] = payload_view(outcome.output) if outcome.HasField("output") else None
    view["error"] = error_view(outcome.error) if outcome.HasField("error") else None
    if as_json:
        put_json(view)
    if view["status"] == "completed":
        if not as_json:
            put(value_text(view["output"]))
        return Exit.OK
    text = view["error"]["text"] if view["error"] else ""
    what = "was cancelled" if view["status"] == "cancelled" else view["status"]
    fail(
        f"run {run_id} {what}" + (f": {text}" if text else ""),
        f"kagzi get {run_id} --steps{same_server()} shows what it did",
    )
    return Exit.FAILED

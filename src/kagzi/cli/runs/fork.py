"""`kagzi fork`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
from msgspec import Raw

from ..console import put, put_json
from ..exits import Exit
from ..options import Server, json_option, key_value, server_options
from .inputs import json_or_string

if TYPE_CHECKING:
    from ...sdk.client.client import Kagzi
    from ...sdk.client.run import Run


@click.command()
@click.argument("run", metavar="RUN")
@click.option(
    "--from-step",
    default="",
    metavar="STEP",
    help="First step to run anew; see kagzi get RUN --steps.  [default: go on from where RUN is]",
)
@click.option(
    "--output",
    "outputs",
    multiple=True,
    type=key_value,
    metavar="STEP=VALUE",
    help="Result to use for a step instead of the recorded one: JSON if it is valid, else text. Repeatable.",
)
@click.option(
    "--version", default="", metavar="VERSION", help="Version of the workflow for the new run.  [default: that of RUN]"
)
@click.option("--id", "workflow_id", default="", metavar="ID", help="Your own id for the new run.")
@json_option
@server_options
def fork(
    *,
    run: str,
    from_step: str,
    outputs: Sequence[tuple[str, str]],
    version: str,
    workflow_id: str,
    as_json: bool,
    server: Server,
) -> int:
    """Start a new run with the recorded results of another one.

    RUN is a run id, the beginning of one, or a workflow id (its latest run). It is not changed.
    The new run has the results that RUN had before STEP began, or without --from-step all of them, and goes on from there. Prints its
    run id.
    """
    replaced = {step_id: Raw(_output(step_id, text)) for step_id, text in outputs}

    async def ask(client: Kagzi) -> tuple[str, Run[Any]]:
        from .find import find_run

        found = await find_run(client, run)
        options = {"version": version or None, "id": workflow_id or None}
        return found.id, await found.fork(from_step=from_step, outputs=replaced, **options)

    forked_from, forked = server.ask(ask)
    if as_json:
        view = {"run_id": forked.id, "workflow_id": forked.workflow_id, "forked_from": forked_from}
        put_json({**view, "url": forked.url or None})
    else:
        put(forked.id)
    return Exit.OK


def _output(step_id: str, text: str) -> bytes:
    remedy = "Correct it, or quote it as JSON if it is meant as text: '\"...\"'."
    return json_or_string(text, f"--output {step_id}", remedy)

"""`kagzi fork`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
from msgspec import Raw

from ..options import PAIR, Server
from ..output import Output, server_command
from .inputs import json_or_string
from .pages import put_run

if TYPE_CHECKING:
    from ...sdk.client.client import Kagzi
    from ...sdk.client.run import Run


@click.command()
@click.argument("run", metavar="RUN")
@click.option(
    "--from-step",
    default="",
    metavar="STEP",
    help="First step to run again; see kagzi get RUN --steps.  [default: continue where RUN is]",
)
@click.option(
    "--output",
    "outputs",
    multiple=True,
    type=PAIR,
    metavar="STEP=VALUE",
    help="Result to use for a step instead of the recorded one: JSON if it is valid, else text. Repeatable.",
)
@click.option(
    "--version", default="", metavar="VERSION", help="Version of the workflow for the new run.  [default: that of RUN]"
)
@click.option("--id", default="", metavar="ID", help="Your own id for the new run.")
@server_command
def fork(*, run: str, outputs: Sequence[tuple[str, str]], server: Server, **options: Any) -> Output:
    """Start a new run with the recorded results of another one.

    RUN is a run id, the beginning of one, or a workflow id (its latest run). It is not changed.
    The new run has the results that RUN had before STEP began, or without --from-step all of them, and continues from
    there. Prints its run id.
    """
    chosen = {name: value for name, value in options.items() if value}
    replaced = {step_id: Raw(_output(step_id, text)) for step_id, text in outputs}

    async def ask(client: Kagzi) -> tuple[str, Run[Any]]:
        from .find import find_run

        original = await find_run(client, run)
        return original.id, await original.fork(outputs=replaced, **chosen)

    forked_from, forked = server.ask(ask)
    view = {"run_id": forked.id, "workflow_id": forked.workflow_id, "forked_from": forked_from}
    return Output({**view, "url": forked.url or None}, lambda: put_run(forked))


def _output(step_id: str, text: str) -> bytes:
    remedy = "Correct it, or quote it as JSON if it is meant as text: '\"...\"'."
    return json_or_string(text, f"--output {step_id}", remedy)

"""`kagzi wake`: makes a retry, a sleep or a delayed start due now."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ...core.text.commands import quoted
from ..options import Server, same_server
from ..output import Output, server_command
from .pages import say_of_run

if TYPE_CHECKING:
    from ...sdk.client.client import Kagzi


@click.command()
@click.argument("run", metavar="RUN")
@click.argument("step", metavar="[STEP]", default="", required=False)
@server_command
def wake(*, run: str, step: str, server: Server) -> Output:
    """Wake a run: a retry, a sleep or a delayed start is due now.

    RUN is a run id, the beginning of one, or a workflow id (its latest run). STEP is the step to wake; see kagzi get
    RUN --steps. Without STEP: the run itself if it waits to begin, else its only step that waits for a time.
    The history records the wake. A run that waits for a signal needs the signal: kagzi signal.
    """
    return server.ask(lambda client: _woken(client, run, step))


async def _woken(client: Kagzi, name: str, step: str) -> Output:
    from .find import find_run

    run = await find_run(client, name)
    woken = await run.wake(step)
    what = f"{run.id} {step}".strip()
    if woken:
        text = f"{what} is awake. Follow it: kagzi tail {quoted(run.id)}{same_server()}"
    else:
        text = f"{what} was not waiting: nothing to wake"
    return Output(
        {"run_id": run.id, "step": step, "woken": woken, "status": str(run.last_status)}, lambda: say_of_run(run, text)
    )

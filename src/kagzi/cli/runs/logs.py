"""`kagzi logs`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ..console import put, say
from ..options import Server
from ..output import Output, server_command
from ..times import local_text
from ..views import view

if TYPE_CHECKING:
    from ...sdk.client.client import Kagzi
    from ...sdk.client.step_logs import LogLine, StepLogs


@click.command()
@click.argument("run", metavar="RUN")
@click.argument("step", metavar="[STEP]", default="")
@server_command
def logs(*, run: str, step: str, server: Server) -> Output:
    """Show what the steps of a run logged.

    The last 200 lines or 64 KiB of each step are kept. With STEP, the id of a step, shows only its lines. RUN is a run
    id, the beginning of one, or a workflow id (its latest run).
    """
    step_logs = server.ask(lambda client: _logs(client, run, step))
    lines = [view(line, "step", "at", "attempt", "level", "text") for line in step_logs.lines]
    return Output({"lines": lines, "dropped": step_logs.dropped}, lambda: _show(step_logs, step))


async def _logs(client: Kagzi, run: str, step: str) -> StepLogs:
    from .find import find_run

    return await (await find_run(client, run)).logs(step)


def _show(step_logs: StepLogs, step: str) -> None:
    for line in step_logs.lines:
        put(_text(line))
    if not step_logs.lines:
        say(f"Step {step} logged nothing." if step else "The steps of this run logged nothing.")
    if step_logs.dropped:
        say(f"{step_logs.dropped} earlier lines are not kept.")


def _text(line: LogLine) -> str:
    return f"{local_text(line.at)} {line.level:<7} {line.step} (attempt {line.attempt}): {line.text}"

"""`kagzi explain`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ..console import hint, put
from ..options import Server
from ..output import Output, server_command
from ..views import view

if TYPE_CHECKING:
    from ...core.records import Explanation
    from ...sdk.client.client import Kagzi


@click.command()
@click.argument("run", metavar="RUN")
@server_command
def explain(*, run: str, server: Server) -> Output:
    """Explain why a run is in its current state.

    RUN is a run id, the beginning of one, or a workflow id (its latest run).
    """
    run_id, explanation = server.ask(lambda client: _explain(client, run))

    def show() -> None:
        put(explanation.sentence)
        if explanation.remedy:
            hint(explanation.remedy)

    return Output({"run_id": run_id, **view(explanation, "sentence", "reason", "facts", "remedy?")}, show)


async def _explain(client: Kagzi, name: str) -> tuple[str, Explanation]:
    from .find import find_run

    run = await find_run(client, name)
    return run.id, await run.explain()

"""`kagzi explain`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ..console import hint, put, say_page
from ..options import Server
from ..output import Output, server_command
from ..times import with_local_times
from ..views import view

if TYPE_CHECKING:
    from ...core.records import Explanation
    from ...sdk.client.client import Kagzi
    from ...sdk.client.run import Run


@click.command()
@click.argument("run", metavar="RUN")
@server_command
def explain(*, run: str, server: Server) -> Output:
    """Explain why a run is in its current state.

    RUN is a run id, the beginning of one, or a workflow id (its latest run).
    """
    handle, explanation = server.ask(lambda client: _explain(client, run))

    def show() -> None:
        put(with_local_times(explanation.sentence))
        if explanation.remedy:
            hint(with_local_times(explanation.remedy))
        say_page(handle.url)

    return Output({"run_id": handle.id, **view(explanation, "sentence", "reason", "facts", "remedy?")}, show)


async def _explain(client: Kagzi, name: str) -> tuple[Run[Any], Explanation]:
    from .find import find_run

    run = await find_run(client, name)
    return run, await run.explain()

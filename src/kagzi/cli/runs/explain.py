"""`kagzi explain`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ..console import hint, put, put_json
from ..exits import Exit
from ..options import Server, json_option, server_options

if TYPE_CHECKING:
    from ...core.explanation import Explanation
    from ...sdk.client.client import Kagzi


@click.command()
@click.argument("run", metavar="RUN")
@json_option
@server_options
def explain(*, run: str, as_json: bool, server: Server) -> int:
    """Explain why a run is in its current state.

    RUN is a run id, the beginning of one, or a workflow id (its latest run).
    """
    run_id, explanation = server.ask(lambda client: _explain(client, run))
    if as_json:
        put_json(
            {
                "run_id": run_id,
                "sentence": explanation.sentence,
                "reason": explanation.reason,
                "facts": dict(explanation.facts),
                "remedy": explanation.remedy or None,
            }
        )
        return Exit.OK
    put(explanation.sentence)
    if explanation.remedy:
        hint(explanation.remedy)
    return Exit.OK


async def _explain(client: Kagzi, name: str) -> tuple[str, Explanation]:
    from .find import find_run

    run = await find_run(client, name)
    return run.id, await run.explain()

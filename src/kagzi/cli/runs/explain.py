"""`kagzi explain`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from ..console import hint, put, put_json
from ..exits import Exit
from ..options import address_options, json_option

if TYPE_CHECKING:
    from ...v1 import workflow_pb2


@click.command()
@click.argument("run", metavar="RUN")
@json_option
@address_options
def explain(run: str, as_json: bool, address: str | None, namespace: str | None) -> int:
    """Explain why a run is in its current state.

    RUN is a run id, the beginning of one, or a workflow id (its latest run).
    """
    run_id, answer = asyncio.run(_explain(run, address, namespace))
    if as_json:
        put_json(
            {
                "run_id": run_id,
                "sentence": answer.sentence,
                "reason": answer.reason,
                "facts": dict(answer.facts),
                "remedy": answer.remedy or None,
            }
        )
        return Exit.OK
    put(answer.sentence)
    if answer.remedy:
        hint(answer.remedy)
    return Exit.OK


async def _explain(
    run: str, address: str | None, namespace: str | None
) -> tuple[str, workflow_pb2.ExplainWorkflowResponse]:
    from ..connection import connected

    async with connected(address, namespace) as server:
        found = await server.find_run(run)
        return found.run_id, await server.explain(found.run_id)

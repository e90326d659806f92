"""`kagzi fork`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from ..console import put, put_json
from ..exits import Exit
from ..options import address_options, json_option, key_value
from .inputs import json_or_string

if TYPE_CHECKING:
    from ...v1 import workflow_pb2


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
@address_options
def fork(
    *,
    run: str,
    from_step: str,
    outputs: Sequence[tuple[str, str]],
    version: str,
    workflow_id: str,
    as_json: bool,
    address: str | None,
    namespace: str | None,
) -> int:
    """Start a new run with the recorded results of another one.

    RUN is a run id, the beginning of one, or a workflow id (its latest run). It is not changed.
    The new run has the results that RUN had before STEP began, or without --from-step all of them, and goes on from there. Prints its
    run id.
    """
    letter = _letter(from_step, outputs, version=version, workflow_id=workflow_id)
    forked = asyncio.run(_fork(run, letter, address, namespace))
    if as_json:
        view = {"run_id": forked.run_id, "workflow_id": forked.workflow_id, "forked_from": letter.run_id}
        put_json({**view, "url": forked.url or None})
    else:
        put(forked.run_id)
    return Exit.OK


def _letter(
    from_step: str, outputs: Sequence[tuple[str, str]], *, version: str, workflow_id: str
) -> workflow_pb2.ForkWorkflowRequest:
    from ...system import SystemIds
    from ...v1 import common_pb2, workflow_pb2

    return workflow_pb2.ForkWorkflowRequest(
        from_step=from_step,
        outputs={step_id: common_pb2.Payload(data=_output(step_id, text)) for step_id, text in outputs},
        version=version,
        workflow_id=workflow_id,
        request_id=SystemIds().token(),
    )


def _output(step_id: str, text: str) -> bytes:
    remedy = "Correct it, or quote it as JSON if it is meant as text: '\"...\"'."
    return json_or_string(text, f"--output {step_id}", remedy)


async def _fork(
    run: str, letter: workflow_pb2.ForkWorkflowRequest, address: str | None, namespace: str | None
) -> workflow_pb2.ForkWorkflowResponse:
    from ..connection import connected

    async with connected(address, namespace) as server:
        letter.namespace_id = server.namespace
        letter.run_id = (await server.find_run(run)).run_id
        return await server.fork(letter)

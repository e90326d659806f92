"""`kagzi signal`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from .console import put_json, say
from .exits import Exit
from .inputs import read_input
from .options import address_options, json_option

if TYPE_CHECKING:
    from ..v1 import workflow_pb2


@click.command()
@click.argument("run", metavar="RUN")
@click.argument("name")
@click.argument("value", nargs=-1)
@click.option("--request-id", default="", help="The same one sent twice is one signal.")
@json_option
@address_options
def signal(
    *,
    run: str,
    name: str,
    value: Sequence[str],
    request_id: str,
    as_json: bool,
    address: str | None,
    namespace: str | None,
) -> int:
    """Send a signal to a run.

    RUN is a run id, the beginning of one, or a workflow id (its latest run).

    \b
    VALUE   JSON if it parses, else a string      kagzi signal RUN approved true
            key=text and key:=json pairs          kagzi signal RUN decision approved:=true by=ada
            @file, or - for stdin                 kagzi signal RUN decision @decision.json
    """
    letter = _letter(name, read_input(value, sys.stdin.buffer.read), request_id)
    answer = asyncio.run(_signal(run, letter, address, namespace))
    if as_json:
        put_json({"run_id": letter.run_id, "signal": name, "delivered": answer.delivered})
    elif answer.delivered:
        say(f"{letter.run_id} was waiting for {name!r} and has it")
    else:
        say(f"{letter.run_id} does not wait for {name!r} yet: it is kept until the run does")
    return Exit.OK


def _letter(name: str, data: bytes | None, request_id: str) -> workflow_pb2.SignalWorkflowRequest:
    from ..system import SystemIds
    from ..v1 import common_pb2, workflow_pb2

    return workflow_pb2.SignalWorkflowRequest(
        signal_name=name,
        payload=common_pb2.Payload(data=b"null" if data is None else data),
        request_id=request_id or SystemIds().token(),
    )


async def _signal(
    run: str, letter: workflow_pb2.SignalWorkflowRequest, address: str | None, namespace: str | None
) -> workflow_pb2.SignalWorkflowResponse:
    from .connection import connected

    async with connected(address, namespace) as server:
        letter.namespace_id = server.namespace
        letter.run_id = (await server.find_run(run)).run_id
        return await server.signal(letter)

"""`kagzi signal`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from ..console import put_json, say
from ..exits import Exit
from ..options import address_options, json_option
from .inputs import read_input, text_option

if TYPE_CHECKING:
    from ...v1 import workflow_pb2


@click.command()
@click.argument("run", metavar="RUN")
@click.argument("name")
@click.argument("value", nargs=-1)
@text_option("VALUE")
@click.option("--replace", is_flag=True, help="Replace a value that the run has not received yet by VALUE.")
@click.option("--drop", is_flag=True, help="Drop a value that the run has not received yet; it waits for the next one.")
@click.option("--request-id", default="", metavar="ID", help="Id of this request: sent twice, it is one signal.")
@json_option
@address_options
def signal(
    *,
    run: str,
    name: str,
    value: Sequence[str],
    as_text: bool,
    replace: bool,
    drop: bool,
    request_id: str,
    as_json: bool,
    address: str | None,
    namespace: str | None,
) -> int:
    """Send a signal to a run.

    RUN is a run id, the beginning of one, or a workflow id (its latest run).

    \b
    VALUE   JSON if it is valid, else text        kagzi signal RUN approved true
            key=text and key:=json pairs          kagzi signal RUN decision approved:=true by=ada
            @file, or - for stdin                 kagzi signal RUN decision @decision.json

    \b
    A value of the wrong type pauses the run. Then
            kagzi signal RUN approved true --replace     gives it another value, and it goes on
            kagzi signal RUN approved --drop             drops the value, and it waits for the next one
    Both also work on values that the run has not waited for yet, the oldest of that name first.
    """
    if replace and drop:
        raise click.UsageError("--replace and --drop cannot be combined.")
    if drop and value:
        raise click.UsageError("--drop takes no VALUE. To give the run another value, use --replace.")
    data = read_input(value, sys.stdin.buffer.read, as_text=as_text, what="VALUE")
    if replace or drop:
        return _replace(
            run, _replacement(name, None if drop else data or b"null", request_id), as_json, address, namespace
        )
    letter = _letter(name, data, request_id)
    answer = asyncio.run(_signal(run, letter, address, namespace))
    if as_json:
        put_json({"run_id": letter.run_id, "signal": name, "delivered": answer.delivered})
    elif answer.delivered:
        say(f"{letter.run_id} was waiting for {name!r} and received it")
    else:
        say(f"{letter.run_id} is not waiting for {name!r} yet: the signal is kept until it does")
    return Exit.OK


def _letter(name: str, data: bytes | None, request_id: str) -> workflow_pb2.SignalWorkflowRequest:
    from ...system import SystemIds
    from ...v1 import common_pb2, workflow_pb2

    return workflow_pb2.SignalWorkflowRequest(
        signal_name=name,
        payload=common_pb2.Payload(data=b"null" if data is None else data),
        request_id=request_id or SystemIds().token(),
    )


async def _signal(
    run: str, letter: workflow_pb2.SignalWorkflowRequest, address: str | None, namespace: str | None
) -> workflow_pb2.SignalWorkflowResponse:
    from ..connection import connected

    async with connected(address, namespace) as server:
        letter.namespace_id = server.namespace
        letter.run_id = (await server.find_run(run)).run_id
        return await server.signal(letter)


# --- a value that was not received ------------------------------------------------------------------------------------


def _replacement(name: str, data: bytes | None, request_id: str) -> workflow_pb2.ReplaceSignalRequest:
    """No data: the value is dropped."""
    from ...system import SystemIds
    from ...v1 import common_pb2, workflow_pb2

    request = workflow_pb2.ReplaceSignalRequest(signal_name=name, request_id=request_id or SystemIds().token())
    if data is None:
        request.drop = True
    else:
        request.payload.CopyFrom(common_pb2.Payload(data=data))
    return request


def _replace(
    run: str,
    request: workflow_pb2.ReplaceSignalRequest,
    as_json: bool,
    address: str | None,
    namespace: str | None,
) -> int:
    answer = asyncio.run(_send_replacement(run, request, address, namespace))
    name, done = request.signal_name, "dropped" if request.drop else "replaced"
    if as_json:
        put_json({"run_id": answer.run_id, "signal": name, done: True, "resumed": answer.resumed})
    elif answer.resumed:
        goes_on = "waits for the next one" if request.drop else "goes on"
        say(f"{answer.run_id}: the value of {name!r} was {done}; the run {goes_on}")
    else:
        say(f"{answer.run_id}: the value of {name!r}, which the run has not waited for yet, was {done}")
    return Exit.OK


async def _send_replacement(
    run: str, request: workflow_pb2.ReplaceSignalRequest, address: str | None, namespace: str | None
) -> workflow_pb2.ReplaceSignalResponse:
    from ..connection import connected

    async with connected(address, namespace) as server:
        request.namespace_id = server.namespace
        request.run_id = (await server.find_run(run)).run_id
        return await server.replace_signal(request)

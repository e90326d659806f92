"""`kagzi signal`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
from msgspec import Raw

from ..options import Server
from ..output import Output, server_command
from .inputs import read_input, text_option
from .pages import say_of_run

if TYPE_CHECKING:
    from ...sdk.client.client import Kagzi
    from ...sdk.client.run import Run


@click.command()
@click.argument("run", metavar="RUN")
@click.argument("name")
@click.argument("value", nargs=-1)
@text_option("VALUE")
@click.option("--replace", is_flag=True, help="Replace a value that the run has not received yet with VALUE.")
@click.option("--drop", is_flag=True, help="Drop a value that the run has not received yet; it waits for the next one.")
@click.option(
    "--request-id", default="", metavar="ID", help="Id of this request: a signal sent twice with it counts once."
)
@server_command
def signal(
    *,
    run: str,
    name: str,
    value: Sequence[str],
    as_text: bool,
    replace: bool,
    drop: bool,
    request_id: str,
    server: Server,
) -> Output:
    """Send a signal to a run.

    RUN is a run id, the beginning of one, or a workflow id (its latest run).

    \b
    VALUE   JSON if it is valid, else text        kagzi signal RUN approved true
            key=text and key:=json pairs          kagzi signal RUN decision approved:=true by=ada
            @file, or - for stdin                 kagzi signal RUN decision @decision.json

    \b
    A value of the wrong type pauses the run. Then
            kagzi signal RUN approved true --replace     replaces the value, and the run continues
            kagzi signal RUN approved --drop             drops the value, and the run waits for the next one
    Both also work on values that the run has not waited for yet, the oldest of that name first.
    """
    if replace and drop:
        raise click.UsageError("--replace and --drop cannot be combined.")
    if drop and value:
        raise click.UsageError("--drop takes no VALUE. To send another value, use --replace.")
    data = read_input(value, sys.stdin.buffer.read, as_text=as_text, what="VALUE") or b"null"

    async def send(client: Kagzi) -> tuple[Run[Any], bool]:
        from .find import find_run

        target = await find_run(client, run)
        if drop:
            return target, await target.drop_signal(name, request_id=request_id or None)
        return target, await target.signal(name, Raw(data), replace=replace, request_id=request_id or None)

    target, waited = server.ask(send)
    if replace or drop:
        return _replaced(target, name, waited, drop=drop)
    text = f"{target.id} is not waiting for {name!r} yet: the signal is kept until it does"
    if waited:
        text = f"{target.id} was waiting for {name!r} and received it"
    view = {"run_id": target.id, "signal": name, "delivered": waited}
    return Output(view, lambda: say_of_run(target, text))


def _replaced(run: Run[Any], name: str, resumed: bool, *, drop: bool) -> Output:
    done = "dropped" if drop else "replaced"
    text = f"{run.id}: the value of {name!r}, which the run has not waited for yet, was {done}"
    if resumed:
        continues = "waits for the next one" if drop else "continues"
        text = f"{run.id}: the value of {name!r} was {done}; the run {continues}"
    view = {"run_id": run.id, "signal": name, done: True, "resumed": resumed}
    return Output(view, lambda: say_of_run(run, text))

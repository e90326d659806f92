"""`kagzi outbox`."""

from __future__ import annotations

import asyncio
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ..console import put, say
from ..exits import Exit
from ..groups import Commands
from ..output import Decorated, Output, Rows, json_output
from ..views import cell, json_value

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from ...store.postgres.outbox.outbox import PostgresOutbox

Result = TypeVar("Result")
_FIELDS = ("id", "namespace", "workflow_type", "workflow_id", "created_at", "due_at", "attempts", "refused_at", "error")


def _outbox_option(command: Decorated) -> Decorated:
    """The command receives it as `url`."""

    @click.option(
        "--outbox",
        "url",
        envvar="KAGZI_OUTBOX",
        required=True,
        metavar="URL",
        help="Your PostgreSQL database, as for kagzi server --outbox.  [env: KAGZI_OUTBOX]",
    )
    @wraps(command)
    def with_url(**options: object) -> int:
        return command(**options)

    return with_url


def _chosen(command: Decorated) -> Decorated:
    @click.argument("ids", metavar="[ID]...", type=int, nargs=-1)
    @click.option("--all", "every", is_flag=True, help="Every start that was refused.")
    @wraps(command)
    def with_ids(*, ids: tuple[int, ...], every: bool, **options: object) -> int:
        if bool(ids) == every:
            raise click.UsageError("Give the ids of starts that were refused (kagzi outbox list), or --all.")
        return command(ids=ids, every=every, **options)

    return with_ids


@click.group(cls=Commands)
def outbox() -> None:
    """List, retry and drop starts by client.start_in that a server refused."""


@outbox.command("list")
@click.option("--waiting", is_flag=True, help="Also those that were not refused.")
@click.option(
    "--limit",
    type=click.IntRange(1, 100_000),
    default=100,
    show_default=True,
    metavar="N",
    help="Show at most this many.",
)
@click.option("--jsonl", is_flag=True, help="Print JSON, one start per line.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@_outbox_option
def list_outbox(*, url: str, waiting: bool, limit: int, as_json: bool, jsonl: bool) -> int:
    """List the starts that were refused, with the reason."""
    records = _ask(url, lambda outbox: outbox.rows(refused=not waiting, limit=limit))
    listed = Rows([dict(record) for record in records], _view, _row, "No start was refused.")
    return listed.put(as_json=as_json, jsonl=jsonl)


@outbox.command()
@_chosen
@_outbox_option
@json_output
def retry(*, url: str, ids: tuple[int, ...], every: bool) -> Output:
    """Retry refused starts."""
    count = _ask(url, lambda outbox: outbox.retry(ids, every=every))
    return Output({"retried": count}, lambda: say(f"{count} starts are tried again"), _code(count))


@outbox.command()
@_chosen
@_outbox_option
@json_output
def drop(*, url: str, ids: tuple[int, ...], every: bool) -> Output:
    """Drop refused starts: no run is started for them."""
    count = _ask(url, lambda outbox: outbox.drop(ids, every=every))
    return Output({"dropped": count}, lambda: say(f"{count} starts are deleted"), _code(count))


@outbox.command()
@json_output
def sql() -> Output:
    """Print the statements that create the table kagzi_outbox, for your migrations. You can safely repeat them."""
    from ...sdk.transactions.tables import OUTBOX, ddl

    text = ddl(OUTBOX, "postgresql")
    return Output({"sql": text}, lambda: put(text))


def _code(count: int) -> Exit:
    return Exit.OK if count else Exit.NOT_FOUND


def _ask(url: str, act: Callable[[PostgresOutbox], Awaitable[Result]]) -> Result:
    """Raises click.BadParameter."""
    from ...core.errors import InvalidArgument
    from ...server.database import parse_outbox
    from ...store.postgres.outbox.outbox import PostgresOutbox

    try:
        opened = PostgresOutbox(parse_outbox(url, "outbox"))
    except InvalidArgument as error:
        raise click.BadParameter(error.message, param_hint="'--outbox'") from error

    async def ask() -> Result:
        try:
            return await act(opened)
        finally:
            await opened.close()

    return asyncio.run(ask())


def _view(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: json_value(record[name]) for name in _FIELDS}


def _row(record: Mapping[str, Any]) -> dict[str, str]:
    shown = ("id", "namespace", "workflow_type", "workflow_id", "created_at", "attempts", "error")
    return {name.replace("_", " "): cell(record[name]) for name in shown}

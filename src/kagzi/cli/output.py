"""The results of commands, printed for people or as JSON."""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, Generic, NamedTuple, TypeVar

import click

from .console import hint, put_json, put_table, say
from .exits import Exit, Stop
from .options import server_options

Record = TypeVar("Record")
Decorated = Callable[..., int]


class Output(NamedTuple):
    """With --json prints `view`; otherwise `show` prints for people. The command then ends with `code`, or `stop`."""

    view: Any
    show: Callable[[], object]
    code: Exit = Exit.OK
    stop: Stop | None = None


class Rows(NamedTuple, Generic[Record]):
    """A list. Prints each record as `view` with --json and --jsonl, otherwise as a `row` of a table."""

    records: Sequence[Record]
    view: Callable[[Record], Mapping[str, Any]]
    row: Callable[[Record], Mapping[str, str]]
    empty: str  # message if there are no records
    more: str = ""  # hint if there are more records than shown

    def put(self, *, as_json: bool, jsonl: bool) -> int:
        if jsonl:
            for record in self.records:
                put_json(self.view(record), lines=True)
        elif as_json:
            put_json([self.view(record) for record in self.records])
        elif self.records:
            put_table([self.row(record) for record in self.records])
        else:
            say(self.empty)
        if self.more:
            hint(self.more)
        return Exit.OK


def json_output(command: Callable[..., Output]) -> Decorated:
    """Adds `--json` and prints the result of the command."""

    @click.option("--json", "as_json", is_flag=True, help="Print JSON.")
    @wraps(command)
    def printing(*, as_json: bool, **options: Any) -> int:
        output = command(**options)
        put_json(output.view) if as_json else output.show()
        if output.stop is not None:
            raise output.stop
        return output.code

    return printing


def server_command(command: Callable[..., Output]) -> Decorated:
    """A command that talks to a server: adds `--json` and the server options, which it receives as `server`."""
    return json_output(server_options(command))


def list_command(what: str, limit: int | None = None) -> Callable[[Callable[..., Rows[Any]]], Decorated]:
    """A command that lists: like `server_command` with `--jsonl`, and with `--limit` for lists that can be long."""

    def add(command: Callable[..., Rows[Any]]) -> Decorated:
        connected = server_options(command)

        @click.option("--jsonl", is_flag=True, help=f"Print JSON, one {what} per line.")
        @click.option("--json", "as_json", is_flag=True, help="Print JSON.")
        @wraps(connected)
        def printing(*, as_json: bool, jsonl: bool, **options: Any) -> int:
            return connected(**options).put(as_json=as_json, jsonl=jsonl)

        if limit is None:
            return printing
        count = click.IntRange(1, 100_000)
        text = "Show at most this many."
        return click.option("--limit", type=count, default=limit, show_default=True, metavar="N", help=text)(printing)

    return add

"""Types and options that several commands share. A bad value is a usage error that names its option."""

import re
import shlex
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from datetime import timedelta
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from ..core.duration import parse_duration
from ..core.errors import InvalidArgument

if TYPE_CHECKING:
    from ..sdk.client.client import Kagzi

Answer = TypeVar("Answer")
Command = TypeVar("Command", bound=Callable[..., Any])

NONE = "none"

_KEY_VALUE = re.compile(r"([^=]+)=(.*)", re.DOTALL)


if TYPE_CHECKING:  # generic for those who check types, in newer releases only
    _Type = click.ParamType[Any]
else:
    _Type = click.ParamType


class Limit(_Type):
    """A click type: a number, or `none` to remove the limit."""

    name = "limit"

    def __init__(self, number: type[int] | type[float]) -> None:
        self._number = number

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == NONE:
            return NONE
        try:
            return self._number(value)
        except ValueError:
            self.fail(f"{value!r} is not a number. Give one, or none to remove the limit.", param, ctx)


def duration(value: str | timedelta) -> timedelta:
    """A click type: `30s`, `5m 30s`, `1 day`. click adds the option's name to what is raised."""
    try:
        return parse_duration(value)
    except InvalidArgument as error:
        raise click.BadParameter(error.message.removeprefix("duration=")) from error


def key_value(value: str | tuple[str, str]) -> tuple[str, str]:
    """A click type: `key=value`."""
    if isinstance(value, tuple):  # a default that was converted before
        return value
    found = _KEY_VALUE.fullmatch(value)
    if found is None:
        raise click.BadParameter(f"{value!r} is not a pair. Write key=value.")
    return found[1], found[2]


class Server(NamedTuple):
    """Where a command connects, as `--address` and `--namespace` say."""

    address: str | None
    namespace: str | None

    def ask(self, call: "Callable[[Kagzi], Coroutine[Any, Any, Answer]]") -> "Answer":
        """Connect a client, make the call with it, and close it. Raises Stop(CANNOT_CONNECT) with what to do about it."""
        import asyncio

        from .connection import connected

        async def connect_and_call() -> Answer:
            async with connected(self.address, self.namespace) as client:
                return await call(client)

        return asyncio.run(connect_and_call())

    def ask_all(self, call: "Callable[[Kagzi], AsyncIterator[Answer]]") -> "list[Answer]":
        """The rows of a list."""

        async def gather(client: "Kagzi") -> list[Answer]:
            return [row async for row in call(client)]

        return self.ask(gather)


def server_options(command: Callable[..., int]) -> Callable[..., int]:
    """`--address` and `--namespace`, which every command has that talks to a server. It gets both as `server`."""

    @click.option(
        "--address",
        envvar="KAGZI_ADDRESS",
        metavar="ADDRESS",
        help="Server to connect to: HOST:PORT, https://HOST or sqlite:///FILE.  "
        "[env: KAGZI_ADDRESS; default: localhost:50051]",
    )
    @click.option(
        "--namespace",
        "-n",
        envvar="KAGZI_NAMESPACE",
        metavar="NAMESPACE",
        help="Namespace to use.  [env: KAGZI_NAMESPACE; default: default]",
    )
    @wraps(command)
    def with_server(*, address: str | None, namespace: str | None, **options: Any) -> int:
        return command(server=Server(address, namespace), **options)

    return with_server


def same_server() -> str:
    """` --address far:1 --namespace team`, as far as they were typed: for a command that is to be typed next."""
    context = click.get_current_context(silent=True)
    if context is None:
        return ""
    typed = click.core.ParameterSource.COMMANDLINE
    names = [name for name in ("address", "namespace") if context.get_parameter_source(name) is typed]
    return "".join(f" --{name} {shlex.quote(context.params[name])}" for name in names)


def json_option(command: Command) -> Command:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


def list_options(what: str, limit: int | None = None) -> Callable[[Command], Command]:
    """`--json` and `--jsonl`, and `--limit` where lists can be long, as every list has them."""

    def add(command: Command) -> Command:
        command = json_option(command)
        command = click.option("--jsonl", is_flag=True, help=f"Print JSON, one {what} per line.")(command)
        if limit is None:
            return command
        text = "Show at most this many."
        return click.option("--limit", type=click.IntRange(1, 100_000), default=limit, show_default=True, help=text)(
            command
        )

    return add


class Kebab(_Type):
    """A click type: one of `values`, which are shown as kebab-case and accepted with underscores as well."""

    name = "choice"

    def __init__(self, values: Sequence[str]) -> None:
        self._values = {kebab(value): value for value in values}

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return f"[{'|'.join(self._values)}]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if kebab(value) not in self._values:
            self.fail(f"{value!r} is not one of {', '.join(self._values)}.", param, ctx)
        return self._values[kebab(value)]


def kebab(word: str) -> str:
    """How choices are shown."""
    return word.replace("_", "-")

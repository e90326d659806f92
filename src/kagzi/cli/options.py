"""Types and options that several commands share. A bad value is a usage error that names its option."""

import re
import shlex
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from datetime import datetime, timedelta
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from ..core.duration import parse_duration
from ..core.errors import InvalidArgument
from .tls_options import NO_TLS_OPTIONS, TlsOptions

if TYPE_CHECKING:
    from ..sdk.client.client import Kagzi

Returned = TypeVar("Returned")
Command = TypeVar("Command", bound=Callable[..., Any])

NO_LIMIT = object()

_KEY_VALUE = re.compile(r"([^=]+)=(.*)", re.DOTALL)


if TYPE_CHECKING:  # generic in stubs, but at runtime in newer releases only
    _Type = click.ParamType[Any]
else:
    _Type = click.ParamType


class Converted(_Type):
    """A click type that converts a text with `convert`. `name` is shown in help."""

    def __init__(self, name: str, convert: Callable[[Any], Any]) -> None:
        self.name = name
        self._convert = convert

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return self._convert(value)  # click adds the name of the option to the error


class Limit(_Type):
    """A click type: a number, or `none` to remove the limit."""

    name = "n"

    def __init__(self, number: type[int] | type[float]) -> None:
        self._number = number

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value in ("none", NO_LIMIT):
            return NO_LIMIT
        try:
            return self._number(value)
        except ValueError:
            self.fail(f"{value!r} is not a number. Give one, or none to remove the limit.", param, ctx)


class Kebab(_Type):
    """A click type: one of `values`, shown in kebab-case; underscores are accepted too."""

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
    """Formats a choice for display."""
    return word.replace("_", "-")


def duration(value: str | timedelta) -> timedelta:
    """`30s`, `5m 30s`, `1 day`."""
    try:
        return parse_duration(value)
    except InvalidArgument as error:
        raise click.BadParameter(error.message.removeprefix("duration=")) from error


def key_value(value: str | tuple[str, str]) -> tuple[str, str]:
    if isinstance(value, tuple):  # a default that is already converted
        return value
    pair = _KEY_VALUE.fullmatch(value)
    if pair is None:
        raise click.BadParameter(f"{value!r} is not a pair. Write key=value.")
    return pair[1], pair[2]


def moment(value: str | datetime) -> datetime:
    """A time with its time zone, as in RFC 3339."""
    if isinstance(value, datetime):
        return value
    try:
        at = datetime.fromisoformat(value)
    except ValueError as error:
        raise click.BadParameter(f"{value!r} is not a time. Write for example 2026-03-29T06:00:00Z.") from error
    if at.tzinfo is None:
        raise click.BadParameter(f"{value!r} has no time zone. Write {value}Z for UTC, or {value}+02:00.")
    return at


DURATION = Converted("duration", duration)
PAIR = Converted("key=value", key_value)
TIME = Converted("time", moment)


def options(*stack: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """Combines options that several commands share, in the order of their help."""

    def add(command: Command) -> Command:
        for option in reversed(stack):
            command = option(command)
        return command

    return add


def export_file(help: str) -> Callable[[Command], Command]:
    """`--from FILE`: recorded runs from a file of `kagzi export`."""
    path = click.Path(exists=True, dir_okay=False, path_type=Path)
    return click.option("--from", "file", type=path, metavar="FILE", help=help)


def changes(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were set, by name; None means no limit."""
    chosen = {name: value for name, value in options.items() if value is not None and value != ()}
    return {name: None if value is NO_LIMIT else value for name, value in chosen.items()}


class Server(NamedTuple):
    """Where and how a command connects: `--address`, `--namespace`, the TLS options and `--codec`."""

    address: str | None
    namespace: str | None
    tls: TlsOptions = NO_TLS_OPTIONS
    codec: str | None = None

    def ask(self, call: "Callable[[Kagzi], Coroutine[Any, Any, Returned]]") -> "Returned":
        """Connects a client, makes the call, and closes the client. Raises Stop(CANNOT_CONNECT) with a remedy."""
        import asyncio

        from .connection import connected

        async def connect_and_call() -> Returned:
            async with connected(self.address, self.namespace, self.tls, self.codec) as client:
                return await call(client)

        return asyncio.run(connect_and_call())

    def ask_all(self, call: "Callable[[Kagzi], AsyncIterator[Returned]]") -> "list[Returned]":
        """The rows of a list."""

        async def gather(client: "Kagzi") -> list[Returned]:
            return [row async for row in call(client)]

        return self.ask(gather)


_tls_options = options(
    click.option(
        "--tls-ca",
        envvar="KAGZI_TLS_CA",
        metavar="FILE",
        help="Trust this authority instead of the system's.  [env: KAGZI_TLS_CA]",
    ),
    click.option(
        "--tls-cert", envvar="KAGZI_TLS_CERT", metavar="FILE", help="Certificate to show.  [env: KAGZI_TLS_CERT]"
    ),
    click.option(
        "--tls-key", envvar="KAGZI_TLS_KEY", metavar="FILE", help="Key of that certificate.  [env: KAGZI_TLS_KEY]"
    ),
)


def server_options(command: Callable[..., Returned]) -> Callable[..., Returned]:
    """Adds `--address`, `--namespace`, the TLS options and `--codec` to a command that talks to a server. It receives
    them as `server`."""

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
    @_tls_options
    @click.option(
        "--codec",
        envvar="KAGZI_CODEC",
        metavar="MODULE:NAME",
        help="Encode and decode payloads with this codec.  [env: KAGZI_CODEC]",
    )
    @wraps(command)
    def with_server(*, address: str | None, namespace: str | None, codec: str | None, **options: Any) -> Returned:
        files = {name: options.pop(f"tls_{name}") for name in ("ca", "cert", "key")}
        typed = any(_was_typed(f"tls_{name}") for name in files)
        return command(server=Server(address, namespace, TlsOptions(**files, typed=typed), codec), **options)

    return with_server


def same_server() -> str:
    """` --address far:1 --namespace team`, if the user typed them: for suggested commands."""
    context = click.get_current_context(silent=True)
    if context is None:
        return ""
    names = [name for name in ("address", "namespace", "tls_ca", "tls_cert", "tls_key", "codec") if _was_typed(name)]
    return "".join(f" --{name.replace('_', '-')} {shlex.quote(context.params[name])}" for name in names)


def _was_typed(name: str) -> bool:
    return click.get_current_context().get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE

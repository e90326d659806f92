"""The input of a run as people type it, turned into JSON. Pure, but for the file or stdin it may be told to read.

kagzi start hello world                 a string
kagzi start hello '{"name": "world"}'   JSON, because it parses
kagzi start hello name=world n:=3       an object: = takes text, := takes JSON
kagzi start hello @input.json           a file, read like the first two
kagzi start hello -                     stdin, likewise
kagzi start hello --text @notes.md      text, whatever it looks like: a value, a file or stdin
"""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

# Nobody begins a plain text like this by accident as often as a JSON text is mistyped.
_LIKE_JSON = ("{", "[", '"')
_PAIR = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*)(:?=)(.*)", re.DOTALL)


def text_option(what: str) -> Callable[[Command], Command]:
    return click.option("--text", "as_text", is_flag=True, help=f"Take {what} as text, even if it looks like JSON.")


def read_input(
    arguments: Sequence[str], read_stdin: Callable[[], bytes], *, as_text: bool = False, what: str = "INPUT"
) -> bytes | None:
    """The JSON text of the input, or None if there is none. `what`: the argument's name. Raises UsageError."""
    if not arguments:
        return None
    if as_text and len(arguments) > 1:
        raise click.UsageError(f"--text takes one {what}, not {len(arguments)}. Quote a text with spaces.")
    if len(arguments) == 1:
        (argument,) = arguments
        if argument == "-":
            return _value(_text(read_stdin(), f"{what} from stdin").removesuffix("\n"), f"{what} from stdin", as_text)
        if argument.startswith("@"):
            return _value(_file(argument[1:], what).removesuffix("\n"), f"{what} {argument}", as_text)
        if as_text or _PAIR.fullmatch(argument) is None or _parse(argument) is not None:
            return _value(argument, what, as_text)
    return _object(arguments, what)


def json_or_string(text: str, what: str, remedy: str) -> bytes:
    """JSON if it parses, else the text as a JSON string. Raises UsageError for text that was meant to be JSON and is not."""
    if _parse(text) is not None:
        return _encode(text, what)
    if text.lstrip().startswith(_LIKE_JSON):
        raise click.UsageError(f"{what} is not valid JSON: {_trouble(text)}. {remedy}")
    return _string(text, what)


def _value(text: str, what: str, as_text: bool) -> bytes:
    if as_text:
        return _string(text, what)
    return json_or_string(text, what, "Correct it, or add --text if it is meant as text.")


def _string(text: str, what: str) -> bytes:
    return _encode(json.dumps(text, ensure_ascii=False), what)


def _trouble(text: str) -> str:
    """Where and why a text is not JSON: `expecting ':' delimiter at column 7`."""
    try:
        json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        place = f"column {error.colno}" if "\n" not in text else f"line {error.lineno}, column {error.colno}"
        message = error.msg.removesuffix(" at")
        return f"{message[:1].lower()}{message[1:]} at {place}"
    except (ValueError, RecursionError) as error:
        return str(error)
    return "no trouble"


def _object(arguments: Sequence[str], what: str) -> bytes:
    fields: dict[str, Any] = {}
    for argument in arguments:
        pair = _PAIR.fullmatch(argument)
        if pair is None:
            raise click.UsageError(
                f"{what} is one value, or key=value and key:=json pairs; {argument!r} is not a pair. Quote a text with spaces."
            )
        key, sign, value = pair.groups()
        if key in fields:
            raise click.UsageError(f"{what} names {key!r} twice.")
        if sign == ":=":
            parsed = _parse(value)
            if parsed is None:
                raise click.UsageError(
                    f"{key}:={value} is not valid JSON: {_trouble(value)}. For a text, write {key}={value}."
                )
            fields[key] = parsed.value
        else:
            fields[key] = value
    return _encode(json.dumps(fields, ensure_ascii=False), what)


class _Parsed:
    def __init__(self, value: Any) -> None:
        self.value = value


def _parse(text: str) -> _Parsed | None:
    """The value of a JSON text; None if it is none. NaN and Infinity are not JSON, whatever Python thinks."""
    try:
        return _Parsed(json.loads(text, parse_constant=_refuse_constant))
    except (ValueError, RecursionError):
        return None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _file(name: str, what: str) -> str:
    try:
        return _text(Path(name).read_bytes(), f"{what} @{name}")
    except OSError as error:
        raise click.UsageError(f"{what} @{name} cannot be read: {error.strerror}.") from error


def _text(data: bytes, where: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise click.UsageError(f"{where} is not UTF-8 (byte {error.start}).") from error


def _encode(text: str, what: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise click.UsageError(f"{what} is not UTF-8.") from error

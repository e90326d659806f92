"""Parses the input of a run from the command line into JSON. Pure, except that it may read a file or stdin.

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
from typing import Any, NoReturn

import click

from ..options import Command

# Text that begins like this is usually mistyped JSON and not plain text.
_LIKE_JSON = ("{", "[", '"')
_PAIR = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*)(:?=)(.*)", re.DOTALL)


def text_option(what: str) -> Callable[[Command], Command]:
    return click.option("--text", "as_text", is_flag=True, help=f"Take {what} as text, even if it looks like JSON.")


def read_input(
    arguments: Sequence[str], read_stdin: Callable[[], bytes], *, as_text: bool = False, what: str = "INPUT"
) -> bytes | None:
    """The JSON text of the input, or None without one. `what`: the argument's name. Raises UsageError."""
    if not arguments:
        return None
    if as_text and len(arguments) > 1:
        raise click.UsageError(f"--text takes one {what}, not {len(arguments)}. Quote text that contains spaces.")
    if len(arguments) == 1:
        (argument,) = arguments
        if argument == "-":
            return _value(_text(read_stdin(), f"{what} from stdin").removesuffix("\n"), f"{what} from stdin", as_text)
        if argument.startswith("@"):
            return _value(_file(argument[1:], what).removesuffix("\n"), f"{what} {argument}", as_text)
        if as_text or _PAIR.fullmatch(argument) is None or _is_json(argument):
            return _value(argument, what, as_text)
    return _object(arguments, what)


def json_or_string(text: str, what: str, remedy: str) -> bytes:
    """JSON if it parses, otherwise the text as a JSON string. Raises UsageError for text that looks like JSON."""
    try:
        _parse(text)
    except ValueError as error:
        if text.lstrip().startswith(_LIKE_JSON):
            raise click.UsageError(f"{what} is not valid JSON: {error}. {remedy}") from error
        return _string(text, what)
    return _encode(text, what)


def _value(text: str, what: str, as_text: bool) -> bytes:
    if as_text:
        return _string(text, what)
    return json_or_string(text, what, "Correct it, or add --text if it is meant as text.")


def _string(text: str, what: str) -> bytes:
    return _encode(json.dumps(text, ensure_ascii=False), what)


def _object(arguments: Sequence[str], what: str) -> bytes:
    fields: dict[str, Any] = {}
    for argument in arguments:
        pair = _PAIR.fullmatch(argument)
        if pair is None:
            raise click.UsageError(
                f"{what} is one value, or key=value and key:=json pairs; {argument!r} is not a pair. "
                "Quote text that contains spaces."
            )
        key, sign, value = pair.groups()
        if key in fields:
            raise click.UsageError(f"{what} names {key!r} twice.")
        try:
            fields[key] = _parse(value) if sign == ":=" else value
        except ValueError as error:
            remedy = f"For text, write {key}={value}."
            raise click.UsageError(f"{key}:={value} is not valid JSON: {error}. {remedy}") from error
    return _encode(json.dumps(fields, ensure_ascii=False), what)


def _is_json(text: str) -> bool:
    try:
        _parse(text)
    except ValueError:
        return False
    return True


def _parse(text: str) -> Any:
    """Refuses NaN and Infinity. Raises ValueError with a position: `expecting ':' delimiter at column 7`."""
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        place = f"column {error.colno}" if "\n" not in text else f"line {error.lineno}, column {error.colno}"
        message = error.msg.removesuffix(" at")
        raise ValueError(f"{message[:1].lower()}{message[1:]} at {place}") from error
    except RecursionError as error:
        raise ValueError(str(error)) from error


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

"""The input of a run as people type it, turned into JSON. Pure, but for the file or stdin it may be told to read.

kagzi start hello world                 a string
kagzi start hello '{"name": "world"}'   JSON, because it parses
kagzi start hello name=world n:=3       an object: = takes text, := takes JSON
kagzi start hello @input.json           a file, read like the first two
kagzi start hello -                     stdin, likewise
"""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import click

_PAIR = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*)(:?=)(.*)", re.DOTALL)


def read_input(arguments: Sequence[str], read_stdin: Callable[[], bytes]) -> bytes | None:
    """The JSON text of the input, or None if there is none. Raises UsageError."""
    if not arguments:
        return None
    if len(arguments) == 1:
        (argument,) = arguments
        if argument == "-":
            return json_or_string(_text(read_stdin(), "stdin").removesuffix("\n"))
        if argument.startswith("@"):
            return json_or_string(_file(argument[1:]).removesuffix("\n"))
        if _PAIR.fullmatch(argument) is None or _parse(argument) is not None:
            return json_or_string(argument)
    return _object(arguments)


def json_or_string(text: str) -> bytes:
    """JSON if it parses, else the text as a JSON string."""
    return (
        _encode(text, "input") if _parse(text) is not None else _encode(json.dumps(text, ensure_ascii=False), "input")
    )


def _object(arguments: Sequence[str]) -> bytes:
    fields: dict[str, Any] = {}
    for argument in arguments:
        pair = _PAIR.fullmatch(argument)
        if pair is None:
            raise click.UsageError(
                f"INPUT is one value, or key=value and key:=json pairs; {argument!r} is no pair. Quote a text with spaces."
            )
        key, sign, value = pair.groups()
        if key in fields:
            raise click.UsageError(f"INPUT names {key!r} twice.")
        if sign == ":=":
            parsed = _parse(value)
            if parsed is None:
                raise click.UsageError(f"{key}:={value} is not JSON. Write {key}={value} for a text.")
            fields[key] = parsed.value
        else:
            fields[key] = value
    return _encode(json.dumps(fields, ensure_ascii=False), "input")


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
    raise ValueError(name)


def _file(name: str) -> str:
    try:
        return _text(Path(name).read_bytes(), f"@{name}")
    except OSError as error:
        raise click.UsageError(f"INPUT @{name} cannot be read: {error.strerror}.") from error


def _text(data: bytes, where: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise click.UsageError(f"INPUT from {where} is not UTF-8 (byte {error.start}).") from error


def _encode(text: str, where: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise click.UsageError(f"INPUT ({where}) is not UTF-8.") from error

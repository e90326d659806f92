"""Prints data to stdout and everything else to stderr; colours only on a terminal and never with NO_COLOR."""

import errno
import json
import os
import re
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import click

from ..core.text.printable import escape, escape_lines

STATUS_COLOURS = {
    "pending": "yellow",
    "running": "blue",
    "sleeping": "cyan",
    "paused": "magenta",
    "completed": "green",
    "failed": "red",
    "lost": "red",
    "cancelled": "bright_black",
    "abandoned": "bright_black",
}

_OWN_STYLES = re.compile(r"(\x1b\[(?:0|1|2|3[0-6]|90)m)")
"""The colours that commands use. They hide nothing, whoever wrote them."""


def printable(text: str) -> str:
    """Lines for a terminal: what others wrote cannot move its cursor, hide text, or reach its clipboard and title."""
    if text.isprintable():
        return text
    parts = _OWN_STYLES.split(text)
    parts[::2] = map(escape_lines, parts[::2])
    return "".join(parts)


_PROGRESS_EVERY_S = 0.2


def colour() -> bool | None:
    """For click: False, or None to let the stream decide."""
    return False if os.environ.get("NO_COLOR") else None


def say(text: str, *, colour: str | None = None) -> None:
    """A line for the user, on stderr. Ignores a closed terminal."""
    try:
        click.secho(printable(text), err=True, fg=colour)
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.errno != errno.EIO:
            raise


def warn(text: str) -> None:
    click.echo(f"{click.style('warning:', fg='yellow')} {printable(text)}", err=True)


def fail(message: str, remedy: str = "") -> None:
    """An error, on stderr. The caller ends the command with an exit code other than 0."""
    click.echo(f"{click.style('error:', fg='red')} {printable(message)}", err=True, color=colour())
    if remedy:
        hint(remedy)


def hint(text: str) -> None:
    """What to do next, on stderr."""
    click.echo(f"{click.style('hint:', fg='cyan')} {printable(text)}", err=True, color=colour())


class Progress:
    """A count on a terminal, drawn again a few times a second; nothing on stderr that is not a terminal."""

    def __init__(self, verb: str, total: int = 0) -> None:
        self._verb = verb
        self._total = total
        self._done = 0
        self._shown = sys.stderr.isatty()
        self._due = 0.0

    def add(self) -> None:
        self._done += 1
        if self._shown and (now := time.monotonic()) >= self._due:
            self._due = now + _PROGRESS_EVERY_S
            of = f" of {self._total:,}" if self._total else ""
            click.echo(f"\r{self._done:,}{of} {self._verb}", nl=False, err=True)

    def end(self) -> None:
        if self._shown and self._due:
            click.echo("\r\x1b[K", nl=False, err=True)


def say_page(url: str) -> None:
    """The URL of a run, or of all runs, on stderr; nothing if the server has no pages."""
    if url:
        click.secho(f"  {printable(url)}", err=True)


def put(text: str) -> None:
    """A line of data: stdout."""
    click.echo(printable(text))


def put_json(value: Any, *, lines: bool = False) -> None:
    """JSON: one line with `lines`, otherwise indented on a terminal. Characters that a terminal would act upon are
    escaped as JSON has it, so the value is the same."""
    text = json.dumps(value, ensure_ascii=False, indent=None if lines or not sys.stdout.isatty() else 2)
    click.echo(text if text.isprintable() else "".join(map(_json_escaped, text)))


def _json_escaped(char: str) -> str:
    return char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1]


def status_text(status: str) -> str:
    return click.style(status, fg=STATUS_COLOURS.get(status))


def put_table(rows: Sequence[Mapping[str, str]]) -> None:
    """Columns named after the keys of the first row, as wide as their widest cell. Nothing is truncated."""
    if not rows:
        return
    columns = list(rows[0])
    rows = [{column: _cell(row[column]) for column in columns} for row in rows]
    widths = {column: max(len(column), *(len(click.unstyle(row[column])) for row in rows)) for column in columns}
    put(click.style(_line({column: column.upper() for column in columns}, widths), dim=True))
    for row in rows:
        put(_line(row, widths))


def _cell(text: str) -> str:
    """On one line, or a value could look like rows."""
    return (
        text
        if text.isprintable()
        else "".join(part if _OWN_STYLES.fullmatch(part) else escape(part) for part in _OWN_STYLES.split(text))
    )


def put_fields(fields: Mapping[str, str | None]) -> None:
    """`name  value` lines; empty values are left out."""
    width = max((len(name) for name in fields), default=0)
    for name, value in fields.items():
        if value:
            put(f"{click.style(name.ljust(width), dim=True)}  {value}")


def _line(row: Mapping[str, str], widths: Mapping[str, int]) -> str:
    padded = (cell + " " * (widths[column] - len(click.unstyle(cell))) for column, cell in row.items())
    return "  ".join(padded).rstrip()

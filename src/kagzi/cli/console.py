"""Prints data to stdout and everything else to stderr; colours only on a terminal and never with NO_COLOR."""

import errno
import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click

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


def colour() -> bool | None:
    """For click: False, or None to let the stream decide."""
    return False if os.environ.get("NO_COLOR") else None


def say(text: str, *, colour: str | None = None) -> None:
    """A line for the user, on stderr. Ignores a closed terminal."""
    try:
        click.secho(text, err=True, fg=colour)
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.errno != errno.EIO:
            raise


def warn(text: str) -> None:
    click.echo(f"{click.style('warning:', fg='yellow')} {text}", err=True)


def fail(message: str, remedy: str = "") -> None:
    """An error, on stderr. The caller ends the command with an exit code other than 0."""
    click.echo(f"{click.style('error:', fg='red')} {message}", err=True, color=colour())
    if remedy:
        hint(remedy)


def hint(text: str) -> None:
    """What to do next, on stderr."""
    click.echo(f"{click.style('hint:', fg='cyan')} {text}", err=True, color=colour())


def say_page(url: str) -> None:
    """The URL of a run, or of all runs, on stderr; nothing if the server has no pages."""
    if url:
        click.secho(f"  {url}", err=True)


def put(text: str) -> None:
    """A line of data: stdout."""
    click.echo(text)


def put_json(value: Any, *, lines: bool = False) -> None:
    """JSON: one line with `lines`, otherwise indented on a terminal."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=None if lines or not sys.stdout.isatty() else 2))


def status_text(status: str) -> str:
    return click.style(status, fg=STATUS_COLOURS.get(status))


def put_table(rows: Sequence[Mapping[str, str]]) -> None:
    """Columns named after the keys of the first row, as wide as their widest cell. Nothing is truncated."""
    if not rows:
        return
    columns = list(rows[0])
    widths = {column: max(len(column), *(len(click.unstyle(row[column])) for row in rows)) for column in columns}
    put(click.style(_line({column: column.upper() for column in columns}, widths), dim=True))
    for row in rows:
        put(_line(row, widths))


def put_fields(fields: Mapping[str, str | None]) -> None:
    """`name  value` lines; empty values are left out."""
    width = max((len(name) for name in fields), default=0)
    for name, value in fields.items():
        if value:
            put(f"{click.style(name.ljust(width), dim=True)}  {value}")


def _line(row: Mapping[str, str], widths: Mapping[str, int]) -> str:
    padded = (cell + " " * (widths[column] - len(click.unstyle(cell))) for column, cell in row.items())
    return "  ".join(padded).rstrip()

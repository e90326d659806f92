"""Shows the progress of a bench on stderr: a bar on a terminal, otherwise a line for each part."""

import sys
from collections.abc import Callable, Sequence
from time import perf_counter

import click

from ..console import say

_WIDTH = 30
_REDRAW_S = 0.1  # drawing would disturb the measurement


class Bar:
    """A line that is redrawn as the parts of a bench finish. `parts`: all of them, in order."""

    def __init__(self, parts: Sequence[str], *, is_terminal: bool | None = None) -> None:
        self._parts = tuple(parts)
        self._is_terminal = sys.stderr.isatty() if is_terminal is None else is_terminal
        self._began = perf_counter()
        self._drawn = 0.0
        self._longest = 0

    def part(self, name: str) -> Callable[[float], None]:
        """Begins the next part. Call the returned function with the fraction that is done, from 0 to 1."""
        if not self._is_terminal:
            say(f"{self._parts.index(name) + 1}/{len(self._parts)} {name}")
            return _nothing
        self._draw(name, 0.0)

        def show(done: float) -> None:
            if perf_counter() - self._drawn >= _REDRAW_S:
                self._draw(name, done)

        return show

    def close(self) -> None:
        """Remove the bar."""
        if self._is_terminal and self._longest:
            click.echo("\r" + " " * self._longest + "\r", err=True, nl=False)

    def _draw(self, name: str, done: float) -> None:
        self._drawn = perf_counter()
        share = (self._parts.index(name) + min(max(done, 0.0), 1.0)) / len(self._parts)
        filled = round(share * _WIDTH)
        seconds = int(self._drawn - self._began)
        line = f"[{'#' * filled}{'.' * (_WIDTH - filled)}] {share:4.0%}  {name}  {seconds // 60}:{seconds % 60:02}"
        self._longest = max(self._longest, len(line))
        click.echo("\r" + line.ljust(self._longest), err=True, nl=False)


def _nothing(_done: float) -> None:
    """Lines are printed for whole parts only."""

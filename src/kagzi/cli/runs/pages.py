"""Prints messages about runs together with the URLs of their pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..console import put, say, say_page

if TYPE_CHECKING:
    from ...sdk.client.run import Run


def say_of_run(run: Run[Any], text: str) -> None:
    """Prints what happened to the run, and its page."""
    say(text)
    say_page(run.url)


def put_run(run: Run[Any]) -> None:
    """Prints the id of a new run, for programs, and its page, for people."""
    put(run.id)
    say_page(run.url)

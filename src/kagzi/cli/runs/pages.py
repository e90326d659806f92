"""Where runs are shown, said with what is said about them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..console import put, say, say_page

if TYPE_CHECKING:
    from ...sdk.client.run import Run


def say_of_run(run: Run[Any], text: str) -> None:
    """What happened to it."""
    say(text)
    say_page(run.url)


def put_run(run: Run[Any]) -> None:
    """The id of a new one, for programs; its page, for people."""
    put(run.id)
    say_page(run.url)

"""Messages of `kagzi dev`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ...core.version import __version__
from ..console import put

if TYPE_CHECKING:
    from .setup import DevSetup

DEFAULT_PORT = "50051"
DEFAULT_NAMESPACE = "default"


def banner(setup: DevSetup, loaded: dict[str, Any], address: str, http_url: str, took_s: float) -> None:
    """Printed when ready: URLs, and commands to try. `loaded` is what the worker reported about itself."""
    from ...server.http.pages.bundle import Bundle

    workflows: list[dict[str, str]] = loaded["workflows"]
    options = _options(loaded["namespace"], address)
    put(click.style(f"Kagzi {__version__} is ready", bold=True, fg="green") + f" ({took_s:.1f} s)")
    put(f"  server     {address}")
    put(f"  dashboard  {http_url}" + ("" if Bundle().is_there else "  (plain pages: the dashboard was not built)"))
    put(f"  data       {setup.data}")
    put(f"  workflows  {', '.join(workflow['name'] for workflow in workflows)}  from {setup.target}")
    if loaded["replaced"]:
        replaced = " and ".join(loaded["replaced"])
        put(f"  worker     as in {setup.target}, except for its {replaced}: the worker connects to this server")
    put("")
    put("Try in another terminal:")
    for workflow in workflows[:3]:
        words = (setup.command, "start", workflow["name"], workflow["input"], "--wait", *options)
        put(f"  {' '.join(word for word in words if word)}")
    put(f"  {' '.join((setup.command, 'list', *options))}")
    put("")
    put("Press Ctrl-C to stop. Unfinished runs continue at the next start.")


def broken_text(setup: DevSetup, message: str) -> str:
    """The user's code cannot be loaded."""
    remedy = "Fix it and save the file: it is loaded again." if setup.reload else "Fix it and start again."
    return f"{setup.target} cannot be served:\n{message}\n{remedy}"


def missing_text(setup: DevSetup) -> str:
    """The user's code existed and is gone: an editor may be about to save it."""
    waits = "it is loaded as soon as it is there" if setup.reload else "start again when it is there"
    return f"{setup.target} does not exist any more: {waits}."


def slow_text(setup: DevSetup) -> str:
    """The user's code takes long to load, or never returns."""
    return (
        f"{setup.target} is still being loaded. If it runs a program when it is imported, such as worker.serve() or "
        'asyncio.run(main()), put that below: if __name__ == "__main__":'
    )


def _options(namespace: str, address: str) -> list[str]:
    options: list[str] = []
    if address.startswith("https:") or address.rpartition(":")[2] != DEFAULT_PORT:
        options.append(f"--address {address}")
    if namespace != DEFAULT_NAMESPACE:
        options.append(f"--namespace {namespace}")
    return options

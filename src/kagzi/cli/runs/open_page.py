"""`kagzi open`."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from ...core.run.addresses import LAST_SERVER
from ..console import hint, put
from ..exits import Exit, Stop
from ..options import Server
from ..output import Output, server_command

if TYPE_CHECKING:
    from ...sdk.client.client import Kagzi

_NO_PAGES = "start it with --http HOST:PORT, or see the run with kagzi get RUN --steps"


@click.command("open")
@click.argument("run", metavar="[RUN]", default="", required=False)
@server_command
def open_page(*, run: str, server: Server) -> Output:
    """Open the page of a run, or the dashboard, in your browser.

    RUN is a run id, the beginning of one, or a workflow id (its latest run). Without RUN, opens the
    dashboard. Also prints the address.
    """
    url = server.ask(lambda client: _url(client, run))
    if not url:
        raise Stop(Exit.FAILED, "this server has no pages: it was started without an HTTP port", _NO_PAGES)

    def show() -> None:
        put(url)
        if not _open(url):
            hint("no browser could be opened here: open the address in one")

    return Output({"url": url}, show)


async def _url(client: Kagzi, name: str) -> str:
    from .find import find_run

    if name:
        return (await find_run(client, name)).url
    return f"{LAST_SERVER.http_url}/runs" if LAST_SERVER.http_url else ""


def _open(url: str) -> bool:
    """Never opens a browser that runs in the terminal."""
    has_screen = sys.platform in ("darwin", "win32") or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    )
    if not has_screen:
        return False
    import webbrowser

    return webbrowser.open(url)

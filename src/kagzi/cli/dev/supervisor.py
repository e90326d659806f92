"""The supervisor of `kagzi dev`: server, worker process, watched files, and messages about them."""

from __future__ import annotations

import asyncio
import signal
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from ...core.run.addresses import LAST_SERVER
from ..console import say
from ..processes import on_hangup
from .child import WorkerChild
from .messages import banner, broken_text, missing_text, slow_text
from .reload import Watched
from .setup import DevSetup

if TYPE_CHECKING:
    from ...server.app import Server
    from ...server.config import ServerConfig

RESTART_PAUSE_S = 1.0
NOTICE_AFTER_S = 1.0  # a message is shown if the worker takes longer to end
SERVER_GRACE_S = 1.0
SLOW_LOAD_S = 5.0  # a message is shown if the user's code takes longer to load


class Supervisor:
    """Runs until Ctrl-C, SIGTERM, a closed terminal, or a failed server. The worker then finishes its runs; a second
    signal kills it."""

    def __init__(self, setup: DevSetup, config: ServerConfig) -> None:
        self._setup = setup
        self._config = config
        self._watched = Watched(setup.source)
        self._child = WorkerChild(setup.target, setup.namespace, self._on_report)
        self._server: Server | None = None
        self._stop = asyncio.Event()
        self._restart = asyncio.Event()
        self._changing = False  # we are ending the worker ourselves
        self._broken = False  # the worker could not load the user's code: wait for a change
        self._was_loaded = False
        self._was_ready = False
        self._refusal = ""  # why the worker process cannot be served
        self._slow: asyncio.TimerHandle | None = None  # fires if the worker does not report that it is loaded
        self._loaded: dict[str, Any] = {"workflows": []}  # what the worker reported about itself

    async def run(self) -> None:
        """Raises the error that stops the server, and UsageError if there is nothing to serve."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._on_signal)
        on_hangup(self._stop.set)
        await self._start_child()  # first, so that it imports the user's code while the server starts
        try:
            from ...server.app import Server  # now, while the worker process imports its code

            server = Server(self._config)
            await server.start()
            self._server = server
            LAST_SERVER.http_url = server.public_url
            self._child.connect(server.client_address)
            await self._until_stopped(server)
        finally:
            self._changing = True
            await self._end_child()
            if self._server is not None:
                await self._server.stop(SERVER_GRACE_S)
        if self._refusal:
            raise click.UsageError(self._refusal)

    def _on_signal(self) -> None:
        if self._stop.is_set():
            self._child.kill()
        self._stop.set()

    async def _end_child(self) -> None:
        ending = asyncio.ensure_future(self._child.stop())
        done, _ = await asyncio.wait({ending}, timeout=NOTICE_AFTER_S)
        if not done:
            say("the worker is finishing its runs; press Ctrl-C again to stop it at once")
        await ending

    async def _until_stopped(self, server: Server) -> None:
        failed = asyncio.create_task(server.wait_failed())
        stopped = asyncio.create_task(self._stop.wait())
        background = [asyncio.create_task(self._restarts())]
        if self._setup.reload:
            background.append(asyncio.create_task(self._watch()))
        try:
            await asyncio.wait({failed, stopped, *background}, return_when=asyncio.FIRST_COMPLETED)
            for task in background:
                if task.done():
                    task.result()
            if failed.done():
                raise failed.result()
        finally:
            self._stop.set()
            everything: list[asyncio.Task[Any]] = [failed, stopped, *background]
            for each in everything:
                each.cancel()
            await asyncio.gather(*everything, return_exceptions=True)

    def _on_report(self, report: dict[str, Any]) -> None:
        """Handles a report of the worker process."""
        if self._slow is not None:
            self._slow.cancel()
        match report["event"]:
            case "loaded":
                self._loaded = report
                self._was_loaded = True
            case "ready":
                self._say_ready()
            case "broken":
                self._broken = True
                self._was_loaded = True
                say(broken_text(self._setup, report["message"]), colour="red")
            case "missing":
                self._broken = True
                self._on_missing(report["message"])
            case _:
                self._ended(report["code"])

    def _on_missing(self, message: str) -> None:
        """Waits for a file that existed, as an editor may be saving it; fails for one that never existed."""
        if self._was_loaded:
            say(missing_text(self._setup), colour="red")
        else:
            self._refusal = message
            self._stop.set()

    def _say_ready(self) -> None:
        server = self._server
        if server is None:
            return
        if self._was_ready:
            say(f"reloaded: {', '.join(workflow['name'] for workflow in self._loaded['workflows'])}", colour="green")
        else:
            took_s = perf_counter() - self._setup.began
            banner(self._setup, self._loaded, server.client_address, server.http_url, took_s)
        self._was_ready = True

    def _ended(self, code: int) -> None:
        """Called when it ended by itself: killed, out of memory, or `os._exit` in a step. Starts it again."""
        if self._changing or self._broken:
            return
        say(f"the worker exited with code {code}; starting a new one", colour="yellow")
        asyncio.get_running_loop().call_later(RESTART_PAUSE_S, self._restart.set)

    async def _restarts(self) -> None:
        while True:
            await self._restart.wait()
            self._restart.clear()
            await self._replace_child()

    async def _watch(self) -> None:
        async for names in self._watched.changes(self._stop):
            say(f"changed: {', '.join(names)}")
            self._restart.set()

    async def _replace_child(self) -> None:
        self._changing = True
        try:
            await self._child.stop_to_reload()
        finally:
            self._changing = self._broken = False
        await self._start_child()
        if self._server is not None:
            self._child.connect(self._server.client_address)

    async def _start_child(self) -> None:
        await self._child.start()
        self._slow = asyncio.get_running_loop().call_later(SLOW_LOAD_S, say, slow_text(self._setup))

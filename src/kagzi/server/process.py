"""Runs a server as a process: one line when it is ready, signal handling, exit codes."""

import asyncio
import signal
import sys
from collections.abc import Callable
from typing import Self

from ..core.errors import InvalidArgument, KagziError, SchemaMismatch
from ..core.run.addresses import LAST_SERVER
from .app import Server
from .config import ServerConfig
from .descriptors import raise_soft_limit
from .peers import Peers
from .startup import EXIT_FAILED, EXIT_REFUSED, CannotStart, ready_line

SIGNALS = (signal.SIGTERM, signal.SIGINT)

# The SQLite writer thread releases the GIL for every row and, while the event loop is busy, gets it back only after
# this interval. With Python's default of 5 ms a batch of a hundred rows takes most of a second.
SWITCH_INTERVAL_S = 0.0005


async def run_server(
    config: ServerConfig,
    announce: Callable[[str], None] | None = None,
    *,
    signals: "StopSignals | None" = None,
    on_ready: Callable[[Server], None] | None = None,
    peers: Peers | None = None,
) -> int:
    """Serve until SIGTERM, SIGINT or SIGHUP; a second SIGTERM or SIGINT ends the grace time. Returns the exit code.
    `announce` receives the line that says that the server is ready, and the reason why it stopped; by default these go
    to stderr.

    For a supervised process: `signals` are requests of its supervisor, `on_ready` is called instead of printing the
    line, and `peers` are the other processes."""
    say = announce or _say
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    raise_soft_limit()
    server = Server(config, peers=peers)
    with signals or StopSignals() as requests:
        try:
            await server.start()
        except (CannotStart, SchemaMismatch, InvalidArgument) as error:
            say(f"kagzi server: {error.message}")
            return _exit_code(error)
        LAST_SERVER.http_url = server.public_url
        if on_ready is None:
            say(
                ready_line(server.client_address, server.http_url, server.store_url, websocket_url=server.websocket_url)
            )
        else:
            on_ready(server)
        failure = await _until_stopped(server, requests)
        await _stop(server, requests)
    if failure is not None:
        say(f"kagzi server: stopped because a background task failed: {type(failure).__name__}. See the log.")
        return EXIT_FAILED
    return 0


class StopSignals:
    """Counts the signals that ask this process to stop, while entered. SIGHUP, sent when a terminal closes, counts
    once, because a shell sends it again; not at all if it is ignored (nohup).

    `supervised`: only SIGTERM counts, and only once: the supervisor sends it, and a service manager may send it to all
    processes as well. Ctrl-C reaches every process of a terminal, and the supervisor handles it."""

    def __init__(self, *, supervised: bool = False) -> None:
        self.first = asyncio.Event()
        self.second = asyncio.Event()
        self._supervised = supervised

    def __enter__(self) -> Self:
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.add_signal_handler(number, self._received, number)
        if not self._supervised and signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
            loop.add_signal_handler(signal.SIGHUP, self.first.set)
        return self

    def __exit__(self, *_: object) -> None:
        loop = asyncio.get_running_loop()
        for number in (*SIGNALS, signal.SIGHUP):
            loop.remove_signal_handler(number)

    def _received(self, number: signal.Signals) -> None:
        if not self._supervised:
            (self.second if self.first.is_set() else self.first).set()
        elif number == signal.SIGTERM:
            self.first.set()


async def _until_stopped(server: Server, signals: StopSignals) -> BaseException | None:
    failing = asyncio.ensure_future(server.wait_failed())
    signalled = asyncio.ensure_future(signals.first.wait())
    try:
        await asyncio.wait({failing, signalled}, return_when=asyncio.FIRST_COMPLETED)
        return failing.result() if failing.done() else None
    finally:
        failing.cancel()
        signalled.cancel()


async def _stop(server: Server, signals: StopSignals) -> None:
    stopping = asyncio.ensure_future(server.stop())
    hurried = asyncio.ensure_future(signals.second.wait())
    await asyncio.wait({stopping, hurried}, return_when=asyncio.FIRST_COMPLETED)
    hurried.cancel()
    if not stopping.done():
        server.hurry()
    await stopping


def _exit_code(error: KagziError) -> int:
    return error.exit_code if isinstance(error, CannotStart) else EXIT_REFUSED


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()

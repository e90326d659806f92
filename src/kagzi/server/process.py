"""A server as a process: one line when it is ready, signals, exit codes."""

import asyncio
import signal
import sys
from collections.abc import Callable

from ..core.errors import InvalidArgument, KagziError, SchemaMismatch
from .app import Server
from .config import ServerConfig
from .descriptors import raise_soft_limit
from .startup import EXIT_FAILED, EXIT_REFUSED, CannotStart

SIGNALS = (signal.SIGTERM, signal.SIGINT)

# The SQLite writer thread gives the interpreter up for every row it steps and, against a busy loop, gets it back only
# after this long; at Python's 5 ms a batch of a hundred rows takes most of a second.
SWITCH_INTERVAL_S = 0.0005


async def run_server(config: ServerConfig, announce: Callable[[str], None] | None = None) -> int:
    """Serve until SIGTERM or SIGINT (a second one shortens the grace time to nothing). Returns the exit code.
    `announce` is given the line that says that it is ready, and why it stopped; without it they go to stderr."""
    say = announce or _say
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    raise_soft_limit()
    server = Server(config)
    with _Signals() as signals:
        try:
            await server.start()
        except (CannotStart, SchemaMismatch, InvalidArgument) as error:
            say(f"kagzi server: {error.message}")
            return _exit_code(error)
        say(ready_line(server))
        failure = await _until_stopped(server, signals)
        await _stop(server, signals)
    if failure is not None:
        say(f"kagzi server: stopped because a background task failed: {type(failure).__name__}. See the log.")
        return EXIT_FAILED
    return 0


def ready_line(server: Server) -> str:
    """For people and for programs that started the server: `key=value`, separated by blanks."""
    parts = [
        f"grpc={server.grpc_address}",
        f"http={server.http_url}" if server.http_url else "",
        f"store={server.store_url}",
    ]
    return " ".join(("kagzi server ready", *filter(None, parts)))


class _Signals:
    """Counts the signals that ask this process to end, while it is entered."""

    def __init__(self) -> None:
        self.first = asyncio.Event()
        self.second = asyncio.Event()

    def __enter__(self) -> "_Signals":
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.add_signal_handler(number, self._received)
        return self

    def __exit__(self, *_: object) -> None:
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.remove_signal_handler(number)

    def _received(self) -> None:
        (self.second if self.first.is_set() else self.first).set()


async def _until_stopped(server: Server, signals: _Signals) -> BaseException | None:
    failing = asyncio.ensure_future(server.wait_failed())
    signalled = asyncio.ensure_future(signals.first.wait())
    try:
        await asyncio.wait({failing, signalled}, return_when=asyncio.FIRST_COMPLETED)
        return failing.result() if failing.done() else None
    finally:
        failing.cancel()
        signalled.cancel()


async def _stop(server: Server, signals: _Signals) -> None:
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

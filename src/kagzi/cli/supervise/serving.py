"""Runs a worker in a process that its parent ends."""

import asyncio
import signal
from collections.abc import Callable

from ...sdk.worker.worker import Worker


async def serve_supervised(worker: Worker, on_ready: Callable[[], None] | None = None) -> None:
    """Serves until SIGTERM or `worker.stop()`. Ignores Ctrl-C and SIGHUP: a terminal sends them to the parent too,
    which then sends SIGTERM, and that must not count as a second signal. `on_ready` is called when the worker is
    connected."""
    connected, stopped = asyncio.Event(), asyncio.Event()

    async def serve() -> None:
        async with worker:
            connected.set()
            if on_ready is not None:
                on_ready()
            await worker.run(handle_signals=False)

    def stop() -> None:
        stopped.set()
        worker.stop()
        if not connected.is_set():
            serving.cancel()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, _ignore)
    loop.add_signal_handler(signal.SIGTERM, stop)
    serving = asyncio.ensure_future(serve())
    try:
        await serving
    except asyncio.CancelledError:
        if connected.is_set() or not stopped.is_set():
            raise


def _ignore() -> None:
    """Ignores a signal, see `serve_supervised`."""

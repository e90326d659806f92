"""Runs a worker in a process whose parent decides when it ends."""

import asyncio
import signal
from collections.abc import Callable

from ...sdk.worker.worker import Worker


async def serve_supervised(worker: Worker, on_ready: Callable[[], None] | None = None) -> None:
    """Until SIGTERM, or `worker.stop()`. Ctrl-C and SIGHUP reach every process of the terminal: the parent gets them,
    too, and sends SIGTERM, which must not count as a second signal. `on_ready` is called when a server has welcomed
    it."""
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
    """See above."""

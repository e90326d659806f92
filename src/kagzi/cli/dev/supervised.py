"""Runs a worker in a process whose parent decides when it ends."""

import asyncio
import signal
from collections.abc import Callable

from ...sdk.worker.worker import Worker


async def serve_supervised(worker: Worker, on_ready: Callable[[], None] | None = None) -> None:
    """Until SIGTERM, or `worker.stop()`. Ctrl-C reaches every process of the terminal: the parent gets it, too, and
    sends SIGTERM, which must not count as a second signal."""
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, _ignore)
    loop.add_signal_handler(signal.SIGTERM, worker.stop)
    if on_ready is None:
        await worker.run(handle_signals=False)  # handles SIGTERM also while no server responds
        return
    async with worker:
        on_ready()
        await worker.run(handle_signals=False)


def _ignore() -> None:
    """See above."""

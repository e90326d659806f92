"""The event loop and the garbage collector of processes that serve, their signals, and the end of child processes."""

import asyncio
import gc
import signal
from collections.abc import Callable

_COLLECT_AFTER = 50_000


def fast_runner() -> asyncio.Runner:
    """On uvloop where it is installed."""
    collect_rarely()
    try:
        import uvloop
    except ImportError:
        return asyncio.Runner()
    return asyncio.Runner(loop_factory=uvloop.new_event_loop)


def collect_rarely() -> None:
    """Set the collector of this process for serving: what was imported is never looked at again, and a collection
    comes after so many objects that a batch of operations does not cause one. For processes that are our own: a program
    that imports the SDK has settings of its own. What imports have left behind, some hundred objects, is kept: to find
    it takes a tenth of a start."""
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER)


def on_hangup(act: Callable[[], object]) -> None:
    """`act` is called in the running loop when the terminal is closed, perhaps twice: a shell sends SIGHUP again. Not
    if SIGHUP is ignored (nohup)."""
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, act)


async def end_process(process: asyncio.subprocess.Process, timeout_s: float) -> None:
    """Wait for the end of a process that was asked to end, and kill it after `timeout_s`."""
    try:
        await asyncio.wait_for(process.wait(), timeout_s)
    except TimeoutError:
        process.kill()
        await process.wait()

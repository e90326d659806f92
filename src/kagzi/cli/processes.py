"""Event loop, garbage collector and signals of serving processes, and how to end child processes."""

import asyncio
import gc
import signal
from collections.abc import Callable

from ..event_loop import new_fast_loop

_COLLECT_AFTER = 50_000


def fast_runner() -> asyncio.Runner:
    """Uses uvloop if it is installed."""
    collect_rarely()
    return asyncio.Runner(loop_factory=new_fast_loop)


def collect_rarely() -> None:
    """Tunes the garbage collector for serving: excludes imported objects, and collects so rarely that a batch of
    operations does not trigger it. Only for our own processes: a program that imports the SDK keeps its settings. The
    few hundred garbage objects of imports are kept: finding them would take a tenth of the startup."""
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER)


def on_hangup(act: Callable[[], object]) -> None:
    """Calls `act` in the running loop when the terminal is closed; perhaps twice, as a shell sends SIGHUP again. Not if
    SIGHUP is ignored (nohup)."""
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, act)


async def end_process(process: asyncio.subprocess.Process, timeout_s: float) -> None:
    """Waits for a process that was asked to end, and kills it after `timeout_s`."""
    try:
        await asyncio.wait_for(process.wait(), timeout_s)
    except TimeoutError:
        process.kill()
        await process.wait()

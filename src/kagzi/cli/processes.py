"""The event loop of processes that serve, and the end of child processes."""

import asyncio


def fast_runner() -> asyncio.Runner:
    """On uvloop where it is installed."""
    try:
        import uvloop
    except ImportError:
        return asyncio.Runner()
    return asyncio.Runner(loop_factory=uvloop.new_event_loop)


async def end_process(process: asyncio.subprocess.Process, timeout_s: float) -> None:
    """Wait for the end of a process that was asked to end, and kill it after `timeout_s`."""
    try:
        await asyncio.wait_for(process.wait(), timeout_s)
    except TimeoutError:
        process.kill()
        await process.wait()

"""The event loop of processes that do nothing but serve."""

import asyncio


def fast_runner() -> asyncio.Runner:
    """On uvloop where there is one."""
    try:
        import uvloop
    except ImportError:
        return asyncio.Runner()
    return asyncio.Runner(loop_factory=uvloop.new_event_loop)

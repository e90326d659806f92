"""The event loop of threads and processes that belong to Kagzi. Programs choose their own."""

import asyncio


def new_fast_loop() -> asyncio.AbstractEventLoop:
    """A loop of uvloop if it is installed, otherwise the default of asyncio."""
    try:
        import uvloop  # noqa: PLC0415  not on every platform, and a program that only imports the SDK does not need it
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()

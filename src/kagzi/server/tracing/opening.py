"""Turns on tracing if it is configured. OpenTelemetry is loaded only then."""

import asyncio
import threading
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING

from ...core.traces.endpoint import endpoint_of
from ..startup import CannotStart

if TYPE_CHECKING:  # needs OpenTelemetry
    from .spans import ServerTracing

_FLUSH_S = 3.0  # how long to send the remaining spans when the server stops


def open_tracing(stack: AsyncExitStack, url: str) -> "ServerTracing | None":
    """`url`: where to send spans; empty: no tracing. Closed with the stack. Raises CannotStart, InvalidArgument."""
    if not url:
        return None
    try:
        from .spans import ServerTracing  # noqa: PLC0415  see above
    except ImportError as error:
        if not (error.name or "").startswith("opentelemetry"):
            raise
        raise CannotStart(
            "--otlp needs OpenTelemetry, which is not installed. Install it (pip install 'kagzi[otel]'), or leave "
            "--otlp out."
        ) from error
    tracing = ServerTracing(endpoint_of(url))
    stack.push_async_callback(_close, tracing)
    return tracing


async def _close(tracing: "ServerTracing") -> None:
    """Flushes in a thread, for a limited time: an unreachable collector must not keep a server from stopping."""
    loop, done = asyncio.get_running_loop(), asyncio.Event()

    def close() -> None:
        tracing.close()
        with suppress(RuntimeError):  # the event loop is closed
            loop.call_soon_threadsafe(done.set)

    threading.Thread(target=close, name="kagzi-spans", daemon=True).start()
    with suppress(TimeoutError):
        await asyncio.wait_for(done.wait(), _FLUSH_S)

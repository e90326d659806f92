"""The listener for callers in the same process, without sockets and gRPC."""

import asyncio

from ..wire.calls.call import NOT_THERE, ClientEnd, Metadata, ServerEnd
from .calls import CallServer

CHECK_S = 5.0
"""How often to check whether the event loops of callers on other loops are still open."""


class InProcessListener:
    """Serves from `start` to `stop`, on the event loop of `start`. Calls may come from other loops."""

    def __init__(self, calls: CallServer) -> None:
        self._calls = calls
        self._far: set[ServerEnd] = set()  # calls from other event loops
        self._checking: asyncio.TimerHandle | None = None

    def open_call(
        self, path: str, metadata: Metadata, timeout_s: float | None, request: bytes | None = None
    ) -> ClientEnd:
        """See `OpenCall`. If the server is not serving, the call ends with UNAVAILABLE."""
        here, serving = asyncio.get_running_loop(), self._calls.loop
        caller = ClientEnd(here)
        if serving is None:
            caller.end(NOT_THERE)
            return caller
        end = ServerEnd(serving, request)
        caller.connect(end)
        end.connect(caller)
        if here is serving:
            self._calls.begin(path, end, metadata, timeout_s)
            return caller
        try:
            serving.call_soon_threadsafe(self._begin_far, path, end, metadata, timeout_s)
        except RuntimeError:  # the caller's event loop is closed
            caller.end(NOT_THERE)
        return caller

    def _begin_far(self, path: str, end: ServerEnd, metadata: Metadata, timeout_s: float | None) -> None:
        self._calls.begin(path, end, metadata, timeout_s)
        self._far.add(end)
        self._check_later()

    def _check_later(self) -> None:
        if self._far and self._calls.loop is not None and self._checking is None:
            self._checking = self._calls.loop.call_later(CHECK_S, self._check_callers)

    def _check_callers(self) -> None:
        for end in tuple(self._far):
            end.give_up_if_gone()
        self._far = {end for end in self._far if not end.is_over}
        self._checking = None
        self._check_later()

    def stop(self) -> None:
        if self._checking is not None:
            self._checking.cancel()
            self._checking = None

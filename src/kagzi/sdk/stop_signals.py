"""SIGINT and SIGTERM as a request to drain, for as long as workers run."""

import asyncio
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeAlias

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_Handler: TypeAlias = Callable[[int, FrameType | None], Any] | int | signal.Handlers | None


class _StopSignals:
    """One for the process, shared by all workers that run in it: the first takes the signals, the last gives them back.

    `signal.signal` rather than the event loop's own registry, from which the handlers of an application could not be restored."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[], None]] = []
        self._previous: dict[signal.Signals, _Handler] = {}

    def add(self, listener: Callable[[], None]) -> None:
        self._listeners.append(listener)
        if len(self._listeners) > 1:
            return
        for each in _SIGNALS:
            previous = signal.getsignal(each)
            if previous is not None:  # None: not set by Python, and could not be restored
                self._previous[each] = previous
                signal.signal(each, self._on_signal)

    def remove(self, listener: Callable[[], None]) -> None:
        self._listeners.remove(listener)
        if self._listeners:
            return
        for each, previous in self._previous.items():
            if signal.getsignal(each) in (self._on_signal, signal.SIG_DFL):  # else somebody else has it by now
                signal.signal(each, previous)
        self._previous.clear()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        for each in self._previous:
            signal.signal(each, signal.SIG_DFL)  # the second one is final
        for listener in self._listeners:
            listener()


_stop_signals = _StopSignals()


@contextmanager
def on_stop_signal(act: Callable[[], None]) -> Generator[None]:
    """`act` is called in the running loop at the first SIGINT or SIGTERM; a second one ends the process at once. What handled them before
    does so again afterwards. Outside the main thread nothing is done: Python handles signals nowhere else."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()

    def listener() -> None:
        loop.call_soon_threadsafe(act)  # also wakes a loop that waits

    _stop_signals.add(listener)
    try:
        yield
    finally:
        _stop_signals.remove(listener)

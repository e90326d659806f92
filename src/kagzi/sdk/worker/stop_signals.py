"""Handles SIGINT, SIGTERM and SIGHUP (the terminal was closed) as a request to drain while workers run."""

import asyncio
import functools
import signal
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeAlias

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_HANGUPS = () if sys.platform == "win32" else (signal.SIGHUP,)
_Handler: TypeAlias = Callable[[int, FrameType | None], Any] | int | signal.Handlers | None


class _StopSignals:
    """One for the process, shared by its workers: the first installs the handlers, the last restores the old ones.

    Uses `signal.signal` and not the event loop's registry, from which the handlers of an application could not be
    restored."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[], None]] = []
        self._previous: dict[signal.Signals, _Handler] = {}

    def add(self, listener: Callable[[], None]) -> None:
        self._listeners.append(listener)
        if len(self._listeners) > 1:
            return
        for each in _SIGNALS:
            previous = signal.getsignal(each)
            if previous is not None:  # None: not installed by Python, so it could not be restored
                self._previous[each] = previous
                signal.signal(each, self._on_signal)
        for each in _HANGUPS:
            if signal.getsignal(each) is signal.SIG_DFL:  # else it is ignored (nohup), or the program handles it
                self._previous[each] = signal.SIG_DFL
                signal.signal(each, self._on_signal)

    def remove(self, listener: Callable[[], None]) -> None:
        self._listeners.remove(listener)
        if self._listeners:
            return
        for each, previous in self._previous.items():
            if signal.getsignal(each) in (self._on_signal, signal.SIG_DFL):  # else it was replaced meanwhile
                signal.signal(each, previous)
        self._previous.clear()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        for each in _SIGNALS:
            if each in self._previous:
                signal.signal(each, signal.SIG_DFL)  # the second one kills; shells repeat SIGHUP themselves
        for listener in self._listeners:
            listener()

    def are_free(self) -> bool:
        """Whether only Python itself or a worker handles the signals."""
        return bool(self._listeners) or all(map(_is_pythons_own, map(signal.getsignal, _SIGNALS)))


def _is_pythons_own(handler: _Handler) -> bool:
    if _raises(handler):
        return True
    return handler in (signal.SIG_DFL, signal.SIG_IGN)  # ignored: a background job


def _raises(handler: _Handler) -> bool:
    """Whether this is one of Python's handlers that raise KeyboardInterrupt."""
    if isinstance(handler, functools.partial):  # asyncio.run handles SIGINT like this
        return getattr(handler.func, "__qualname__", "") == "Runner._on_sigint"
    return handler is signal.default_int_handler


def may_be_ctrl_c() -> bool:
    """Whether a KeyboardInterrupt raised here may be a Ctrl-C. Never while a worker handles SIGINT, and never outside
    the main thread: then the code raised it itself."""
    return threading.current_thread() is threading.main_thread() and _raises(signal.getsignal(signal.SIGINT))


_stop_signals = _StopSignals()


@contextmanager
def on_stop_signal(act: Callable[[], None]) -> Generator[None]:
    """Calls `act` in the running loop at the first signal; a second SIGINT or SIGTERM ends the process at once. The
    previous handlers are restored afterwards. Does nothing outside the main thread: Python handles signals only
    there."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()

    def listener() -> None:
        loop.call_soon_threadsafe(act)  # also wakes an idle loop

    _stop_signals.add(listener)
    try:
        yield
    finally:
        _stop_signals.remove(listener)


class Block:
    """The block of an `async with worker:` in a program that leaves SIGINT and SIGTERM to the worker."""

    def __init__(self) -> None:
        self.is_over = False
        self._was_signalled = False

    @contextmanager
    def listening(self, is_ours: Callable[[], bool]) -> Generator[None]:
        """A signal cancels the current task, if `is_ours`. Not in programs that handle one of the signals themselves,
        such as web servers, nor in tests, where pytest handles Ctrl-C."""
        is_main = threading.current_thread() is threading.main_thread()
        task = asyncio.current_task()
        if task is None or not is_main or "pytest" in sys.modules or not _stop_signals.are_free():
            yield
            return

        def end() -> None:
            if is_ours() and not self.is_over:
                self._was_signalled = True
                task.cancel()

        with on_stop_signal(end):
            yield

    def leave_program(self) -> None:
        """After the block has exited: raises SystemExit if a signal ended it."""
        if self._was_signalled:
            raise SystemExit(0) from None

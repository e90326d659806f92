"""Timers and threads that workflow code started itself, for which the run must wait on this worker.

A run with such a source stays: nothing would wake it when the source fires. This concerns what workflow code does
between ctx calls (asyncio.sleep, asyncio.timeout, wait_for, to_thread), in any task and through any library; step
bodies and the SDK's own timers are not counted. No event loop tells what its timers are for, so the methods of the loop
are wrapped.
"""

import asyncio
import math
import sys
from collections.abc import Callable
from typing import Any

from ...workflow.current import place
from ..scopes import Scope

_PRUNE_AT = 64
_LATE_S = 0.1  # a timer that was due this recently may not have run yet
_NEVER_S = 10 * 365 * 86_400.0  # `sleep(math.inf)` is a timer too, of a hundred years on uvloop
_PACKAGE = __name__.partition(".")[0]

Source = asyncio.TimerHandle | asyncio.Future[Any]


class OutsideSources:
    """The outside sources of one run."""

    __slots__ = ("_loop", "_prune_at", "_sources")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._sources: list[Source] = []
        self._prune_at = _PRUNE_AT

    def add(self, source: Source) -> None:
        if len(self._sources) >= self._prune_at:
            self._prune()
            self._prune_at = max(_PRUNE_AT, 2 * len(self._sources))  # else each `add` would search all pending ones
        self._sources.append(source)

    def describe(self, *, due_by: float = math.inf) -> str:
        """A description of one that has not fired yet; empty if there is none. `due_by`, in the loop's time, leaves out
        later timers."""
        self._prune()
        sources = [source for source in self._sources if isinstance(source, asyncio.Future) or source.when() <= due_by]
        if not sources:
            return ""
        source = sources[0]
        if isinstance(source, asyncio.Future):
            return "a thread (asyncio.to_thread, loop.run_in_executor)"
        due_in_s = max(source.when() - self._loop.time(), 0.0)
        return f"a timer of its own that is due in {due_in_s:.1f} s (asyncio.sleep, asyncio.timeout)"

    def _prune(self) -> None:
        now = self._loop.time()
        self._sources = [source for source in self._sources if _is_pending(source, now)]


def _is_pending(source: Source, now: float) -> bool:
    if isinstance(source, asyncio.Future):
        return not source.done()
    return not source.cancelled() and now - _LATE_S < source.when() < now + _NEVER_S


def watch_sources(loop: asyncio.AbstractEventLoop) -> None:
    """Record the timers and threads that workflow code starts on this loop. Idempotent."""
    for name in ("call_later", "call_at", "run_in_executor"):
        method = getattr(loop, name)
        if not isinstance(method, _Watched):
            setattr(loop, name, _Watched(method))


class _Watched:
    """A method of the loop whose result is recorded if workflow code calls it."""

    __slots__ = ("_method",)

    def __init__(self, method: Callable[..., Source]) -> None:
        self._method = method

    def __call__(self, *args: Any, **kwargs: Any) -> Source:
        source = self._method(*args, **kwargs)
        scope = place.get()
        if type(scope) is Scope and _is_called_from_outside():
            scope.run.started(source)
        return source


def _is_called_from_outside() -> bool:
    """Whether the caller of the loop's method is neither Kagzi nor the loop itself, whose methods call each other."""
    module = str(sys._getframe(2).f_globals.get("__name__", ""))  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    return module != "asyncio.base_events" and module.partition(".")[0] != _PACKAGE

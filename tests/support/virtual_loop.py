"""An event loop whose time does not pass by itself: when all tasks wait, it is at once as late as the next of them
wants it.

Hours go by in no time, and equal seeds give equal runs. A loop in which nothing can ever happen again says so instead
of waiting.
"""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.now_s = 1_000.0
        super().__init__(_Skipping(self))
        self._clock_resolution = 1e-6  # large times have few digits left behind the point

    def time(self) -> float:
        return self.now_s


class _Skipping(selectors.DefaultSelector):  # type: ignore[valid-type,misc]
    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("everything waits, and nothing can happen any more")
        if timeout > 0:
            self._loop.now_s += timeout
        return super().select(0)


def run_virtually(main: Coroutine[Any, Any, T]) -> T:
    """On a loop of its own. What goes wrong in a callback, where nobody awaits it, is an error too."""
    unhandled: list[dict[str, Any]] = []

    def note(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if not isinstance(context.get("future"), asyncio.Task):  # what a program makes of its own tasks is its affair
            unhandled.append(context)

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.get_loop().set_exception_handler(note)
        result = runner.run(main)
    assert not unhandled, unhandled
    return result

"""The await chain of a suspended task: its frames, from the function of the task to the innermost one.

Coroutines, generators and async generators expose what they await. The objects in between (`asend()`, `athrow()`,
`aclose()`, `anext()`, the iterator of a coroutine) do not; what they refer to is read with gc.get_referents, which
works on every Python version and costs a single call.
"""

import asyncio
import gc
import sys
from collections.abc import AsyncGenerator, Coroutine, Generator, Iterator
from types import FrameType
from typing import Any, cast

AnyFuture = asyncio.Future[Any]

_FRAMES = ("cr_frame", "gi_frame", "ag_frame")
_AWAITED = ("cr_await", "gi_yieldfrom", "ag_await")


def frames_of(task: AnyFuture) -> list[FrameType]:
    """The outermost first. Ends early at code without frames, such as a coroutine written in C."""
    return [frame for _, frame in chain_of(task)]


def chain_of(task: AnyFuture) -> "Iterator[tuple[object, FrameType]]":
    """Each coroutine and generator of the task with its frame, the outermost first."""
    awaitable: Any = task.get_coro() if isinstance(task, asyncio.Task) else None
    for _ in range(sys.getrecursionlimit()):
        if awaitable is None or isinstance(awaitable, asyncio.Future):
            return
        frame = _attribute(awaitable, _FRAMES)
        if frame is not None:
            yield awaitable, frame
            awaitable = _attribute(awaitable, _AWAITED)
        else:
            awaitable = _wrapped(awaitable)


def _attribute(awaitable: object, names: tuple[str, ...]) -> Any:
    return next((getattr(awaitable, name) for name in names if hasattr(awaitable, name)), None)


def _wrapped(awaitable: object) -> object:
    """The awaitable to which an awaitable without a frame delegates."""
    for each in gc.get_referents(awaitable):
        if isinstance(each, (AsyncGenerator, Coroutine, Generator)):
            return cast("object", each)
    return None

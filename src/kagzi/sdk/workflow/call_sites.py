"""Calls that were made and never awaited: what Python says of one names the call and its line."""

import os
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar, cast

R = TypeVar("R")


def called(coroutine: Coroutine[Any, Any, R], what: str) -> Coroutine[Any, Any, R]:
    """The coroutine that a call of the public API answers, to be made by that call itself: the line named is that of
    its caller. Python's RuntimeWarning reads: coroutine 'ctx.step('charge'), called at flow.py:12 (write await),' was
    never awaited."""
    # This thread's stack, without the cost of inspect.
    frame = sys._getframe(2)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    place = f"{frame.f_code.co_filename.rpartition(os.sep)[2]}:{frame.f_lineno}"
    cast("Any", coroutine).__qualname__ = f"{what}, called at {place} (write await),"
    return coroutine

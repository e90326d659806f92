"""Calls that were made and never awaited: what Python says of one names the call and its line."""

import os
import sys
from collections.abc import Coroutine
from types import CodeType
from typing import Any, TypeVar

R = TypeVar("R")

_SITES_MAX = 1_000
# By call, code and place in it, since a workflow makes the same call again and again. The code is kept with the words:
# its number is not given to another one meanwhile.
_sites: dict[tuple[str, int, int], tuple[CodeType, str]] = {}


def called(coroutine: Coroutine[Any, Any, R], what: str) -> Coroutine[Any, Any, R]:
    """The coroutine that a call of the public API answers, to be made by that call itself: the line named is that of
    its caller. Python's RuntimeWarning reads: coroutine 'ctx.step('charge'), called at flow.py:12 (write await),' was
    never awaited."""
    # This thread's stack, without the cost of inspect.
    frame = sys._getframe(2)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    code = frame.f_code
    key = (what, id(code), frame.f_lasti)
    known = _sites.get(key)
    if known is None:
        if len(_sites) >= _SITES_MAX:
            _sites.clear()
        place = f"{code.co_filename.rpartition(os.sep)[2]}:{frame.f_lineno}"
        known = _sites[key] = (code, f"{what}, called at {place} (write await),")
    named: Any = coroutine
    named.__qualname__ = known[1]
    return coroutine


def call_place(coroutine: object) -> str | None:
    """`file.py:12`, with the path of the file, of the call that answered this coroutine; None: not known."""
    words = getattr(coroutine, "__qualname__", "")
    for code, known in _sites.values():
        if known is words:
            line = known.rpartition(":")[2].partition(" ")[0]
            return f"{code.co_filename}:{line}"
    return None

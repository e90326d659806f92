"""Whether a task can reach an awaited future, and so may be the one that sets it.

Nothing records who will set a plain future. If another task of the run can reach it through a variable, a container or
an attribute, that task is assumed to set it; if none can, a callback or a thread must have it.
"""

import asyncio
import gc
from collections import deque
from collections.abc import Iterable
from types import (
    AsyncGeneratorType,
    BuiltinFunctionType,
    CodeType,
    CoroutineType,
    FrameType,
    FunctionType,
    GeneratorType,
    ModuleType,
    TracebackType,
)

from .await_chain import AnyFuture, chain_of

_PACKAGE = __name__.partition(".")[0]
_DEPTH_MAX = 6  # a cell, an object, its attributes, a container of futures, and two to spare
_OBJECTS_MAX = 2_000
# Not searched: objects that lead to everything, or to what other tasks can reach.
_OPAQUE = (
    AsyncGeneratorType, BuiltinFunctionType, CodeType, CoroutineType, FrameType, GeneratorType, ModuleType,
    TracebackType, type,
    asyncio.AbstractEventLoop, asyncio.BaseProtocol, asyncio.BaseTransport, asyncio.Future, asyncio.Handle,
    bytes, str, int, float,
)  # fmt: skip


def is_referenced_by(future: AnyFuture, tasks: Iterable[AnyFuture]) -> bool:
    """Whether one of these tasks can reach the future. Also False if the search would take too long."""
    seen: set[int] = set()
    queue: deque[tuple[object, int]] = deque()
    for task in tasks:
        for suspended, frame in chain_of(task):
            if not _is_own(str(frame.f_globals.get("__name__", ""))):
                queue.extend((each, 0) for each in gc.get_referents(suspended))
    while queue and len(seen) < _OBJECTS_MAX:
        each, depth = queue.popleft()
        if each is future:
            return True
        if id(each) in seen or depth >= _DEPTH_MAX or isinstance(each, _OPAQUE) or _is_own(type(each).__module__):
            continue
        seen.add(id(each))
        queue.extend((inner, depth + 1) for inner in _inside(each))
    return False


def _is_own(module: str) -> bool:
    """Kagzi's own objects lead to the workflow function, and so to everything that it can reach."""
    return module.partition(".")[0] == _PACKAGE


def _inside(each: object) -> Iterable[object]:
    if isinstance(each, FunctionType):
        return each.__closure__ or ()  # not the variables of its module
    return gc.get_referents(each)

"""What the tasks of a run wait for: for Kagzi, for each other, or for something else.

Only if none waits for something else may the run leave the worker: a foreign wait (a socket, asyncio.sleep) ends in this process
or not at all.
"""

import asyncio
import sys
from collections.abc import Collection
from pathlib import PurePath
from typing import Any, cast

from .quiet import children_of, waiter_of

AnyFuture = asyncio.Future[Any]

_ASYNCIO_DIRECTORY = str(PurePath(asyncio.__file__).parent)
_JOINING_MODULES = frozenset({"taskgroups.py", "queues.py", "locks.py"})  # woken by tasks, and by nothing else


def foreign_tasks(
    tasks: Collection[AnyFuture], in_step: Collection[AnyFuture], own: Collection[AnyFuture]
) -> list[AnyFuture]:
    """The tasks that wait for something that is neither a ctx call (`own` futures) nor other tasks of the run."""
    return [task for task in tasks if task not in in_step and not task.done() and not _waits_inside(task, tasks, own)]


def _waits_inside(task: AnyFuture, tasks: Collection[AnyFuture], own: Collection[AnyFuture]) -> bool:
    waiter = waiter_of(task)
    if waiter is None:
        return False
    if _is_inside(waiter, tasks, own):
        return True
    return isinstance(task, asyncio.Task) and _joins(task, tasks, own)


def _is_inside(future: AnyFuture, tasks: Collection[AnyFuture], own: Collection[AnyFuture]) -> bool:
    if future in own or future in tasks:
        return True
    children = children_of(future)
    return children is not None and all(child.done() or _is_inside(child, tasks, own) for child in children)


def _joins(task: "asyncio.Task[Any]", tasks: Collection[AnyFuture], own: Collection[AnyFuture]) -> bool:
    """Whether the innermost running function of the task is one of asyncio that waits for tasks only."""
    frame = innermost_frame(task)
    if frame is None:
        return False
    path = PurePath(frame.f_code.co_filename)
    if str(path.parent) != _ASYNCIO_DIRECTORY:
        return False
    if path.name in _JOINING_MODULES:
        return True
    if path.name == "tasks.py" and frame.f_code.co_name == "_wait" and frame.f_locals.get("timeout") is None:
        awaited = cast("Collection[AnyFuture]", frame.f_locals.get("fs", ()))
        return all(future.done() or _is_inside(future, tasks, own) for future in awaited)
    return False


def innermost_frame(task: "asyncio.Task[Any]") -> Any:
    """The frame of the function that awaits a future; None where that cannot be seen."""
    awaitable: Any = task.get_coro()
    frame: Any = None
    for _ in range(sys.getrecursionlimit()):
        found = next(
            (getattr(awaitable, name) for name in ("cr_frame", "gi_frame", "ag_frame") if hasattr(awaitable, name)),
            None,
        )
        if found is None:
            return frame
        frame = found
        awaitable = next(
            (getattr(awaitable, name) for name in ("cr_await", "gi_yieldfrom", "ag_await") if hasattr(awaitable, name)),
            None,
        )
    return frame


def whereabouts(task: AnyFuture) -> str:
    """`file.py:12 in function`, of the innermost code that is not asyncio's."""
    if not isinstance(task, asyncio.Task):
        return repr(task)
    awaitable: Any = task.get_coro()
    place = repr(task)
    while (frame := getattr(awaitable, "cr_frame", None)) is not None:
        if PurePath(frame.f_code.co_filename).parent != PurePath(_ASYNCIO_DIRECTORY):
            place = f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"
        awaitable = getattr(awaitable, "cr_await", None)
    return place

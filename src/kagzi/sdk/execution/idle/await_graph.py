"""The await graph of a run: whether its tasks wait for Kagzi, for each other, or for something outside.

The run may leave the worker only if none waits for something outside. A wait for a socket or a thread ends in this
process or not at all: if the run had left, nothing would wake it. A wait for a queue, a lock or an event ends when
another task of the run ends it, which no task does while all wait for Kagzi: such a run may leave, because replay
returns to the same place. The code that uses the primitive decides which case it is: the sockets of anyio,
for example, wait for an event. See docs/adr/0017-when-a-run-may-park.md.
"""

import asyncio
import math
from collections.abc import Callable, Collection, Iterable, Sequence
from types import FrameType
from typing import cast

from .await_chain import AnyFuture, frames_of
from .detection import children_of, waiter_of
from .future_owners import is_referenced_by

# Code that waits for another task to set, put, release or notify. The caller determines what it is used for.
_PRIMITIVES = frozenset({
    "asyncio.locks",
    "asyncio.queues",
    "anyio._core._futures",
    "anyio._core._synchronization",
    "anyio._core._tasks",  # a task's handle
    "anyio.abc._streams",
    "anyio.streams.memory",
    "anyio.streams.stapled",
})  # fmt: skip
_ANYIO_BACKEND = "anyio._backends._asyncio"
_BACKEND_PRIMITIVES = frozenset({
    "Event.wait",
    "Lock.acquire",
    "Semaphore.acquire",
    "CapacityLimiter.__aenter__",
    "CapacityLimiter.acquire",
    "CapacityLimiter.acquire_on_behalf_of",
})  # fmt: skip
_BACKEND_AWAITS_TASKS = frozenset({"TaskGroup.__aexit__", "TaskGroup.start"})
# Code in these packages waits for a socket, a thread, a process, or a connection that all runs share, except for the
# modules and functions above.
_CONNECTED = frozenset({
    "aio_pika", "aiohttp", "aiokafka", "aiormq", "anyio", "asyncio", "asyncpg", "grpc", "httpcore", "httpcore2",
    "mcp", "motor", "nats",
    "psycopg", "psycopg_pool", "pymongo", "redis", "uvloop", "websockets", "zmq",
})  # fmt: skip
_TRANSPARENT = frozenset({"asyncio.futures"})  # Future.__await__, where it is implemented in Python


def foreign_tasks(
    tasks: Collection[AnyFuture], in_step: Collection[AnyFuture], own: Collection[AnyFuture]
) -> list[AnyFuture]:
    """The tasks that wait for something other than a ctx call (`own` futures) or another task of the run."""
    return [task for task in tasks if task not in in_step and not task.done() and not _waits_inside(task, tasks, own)]


def _waits_inside(task: AnyFuture, tasks: Collection[AnyFuture], own: Collection[AnyFuture]) -> bool:
    waiter = waiter_of(task)
    if waiter is None:
        return False
    if _is_inside(waiter, tasks, own):
        return True
    frames = [frame for frame in frames_of(task) if _module(frame) not in _TRANSPARENT]
    if not frames:
        return False
    inside = _asyncio_or_anyio_decides(frames, tasks, own)
    if inside is not None:
        return inside
    return type(waiter) is asyncio.Future and is_referenced_by(waiter, [each for each in tasks if each is not task])


def _is_inside(future: AnyFuture, tasks: Collection[AnyFuture], own: Collection[AnyFuture]) -> bool:
    if future in own or future in tasks:
        return True
    children = children_of(future)
    if children is None:
        shielded = _shielded(future)
        return shielded is not None and _is_inside(shielded, tasks, own)
    return all(child.done() or _is_inside(child, tasks, own) for child in children)


def _shielded(future: AnyFuture) -> AnyFuture | None:
    """The inner future of one that asyncio.shield() returned; None for other futures."""
    callbacks: Iterable[tuple[Callable[..., object], object]] = getattr(future, "_callbacks", None) or ()
    for callback, _ in callbacks:
        if getattr(callback, "__qualname__", "") == "shield.<locals>._outer_done_callback":
            code, cells = getattr(callback, "__code__", None), getattr(callback, "__closure__", None) or ()
            names: Sequence[str] = getattr(code, "co_freevars", ())
            return next((cell.cell_contents for name, cell in zip(names, cells, strict=False) if name == "inner"), None)
    return None


def _asyncio_or_anyio_decides(
    frames: Sequence[FrameType], tasks: Collection[AnyFuture], own: Collection[AnyFuture]
) -> bool | None:
    """Whether only tasks of the run set this future. None: neither asyncio nor anyio made it."""
    module, function = _module(frames[-1]), frames[-1].f_code.co_qualname
    if module == "asyncio.taskgroups" or (module == _ANYIO_BACKEND and function in _BACKEND_AWAITS_TASKS):
        return True
    if module == "asyncio.tasks":
        return _awaits_own_tasks(frames[-1], tasks, own)
    if not _is_primitive(frames[-1]):
        return False if _package(frames[-1]) in _CONNECTED else None
    outermost, user = _use_of_primitive(frames)
    if user is None:
        return True  # a task that consists of `queue.get()` only
    if _module(user) == "asyncio.tasks":
        return True  # as_completed()
    return _package(user) not in _CONNECTED and not _is_global(outermost.f_locals.get("self"), user)


def _use_of_primitive(frames: Sequence[FrameType]) -> tuple[FrameType, FrameType | None]:
    """The outermost function of the primitive, and its caller. The innermost frame is in a primitive."""
    called = frames[-1]
    for frame in reversed(frames):
        if not _is_primitive(frame):
            return called, frame
        called = frame
    return called, None


def _is_global(primitive: object, user: FrameType) -> bool:
    """Whether the primitive is a variable of the user's module: other runs share it, and any of them may end the
    wait."""
    return any(value is primitive for value in list(user.f_globals.values()))


def _awaits_own_tasks(frame: FrameType, tasks: Collection[AnyFuture], own: Collection[AnyFuture]) -> bool:
    """Whether this function of asyncio.tasks waits only for tasks of the run. Its timeout, if any, is a timer of the
    run."""
    variables = frame.f_locals
    match frame.f_code.co_name:
        case "_wait":
            awaited = cast("Collection[AnyFuture]", variables.get("fs", ()))
            return all(future.done() or _is_inside(future, tasks, own) for future in awaited)
        case "wait_for":
            inner = cast("AnyFuture | None", variables.get("fut"))
            return inner is not None and _is_inside(inner, tasks, own)
        case "sleep":
            return variables.get("delay") == math.inf
        case _:
            return False


def _is_primitive(frame: FrameType) -> bool:
    module = _module(frame)
    return module in _PRIMITIVES or (module == _ANYIO_BACKEND and frame.f_code.co_qualname in _BACKEND_PRIMITIVES)


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _package(frame: FrameType) -> str:
    return _module(frame).partition(".")[0]


def whereabouts(task: AnyFuture) -> str:
    """`file.py:12 in function` of the innermost code that is neither asyncio's nor a library's with connections."""
    frames = frames_of(task)
    users = [frame for frame in frames if _package(frame) not in _CONNECTED and _module(frame) != "contextlib"]
    if not frames:
        return repr(task)
    frame = (users or frames)[-1]
    return f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"

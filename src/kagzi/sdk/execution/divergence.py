"""The errors of code that does not match its history, with the place in the code.

The run is paused with such a problem, and offered to other builds.
"""

import asyncio
import inspect
import os
from collections.abc import Callable
from pathlib import PurePath
from types import FrameType
from typing import Any

import msgspec

from ...core.error_details import ErrorDetail
from ...core.errors import Diverged
from ...v1 import worker_pb2 as pb
from ...wire.enums import STEP_KIND_FROM_WIRE
from ..workflow.call_sites import call_place
from ..workflow.failures import describe
from .ledger import Ledger

Function = Callable[..., Any]

_SDK, _ASYNCIO = PurePath(__file__).parents[1], PurePath(asyncio.__file__).parent
_INNER_DIRECTORIES = (f"{_SDK}{os.sep}", f"{_ASYNCIO}{os.sep}")
_MOVED = (
    "If this is the recorded {!r}, its call was moved: "
    "in another task, gather, branch or order it is another step, {!r}. "
)
REMEDY = (
    'Keep the recorded calls as they were and put new ones behind `if ctx.changed("id")`, or deploy the code that fits.'
)


def other_kind(fn: Function, error: Diverged, step_id: str) -> Diverged:
    return Diverged(f"{error.message} The call is at {where(fn)}.", metadata={"step_id": step_id})


def out_of_order(ledger: Ledger, step_id: str, call: str) -> Diverged:
    """The call at this place would execute `step_id` for the first time, although recorded calls are missing."""
    recorded = ledger.first_outstanding()
    missing = ", ".join(f"{_kind(step)} {step.step_id!r}{'' if step.seq else ' (begun)'}" for step in recorded)
    more = ledger.outstanding - len(recorded)
    moved = next((step.step_id for step in recorded if _name(step.step_id) == _name(step_id)), None)
    return Diverged(
        f"step {step_id!r} at {call} is new to this run, but its history continues with "
        f"{missing}{f' and {more} more' if more else ''}, which the code has not reached. "
        f"{'' if moved is None else _MOVED.format(moved, step_id)}{REMEDY}",
        metadata={"step_id": step_id, "recorded": recorded[0].step_id if recorded else ""},
    )


def waits_in_vain(recorded: pb.HistoryStep, call: str) -> Diverged:
    """The run can only wait, and this step is what it waits for."""
    return Diverged(
        f"the code at {call} waits for {_kind(recorded)} {recorded.step_id!r}, but this run abandoned it in an earlier "
        "execution: "
        f"nothing will arrive for it. {REMEDY}",
        metadata={"step_id": recorded.step_id},
    )


def _name(step_id: str) -> str:
    """The name without scope and occurrence."""
    return step_id.rpartition("/")[2].partition("#")[0]


def never_reached(fn: Function, recorded: pb.HistoryStep) -> Diverged:
    """The function ended without asking for this recorded result."""
    return Diverged(
        f"the code at {_definition(fn)} ended without reaching {_kind(recorded)} {recorded.step_id!r}, which this run "
        "has recorded. "
        f"{REMEDY}",
        metadata={"step_id": recorded.step_id},
    )


def _kind(step: pb.HistoryStep) -> str:
    return f"the recorded {STEP_KIND_FROM_WIRE.get(step.kind, 'step')}"


def where(fn: Function) -> str:
    """`file.py:12` of the innermost running code that is neither Kagzi's nor asyncio's, or of the definition of the
    workflow `fn`."""
    frame: FrameType | None = inspect.currentframe()
    while frame is not None and _is_inner(frame):
        frame = frame.f_back
    if frame is not None and frame.f_code.co_filename.endswith(".py") and _belongs_to_user(frame):
        return f"{frame.f_code.co_filename}:{frame.f_lineno}"
    return _definition(fn)


def call_of(fn: Function, task: "asyncio.Task[Any] | None") -> str:
    """`file.py:12` of the innermost code that is neither Kagzi's nor asyncio's in a waiting task. A task that awaits a
    ctx call directly has no such code: then the place of that call."""
    awaitable: Any = None if task is None else task.get_coro()
    place = call_place(awaitable) or _definition(fn)
    while (frame := getattr(awaitable, "cr_frame", None)) is not None:
        if not _is_inner(frame):
            place = f"{frame.f_code.co_filename}:{frame.f_lineno}"
        awaitable = getattr(awaitable, "cr_await", None)
    return place


def _is_inner(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(_INNER_DIRECTORIES)


def is_user_code(frame: FrameType) -> bool:
    """Whether the code is neither Kagzi's nor asyncio's."""
    return not _is_inner(frame)


def _belongs_to_user(frame: FrameType) -> bool:
    """A task that awaits a ctx call directly has no user code on its stack, only code that runs the event loop."""
    return bool(frame.f_code.co_flags & 0x80) or frame.f_code.co_name == "<genexpr>"  # CO_COROUTINE


def _definition(fn: Function) -> str:
    code = getattr(fn, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else repr(fn)


def problem_of(error: Diverged) -> ErrorDetail:
    return msgspec.structs.replace(
        describe(error), non_retryable=True, subject="step", subject_id=error.metadata.get("step_id", "")
    )

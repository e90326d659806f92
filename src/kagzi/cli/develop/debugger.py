"""Stops in the user's workflow code during a replay: in pdb, or in the debugger that PYTHONBREAKPOINT names.

pdb is attached to the frame that makes the call, and skips the frames of Kagzi and asyncio: `next` goes to the next
line of the workflow, whatever is awaited in between. Other debuggers stop where they are called. So they are called
from a generated line of code that has the file, the line and the variables of the user's code.
"""

import bdb
import copy
import inspect
import os
import pdb  # noqa: T100  --pdb needs it
import sys
import sysconfig
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from types import CodeType, FrameType
from typing import Any

from ...sdk.execution.divergence import is_user_code
from ...sdk.workflow.workflow import Workflow
from ...testing.replay.observation import Observation
from ...testing.replay.replayer import Replayer
from ..console import fail
from ..exits import Exit

_OWN = (
    *("kagzi.sdk.*", "kagzi.testing.*", "kagzi.core.*", "kagzi.wire.*", "kagzi.v1.*", "kagzi.cli.develop.*"),
    *("asyncio", "asyncio.*"),
)
_LIBRARIES = tuple(f"{sysconfig.get_path(name)}{os.sep}" for name in ("stdlib", "purelib", "platlib"))


def breakpoints_are_off() -> bool:
    return os.environ.get("PYTHONBREAKPOINT") == "0"


def _uses_pdb() -> bool:
    named = os.environ.get("PYTHONBREAKPOINT", "")
    return sys.breakpointhook is sys.__breakpointhook__ and named in ("", "pdb.set_trace")


class Stops(Observation):
    """Stops at the call that gets the id `at`. The items of a map begin with the map itself."""

    def __init__(self, at: str) -> None:
        super().__init__()
        self._ids = {at, at.rpartition("[")[0] if at.endswith("]") else at}
        self.reached = False

    def allotted(self, step_id: str) -> None:
        super().allotted(step_id)
        if step_id in self._ids and not self.reached:
            self.reached = True
            frame = _user_frame(sys._getframe(1))  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
            if frame is not None:
                stop_at(frame)


class DebuggingReplayer(Replayer):
    """A replayer that stops at the step `at`, or if it is empty at the first line of the workflow."""

    def __init__(self, workflows: Iterable[Workflow[Any, Any]], at: str) -> None:
        super().__init__(workflows if at or _uses_pdb() else map(_stopping_first, workflows))
        self.stops = Stops(at)
        self._first_lines = () if at or not _uses_pdb() else tuple(map(_code_of, workflows))

    def observe(self) -> Observation:
        if self._first_lines:
            stop_in(self._first_lines)
        return self.stops


def _user_frame(frame: FrameType | None) -> FrameType | None:
    while frame is not None and not is_user_code(frame):
        frame = frame.f_back
    return frame


def _code_of(workflow: Workflow[Any, Any]) -> CodeType:
    code: CodeType = inspect.unwrap(workflow.fn).__code__
    return code


def stop_at(frame: FrameType) -> None:
    """Starts the debugger at the line that this frame executes."""
    if _uses_pdb():
        WorkflowPdb().stop(frame)
    else:
        _call_debugger(frame.f_code.co_filename, frame.f_lineno, frame.f_globals, frame.f_locals)


# --- pdb --------------------------------------------------------------------------------------------------------------


class WorkflowPdb(pdb.Pdb):
    """pdb on a frame further up the stack."""

    def __init__(self) -> None:
        super().__init__(skip=_OWN, nosigint=True)
        self._goes_on = False
        self._file = ""

    def stop(self, frame: FrameType) -> Callable[..., Any] | None:
        """Returns the trace function of the frame from here on, or None."""
        self._file = frame.f_code.co_filename
        bdb.Bdb.set_trace(self, frame)
        sys.settrace(None)  # until the user continues: the debugger's own frames are not traced
        self.interaction(frame, None)
        if self._goes_on:
            return None
        sys.settrace(self.trace_dispatch)
        return self.trace_dispatch

    def set_continue(self) -> None:
        self._goes_on = not self.breaks
        super().set_continue()

    def set_quit(self) -> None:
        """Ends the process at once. An exception raised here would be an error of the workflow, which may catch it; and
        there is nothing to clean up, as no server knows of this replay."""
        fail("the debugger was left before the workflow ended")
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(Exit.INTERRUPTED)

    def stop_here(self, frame: FrameType) -> bool:
        """Keeps `step` out of libraries: most of those calls are Kagzi's own. "<": generated code, such as constructors
        of named tuples."""
        file = frame.f_code.co_filename
        is_own = file == self._file or not file.startswith(("<", *_LIBRARIES))
        return (is_own or self.stopframe is not None) and super().stop_here(frame)


def stop_in(codes: Iterable[CodeType]) -> None:
    """Stops at the first executed line of one of these."""
    wanted = set(codes)

    def on_call(frame: FrameType, event: str, arg: object) -> Callable[..., Any] | None:
        del arg
        return on_line if event == "call" and frame.f_code in wanted else None

    def on_line(frame: FrameType, event: str, arg: object) -> Callable[..., Any] | None:
        del arg
        if event != "line":
            return on_line
        return WorkflowPdb().stop(frame)

    sys.settrace(on_call)


# --- others -----------------------------------------------------------------------------------------------------------


def _call_debugger(file: str, line: int, names: Mapping[str, Any], variables: Mapping[str, Any]) -> None:
    code = compile("\n" * (line - 1) + "breakpoint()", file, "exec")
    exec(code, dict(names), dict(variables))  # noqa: S102  a single call of the debugger


def _stopping_first(workflow: Workflow[Any, Any]) -> Workflow[Any, Any]:
    """The same workflow, with a call of the debugger before its first line."""
    fn, code = workflow.fn, _code_of(workflow)

    @wraps(fn)
    async def stopping(*args: Any) -> Any:
        variables = dict(zip(code.co_varnames, args, strict=False))
        _call_debugger(code.co_filename, code.co_firstlineno, getattr(fn, "__globals__", {}), variables)
        return await fn(*args)

    stopping_workflow = copy.copy(workflow)
    stopping_workflow.fn = stopping
    return stopping_workflow

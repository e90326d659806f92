"""Detects workflow code that changes state which outlives the run: module globals and variables of an enclosing
function.

It traces the event loop's thread: after each line of workflow code it compares the values that the line could have
changed. A variable of an enclosing function lives as long as its cell. Cells that exist before the run outlive it;
those that the run makes, for its own nested functions, do not.
"""

import sys
import types
from collections import deque
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any, cast

from ...sdk.execution.scopes import Scope
from ...sdk.workflow.current import place
from ...sdk.workflow.signals import Signal
from ...sdk.workflow.step import Step
from ...sdk.workflow.workflow import Workflow
from .cells import Cells, existing_cells
from .sources import Culprit, culprit_of, line_at, owner_of

OnChange = Callable[[str, str, str, Culprit], None]
"""Called with the name of the variable, its value before and after, and the code that changed it."""

_SCALARS = (type(None), bool, int, float, complex, str, bytes)
_FIXED = (types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType, Workflow, Step, Signal)
_DEPTH_MAX = 4
_ITEMS_MAX = 200
_SHOWN_CHARS = 200
_CELL = " of cell "  # between the name of a variable and the number of its cell


@contextmanager
def watching_globals(fn: Any, on_change: OnChange, in_threads: Callable[[], bool]) -> "Generator[dict[CodeType, int]]":
    """`fn`: the function of the workflow. `in_threads`: whether bodies of steps run in threads meanwhile; these may
    change anything. Yields the line at which each function last returned."""
    before = sys.gettrace()
    tracer = _Tracer(on_change, in_threads, existing_cells(fn))
    sys.settrace(tracer.on_call)
    try:
        yield tracer.left_at
    finally:
        sys.settrace(before)


class _Tracer:
    def __init__(self, on_change: OnChange, in_threads: Callable[[], bool], cells: Cells) -> None:
        self._on_change = on_change
        self._in_threads = in_threads
        self.cells = cells
        self._bodies = 0  # how often step code, rather than workflow code, was entered
        self._frames: dict[int, tuple[FrameType, _Lines]] = {}  # of workflow code, by id
        self.left_at: dict[CodeType, int] = {}  # the line at which each function last returned

    def on_call(self, frame: FrameType, event: str, _: Any) -> Any:
        if event != "call" or owner_of(frame.f_code.co_filename) != "user":
            return None
        present = self._frames.get(id(frame))
        if present is not None and present[0] is frame:  # resumed, perhaps within a step body that it awaits
            present[1].remember(frame)
            return present[1].on_event
        if type(place.get()) is not Scope:
            self._bodies += 1
            return None
        lines = _Lines(self, frame)
        self._frames[id(frame)] = (frame, lines)
        return lines.on_event

    @property
    def bodies(self) -> int:
        return self._bodies + (1 << 32 if self._in_threads() else 0)

    def changed(self, name: str, before: object, after: object, frame: FrameType, line: int) -> None:
        """`line` of the frame made the change; the frame has moved on since."""
        culprit, file = culprit_of(frame), frame.f_code.co_filename
        if culprit is not None:
            if culprit.line[:2] == (file, frame.f_lineno):
                culprit = culprit._replace(line=line_at(file, line))
            self._on_change(name, _shown(before), _shown(after), culprit)


class _Lines:
    """Traces one of the user's functions line by line."""

    def __init__(self, tracer: _Tracer, frame: FrameType) -> None:
        self._tracer = tracer
        self._raises = False
        self._watched = _names_of(frame.f_code)
        self.remember(frame)

    def remember(self, frame: FrameType) -> None:
        self._line = frame.f_lineno
        self._seen = self._state(frame)
        self._bodies = self._tracer.bodies

    def _state(self, frame: FrameType) -> dict[str, Any]:
        names = frame.f_globals
        state = {name: fingerprint(names[name]) for name in self._watched if name in names}
        for name in frame.f_code.co_freevars:
            for number, cell in enumerate(self._tracer.cells.get(name, ())):
                state[f"{name}{_CELL}{number}"] = _content(cell)
        return state

    def on_event(self, frame: FrameType, event: str, detail: Any) -> Any:
        if event == "exception":
            self._raises = not issubclass(detail[0], StopIteration)  # StopIteration is how an awaited call returns
            return self.on_event
        if self._tracer.bodies == self._bodies and not self._tracer.bodies >> 32:
            now = self._state(frame)
            for name, after in now.items():
                before = self._seen.get(name)
                if before != after:
                    self._tracer.changed(name.partition(_CELL)[0], before, after, frame, self._line)
        if event == "return" and not self._raises:
            self._tracer.left_at[frame.f_code] = frame.f_lineno
        self._raises = False
        self.remember(frame)
        return self.on_event


def _content(cell: types.CellType) -> Any:
    try:
        return fingerprint(cell.cell_contents)
    except ValueError:  # the variable has no value yet
        return ()


def _names_of(code: CodeType) -> frozenset[str]:
    """All names in the code that may be globals."""
    return frozenset(code.co_names)


def fingerprint(value: Any, depth: int = 0) -> Any:
    """Changes if the value changes in a way that code can see. Equal for equal content of plain values, containers and
    the user's own objects. Values that cannot be inspected count as unchanged."""
    if isinstance(value, _SCALARS):
        return value
    if isinstance(value, _FIXED) or depth > _DEPTH_MAX:
        return ()
    inner, content = depth + 1, value
    if isinstance(value, dict):
        items: list[tuple[Any, Any]] = list(content.items())[:_ITEMS_MAX]
        return ("dict", len(content), tuple((fingerprint(key, inner), fingerprint(each, inner)) for key, each in items))
    if isinstance(value, (list, tuple, deque)):
        listed: list[Any] = list(content)[-_ITEMS_MAX:]
        return ("list", len(content), tuple(fingerprint(each, inner) for each in listed))
    if isinstance(value, (set, frozenset)):
        members: list[Any] = list(content)[:_ITEMS_MAX]
        return ("set", len(content), frozenset(repr(each) for each in members))
    return _attributes(value, inner)


def _attributes(value: Any, depth: int) -> Any:
    """Fingerprint an instance of one of the user's classes, or the class itself."""
    owner = value if isinstance(value, type) else type(value)
    module = sys.modules.get(owner.__module__)
    if module is None or owner_of(getattr(module, "__file__", None) or "<none>") != "user":
        return ()
    attributes = getattr(value, "__dict__", None)
    if attributes is None:
        return ()
    content = {
        name: fingerprint(each, depth)
        for name, each in list(attributes.items())[:_ITEMS_MAX]
        if not name.startswith("__") and not callable(each)
    }
    return (owner.__name__, tuple(content.items()))


def _shown(state: object) -> str:
    text = repr(_plain(state))
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}..."


def _plain(state: Any) -> Any:
    """Convert the fingerprint of a container back to its content."""
    parts: list[Any] = list(cast("Iterable[Any]", state)) if type(state) is tuple else []
    if not parts:
        return cast("object", state)
    kind, items = parts[0], parts[-1]
    if kind == "list":
        return [_plain(each) for each in items]
    if kind == "set":
        return sorted(items)
    content = {str(_plain(key)): _plain(value) for key, value in items}
    return content if kind == "dict" else {kind: content}

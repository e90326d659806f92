"""Finds the variables of enclosing functions that exist before a run: the cells of the user's functions.

A function that the run makes gets an older cell only from a function that has it, too. So the cells of all functions
that exist are enough. They are found by the garbage collector, which does not list objects that were frozen
(`gc.freeze`), and from the user's modules, in which those are.
"""

import functools
import gc
import sys
from collections.abc import Iterable, Iterator
from types import CellType, FunctionType, MethodType
from typing import Any, cast

from ...sdk.workflow.step import Step
from ...sdk.workflow.workflow import Workflow
from .sources import owner_of

Cells = dict[str, list[CellType]]
"""By the name of the variable."""

_OBJECTS_MAX = 100_000


def existing_cells(fn: Any) -> Cells:
    """The cells of the user's functions that exist now; `fn`: the function of the workflow."""
    cells: dict[str, dict[int, CellType]] = {}
    listed = (each for each in gc.get_objects() if type(each) is FunctionType and each.__closure__)
    for function in (*listed, *_functions_of_modules(fn)):
        if owner_of(function.__code__.co_filename) == "user":
            for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
                cells.setdefault(name, {})[id(cell)] = cell
    return {name: list(by_id.values()) for name, by_id in cells.items()}


def _functions_of_modules(fn: Any) -> Iterator[FunctionType]:
    """Those that the user's modules contain, however deep."""
    modules = [each for each in list(sys.modules.values()) if _is_users(each)]
    waiting: list[Any] = [fn, *(dict(vars(module)) for module in modules)]
    seen: dict[int, Any] = {}
    while waiting and len(seen) < _OBJECTS_MAX:
        each = waiting.pop()
        if id(each) not in seen:
            seen[id(each)] = each
            waiting.extend(_parts_of(each))
            if type(each) is FunctionType:
                yield each


def _parts_of(value: Any) -> Iterable[Any]:
    """What may contain functions of the user, or be one."""
    match value:
        case FunctionType():
            return [*(value.__closure__ or ()), *vars(value).values()]
        case CellType():
            return gc.get_referents(value)
        case Workflow() | Step():
            return (cast("Any", value).fn,)
        case MethodType() | staticmethod() | classmethod():
            return (cast("Any", value).__func__,)
        case property():
            return (value.fget, value.fset)
        case functools.partial():
            return (cast("Any", value).func,)
        case dict():
            return list(cast("Any", value).values())
        case list() | tuple() | set() | frozenset():
            return list(cast("Iterable[Any]", value))
        case _:
            owner = value if isinstance(value, type) else type(value)
            module = sys.modules.get(owner.__module__)
            return list(getattr(value, "__dict__", {}).values()) if _is_users(module) else ()


def _is_users(module: Any) -> bool:
    return owner_of(getattr(module, "__file__", None) or "<none>") == "user"

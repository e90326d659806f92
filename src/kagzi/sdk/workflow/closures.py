"""Finds the function whose result a closure returns: `fetch_user` in `lambda: fetch_user(user_id)`.

Reads the closure's code and looks names up; executes nothing. Only a body that is a single call is understood.
"""

import builtins
import dis
import inspect
from collections.abc import Sequence
from functools import lru_cache, partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple, cast

MISSING: Any = object()
_FUNCTIONS = (FunctionType, MethodType, partial, type)
_WRAPPERS = 8
_SPECIAL = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_IGNORED = frozenset({"CACHE", "EXTENDED_ARG", "RESUME", "COPY_FREE_VARS", "NOP"})
_LOADS = frozenset({"LOAD_GLOBAL", "LOAD_DEREF"})
_ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
_BEFORE_CALL = frozenset({"PRECALL", "KW_NAMES"})
_CALLS = frozenset({"CALL", "CALL_KW", "CALL_FUNCTION_EX"})
_REORDER = frozenset({"SWAP", "COPY"})
_JUMPS = frozenset((*dis.hasjrel, *dis.hasjabs))


class Callee(NamedTuple):
    """The names that lead to a function: those after the first are attributes."""

    names: tuple[str, ...]
    is_free: bool  # the first one is a variable of an enclosing function


@lru_cache(maxsize=10_000)
def called_in(code: CodeType) -> Callee | None:
    """The function whose call is all that the code does, if it has a name, like `f` or `module.f`."""
    every = [] if code.co_flags & _SPECIAL else list(dis.get_instructions(code))
    instructions = [each for each in every if each.opname not in _IGNORED]
    if not instructions or instructions.pop().opname != "RETURN_VALUE":
        return None
    if any(each.opcode in _JUMPS or each.opname in _REORDER for each in instructions):
        return None
    end = len(instructions)
    if not end or instructions[-1].opname not in _CALLS:
        return None
    end -= 1
    while end and instructions[end - 1].opname in _BEFORE_CALL:
        end -= 1
    return _only_call(instructions[:end], instructions[end:])


def _only_call(before: Sequence[dis.Instruction], call: Sequence[dis.Instruction]) -> Callee | None:
    """The callee, if it is loaded first, stays on the stack below everything else, and the call takes all of it."""
    names, is_free = list[str](), False
    depth = begin = 0
    for begin, each in enumerate(before, 1):
        depth += _effect(each)
        if not names and each.opname in _LOADS:
            names, is_free = [str(each.argval)], each.opname == "LOAD_DEREF"
        elif names and each.opname in _ATTRIBUTES:
            names.append(str(each.argval))
        elif each.opname != "PUSH_NULL":
            depth -= _effect(each)
            begin -= 1  # noqa: PLW2901  this one is part of the arguments
            break
    base = depth
    for each in before[begin:]:
        depth += _effect(each)
        if depth <= base:  # it used the callee
            return None
    if not names or depth + sum(map(_effect, call)) != 1:
        return None
    return Callee(tuple(names), is_free)


def _effect(instruction: dis.Instruction) -> int:
    return dis.stack_effect(instruction.opcode, instruction.arg)


def resolve(function: Any, callee: Callee) -> Any:
    """What the names mean to this function now, or MISSING. Attributes are read from modules and classes as they are
    stored, so that no code of theirs is executed."""
    if not issubclass(type(function), FunctionType):
        return MISSING
    first, *attributes = callee.names
    if callee.is_free:
        place = function.__code__.co_freevars.index(first)
        try:
            cells: Any = function.__closure__
            value: Any = cells[place].cell_contents
        except ValueError:  # not assigned yet
            return MISSING
    else:
        value = function.__globals__.get(first, MISSING)
        if value is MISSING:
            value = vars(builtins).get(first, MISSING)
    for name in attributes:
        value = _attribute(value, name)
    for _ in range(_WRAPPERS):
        if issubclass(type(value), _FUNCTIONS):
            return value
        value = inspect.getattr_static(value, "__wrapped__", MISSING)  # of a step, or a function with a cache
    return MISSING


def _attribute(owner: Any, name: str) -> Any:
    if owner is MISSING:
        return MISSING
    if issubclass(type(owner), ModuleType):
        return cast("ModuleType", owner).__dict__.get(name, MISSING)
    if inspect.getattr_static(cast("object", type(owner)), "__getattribute__", None) not in _PLAIN_ACCESS:
        return MISSING
    value: Any = inspect.getattr_static(owner, name, MISSING)
    if type(value) in (staticmethod, classmethod):
        return value.__func__
    return value if type(value) is FunctionType or issubclass(type(value), type) else MISSING


_PLAIN_ACCESS = (object.__getattribute__, type.__getattribute__)

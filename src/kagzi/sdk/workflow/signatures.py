"""Reads the signatures of functions: the name, the parameters, the result."""

import inspect
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from functools import partial
from types import FunctionType
from typing import Any, cast, get_args, get_origin, get_type_hints

import msgspec

from ...core.errors import InvalidArgument
from ...core.limits import NAME_BYTES
from ...core.run.refusals import is_reserved
from .closures import MISSING, Callee, called_in, resolve
from .codec import UNTYPED, Codec, codec_for

_RESERVED = re.compile(r"[/#\[\]\x00-\x1f\x7f]")
_WORD_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[_\s]+")
_UNKNOWN = object()
_CALLEES = 8  # closures that call closures


_FACTS_MAX = 10_000  # bounds the memory if functions with new annotations are created in a loop


def check_name(name: object, *, what: str) -> str:
    """Returns a name that can be part of a step id. Raises InvalidArgument for any other."""
    if not isinstance(name, str) or not name.strip():
        raise InvalidArgument(f"{what}={name!r} must be a string that is not empty.", field=what)
    if len(name.encode("utf-8", "replace")) > NAME_BYTES:
        raise InvalidArgument(f"{what} is longer than {NAME_BYTES} bytes: {name[:40]!r}...", field=what)
    if is_reserved(name):
        raise InvalidArgument(f"{what}={name!r} must not begin with $: such names are reserved for Kagzi.", field=what)
    if _RESERVED.search(name) or not _is_utf8(name):
        raise InvalidArgument(
            f"{what}={name!r} must not contain / # [ ] or control characters: they separate the parts of a step's id.",
            field=what,
        )
    return name


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def default_name(fn: Callable[..., Any], *, what: str) -> str:
    """The name in kebab-case: `process_order` and `ProcessOrder` become `process-order`."""
    name = getattr(unwrap(fn), "__name__", "")
    if not name or name == "<lambda>":
        raise InvalidArgument(f'{what}: {fn!r} has no name. Write @{what}("name").', field="name")
    return _WORD_BOUNDARY.sub("-", name.strip("_")).lower()


def unwrap(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function behind partials, bound methods and callable objects."""
    while isinstance(fn, partial):
        bound: partial[Any] = cast("Any", fn)
        fn = bound.func
    if inspect.ismethod(fn):
        return fn.__func__
    if not hasattr(fn, "__code__") and not isinstance(fn, type):
        call = getattr(type(fn), "__call__", None)  # noqa: B004  the method itself is needed, not whether it exists
        if hasattr(call, "__code__"):
            return cast("Callable[..., Any]", call)
    return fn


def is_async(fn: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(unwrap(fn))


def type_hints(fn: Callable[..., Any]) -> dict[str, Any]:
    """The annotations, with strings resolved. Those that cannot be resolved are left out."""
    target = unwrap(fn)
    try:
        return get_type_hints(target, include_extras=True)
    except (NameError, TypeError, AttributeError):
        return {name: hint for name, hint in _raw_annotations(target).items() if not isinstance(hint, str)}


def _raw_annotations(fn: Callable[..., Any]) -> dict[str, Any]:
    try:
        return dict(getattr(fn, "__annotations__", None) or {})
    except NameError:  # evaluated on access in newer Pythons
        return {}


class FunctionFacts(msgspec.Struct, frozen=True):
    """The facts about a function that executing it as a step needs. `callee`: the function whose result it returns, if
    it has no return annotation itself."""

    is_async: bool
    codec: Codec[Any]
    callee: Callee | None = None


def facts_of(fn: Callable[..., Any], *, of_callee: bool = True) -> FunctionFacts:
    """The facts of a function, cached: called for every step. A closure that only calls a function has its type, unless
    `of_callee` is false."""
    target: Any = fn if hasattr(fn, "__code__") else unwrap(fn)
    try:
        annotation = target.__annotations__.get("return", _UNKNOWN)
        key = (target.__code__, annotation)
        known = _facts.get(key)
    except (AttributeError, NameError, TypeError):  # a class or builtin; unresolved names; an unhashable annotation
        known = _read_facts(fn, target)
    else:
        if known is None:
            if len(_facts) >= _FACTS_MAX:
                _facts.clear()
            known = _facts[key] = _read_facts(fn, target)
    return known if known.callee is None or not of_callee else _facts_of_closure(known, fn)


def _read_facts(fn: Callable[..., Any], target: Any) -> FunctionFacts:
    if isinstance(target, type):
        return FunctionFacts(False, codec_for(target))
    hint = type_hints(fn).get("return", _UNKNOWN)
    if hint is not _UNKNOWN:
        return FunctionFacts(is_async(fn), codec_for(awaited_type(hint)))
    callee = called_in(fn.__code__) if isinstance(fn, FunctionType) else None
    return FunctionFacts(is_async(fn), UNTYPED, callee)


def _facts_of_closure(facts: FunctionFacts, fn: Callable[..., Any]) -> FunctionFacts:
    """With the codec of the function that the closure calls, if its type is known and has a JSON form."""
    called: Any = fn
    known = facts
    for _ in range(_CALLEES):
        if known.callee is None:
            return FunctionFacts(facts.is_async, known.codec)
        called = resolve(called, known.callee)
        if called is MISSING:
            return facts
        try:
            known = facts_of(called, of_callee=False)
        except InvalidArgument:  # its type has no JSON form
            return facts
    return facts


_facts: dict[tuple[Any, Any], FunctionFacts] = {}


def awaited_type(annotation: Any) -> Any:
    """The type R of `Coroutine[Any, Any, R]` and `Awaitable[R]`."""
    origin = get_origin(annotation)
    if origin is Coroutine or origin is Awaitable:
        return get_args(annotation)[-1]
    if origin is AsyncGenerator or annotation is Awaitable or annotation is Coroutine:
        return Any
    return annotation

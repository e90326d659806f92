"""Recorded errors as Python source: the exception if its constructor gives an equal error, otherwise everything
recorded about it except the traceback."""

import builtins
import sys
from typing import Any

import msgspec

from ...core.error_details import ErrorDetail
from ...sdk.workflow.failures import describe
from .literals import literal
from .names import Names
from .source import Node, call, text


def error_literal(error: ErrorDetail, names: Names) -> tuple[Node, bool]:
    """The source, and whether the error is exhausted: an exception cannot express that."""
    cls = _class_of(error.type)
    plain = _without_traceback(msgspec.structs.replace(error, exhausted=False))
    if cls is not None and _makes(cls, plain):
        name = names.of(cls)
        if name is not None:
            return call(name, [text(error.message)] if error.message else []), error.exhausted
    return _detail(_without_traceback(error), names), False


def _detail(error: ErrorDetail, names: Names) -> Node:
    fields = {name: getattr(error, name) for name in error.__struct_fields__}
    defaults = ErrorDetail()
    keywords: list[tuple[str, Node]] = []
    for name, value in fields.items():
        if value != getattr(defaults, name):
            keywords.append((name, _detail(value, names) if isinstance(value, ErrorDetail) else _field(value, names)))
    return call(names.name("kagzi", "ErrorDetail"), (), keywords)


def _field(value: Any, names: Names) -> Node:
    enum = type(value).__name__
    if enum in ("ErrorKind", "ErrorCode"):
        return f"{names.name('kagzi', enum)}.{value.name}"
    return literal(value, names)


def _without_traceback(error: ErrorDetail) -> ErrorDetail:
    cause = None if error.cause is None else _without_traceback(error.cause)
    return msgspec.structs.replace(error, traceback="", cause=cause)


def _class_of(name: str) -> type[BaseException] | None:
    """The exception class with this recorded name, if this process has it."""
    module, _, cls = name.rpartition(".")
    named = getattr(sys.modules.get(module) if module else builtins, cls, None)
    return named if isinstance(named, type) and issubclass(named, BaseException) else None


def _makes(cls: type[BaseException], error: ErrorDetail) -> bool:
    try:
        made = cls(error.message) if error.message else cls()
        return describe(made) == error
    except Exception:  # noqa: BLE001  the constructor may be user code
        return False

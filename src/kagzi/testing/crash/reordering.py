"""Iterates sets in another order: makes a copy of a workflow function whose sets are iterated backwards.

The order of a set of strings differs between processes, so a workflow that depends on it behaves differently on the
next worker. Within one process that would never show.
"""

import ast
import inspect
import textwrap
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from types import CodeType, FunctionType
from typing import Any

from .sources import Line, line_at

Turns = Callable[[Line], bool]
"""Called with a line that iterates a set; returns whether to iterate it backwards."""

_HELPER = "__kagzi_reordered__"
_OUTER = "__kagzi_outer__"
_FUTURE_FLAGS = 0x1FF0000  # of `from __future__ import ...`, in code objects
_TAKES_ORDER = frozenset({
    "deque", "dict", "enumerate", "filter", "fromkeys", "iter", "join", "list", "map", "next", "parallel", "race",
    "sorted", "tuple", "zip",
})  # fmt: skip


@contextmanager
def reordered(fn: Callable[..., Any], turns: Turns) -> "Generator[Callable[..., Any] | None]":
    """Yields the same function with sets in another order, valid within the block; None if its source code is not
    available."""
    code = _code_of(fn)
    if code is None or not isinstance(fn, FunctionType):
        yield None
        return
    cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
    closure = tuple(cells[name] for name in code.co_freevars)
    copy = FunctionType(code, fn.__globals__, fn.__name__, fn.__defaults__, closure)
    copy.__kwdefaults__, copy.__annotations__ = fn.__kwdefaults__, fn.__annotations__
    fn.__globals__[_HELPER] = _reorder_by(
        turns, code.co_filename
    )  # a function can only read the globals of its own module
    try:
        yield copy
    finally:
        del fn.__globals__[_HELPER]


def _reorder_by(turns: Turns, file: str) -> Callable[[Any, int], Any]:
    class Reordered(frozenset[Any]):
        line: int

        def __iter__(self) -> Iterator[Any]:
            items = list(super().__iter__())
            return reversed(items) if turns(line_at(file, self.line)) else iter(items)

    def reorder(value: Any, line: int) -> Any:
        if type(value) not in (set, frozenset):
            return value
        copy = Reordered(value)
        copy.line = line
        return copy

    return reorder


def _code_of(fn: Callable[..., Any]) -> CodeType | None:
    """The function's code, with every expression that may depend on the order of a set wrapped in the helper."""
    own: CodeType | None = getattr(fn, "__code__", None)
    if own is None:
        return None
    try:
        lines, first = inspect.getsourcelines(own)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError, ValueError):
        return None
    function = tree.body[0]
    if not isinstance(function, ast.AsyncFunctionDef):
        return None
    function.decorator_list = []
    ast.increment_lineno(tree, first - 1)
    parameters = ast.arguments(
        posonlyargs=[], args=[ast.arg(name) for name in own.co_freevars], kwonlyargs=[], kw_defaults=[], defaults=[]
    )
    place: Any = {"lineno": first, "col_offset": 0, "end_lineno": first + len(lines), "end_col_offset": 0}
    outer = ast.FunctionDef(_OUTER, parameters, [_Sets().visit(function)], [], **place)
    tree.body = [outer]
    try:
        module = compile(
            ast.fix_missing_locations(tree), own.co_filename, "exec", own.co_flags & _FUTURE_FLAGS, dont_inherit=True
        )
    except (SyntaxError, ValueError):
        return None
    return _inner(_inner(module, _OUTER), function.name)


def _inner(code: CodeType | None, name: str) -> CodeType | None:
    constants = () if code is None else code.co_consts
    return next((each for each in constants if isinstance(each, CodeType) and each.co_name == name), None)


class _Sets(ast.NodeTransformer):
    def visit_For(self, node: ast.For) -> ast.AST:
        node.iter = _wrapped(node.iter)
        return self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        if not node.is_async:
            node.iter = _wrapped(node.iter)
        return self.generic_visit(node)

    def visit_Starred(self, node: ast.Starred) -> ast.AST:
        if isinstance(node.ctx, ast.Load):
            node.value = _wrapped(node.value)
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if name in _TAKES_ORDER:
            node.args = [each if isinstance(each, ast.Starred) else _wrapped(each) for each in node.args]
        return self.generic_visit(node)


def _wrapped(node: ast.expr) -> ast.expr:
    helper = ast.copy_location(ast.Name(_HELPER, ast.Load()), node)
    return ast.copy_location(ast.Call(helper, [node, ast.Constant(node.lineno)], []), node)

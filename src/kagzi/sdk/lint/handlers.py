"""Cancellations that workflow code catches and swallows."""

import ast
from collections.abc import Iterable, Iterator, Sequence

from . import names
from .values import Env

_ALL = "builtins.BaseException"
_CANCELLED = frozenset({"asyncio.CancelledError", "asyncio.exceptions.CancelledError"})
_GROUP = "builtins.BaseExceptionGroup"


def caught(handler: ast.ExceptHandler, env: Env) -> str:
    """How much of a cancellation a handler catches: "all" of BaseException, "cancelled", or nothing."""
    if handler.type is None:
        return "all"
    return _kind(_listed(handler.type), env)


def suppressed(item: ast.withitem, env: Env) -> str:
    """As `caught`, for `with contextlib.suppress(...)`."""
    call = item.context_expr
    if isinstance(call, ast.Call) and names.resolve(call.func, env).path == "contextlib.suppress":
        return _kind(call.args, env)
    return ""


def _listed(node: ast.expr) -> Sequence[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple) else [node]


def _kind(types: Iterable[ast.expr], env: Env) -> str:
    paths = {names.resolve(each, env).plain_path for each in types}
    if _ALL in paths or _GROUP in paths:
        return "all"
    return "cancelled" if paths & _CANCELLED else ""


def raises(body: Sequence[ast.stmt]) -> bool:
    return any(isinstance(node, ast.Raise) for node in _within(body))


def leaves(body: Sequence[ast.stmt]) -> bool:
    """Whether it ends the function: a documented way to complete despite a cancellation."""
    return any(isinstance(node, (ast.Raise, ast.Return)) for node in _within(body))


def returns(body: Sequence[ast.stmt]) -> ast.Return | None:
    return next((node for node in _within(body) if isinstance(node, ast.Return)), None)


def awaits_cancelled_task(body: Sequence[ast.stmt], function: ast.AST) -> bool:
    """Whether it is `await task` after `task.cancel()`: the cancellation is the task's own."""
    awaited = {ast.unparse(node.value) for node in _within(body) if isinstance(node, ast.Await)}
    cancelled = {
        ast.unparse(node.func.value)
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "cancel"
    }
    return bool(awaited) and (awaited <= cancelled or (bool(cancelled) and all("gather" in each for each in awaited)))


def _within(body: Sequence[ast.stmt]) -> Iterator[ast.AST]:
    """All nodes in these statements, but not in functions that they define."""
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            waiting.extend(ast.iter_child_nodes(node))

"""Finds the workflows in a module, without importing it."""

import ast
from collections.abc import Iterator
from typing import NamedTuple

from . import names
from .flow import enclosing_env
from .values import Class, Env, Function, Source

_Scope = tuple[ast.AST, ...]
_CLASSES = ("kagzi.Workflow", "kagzi.workflow")


class LocatedWorkflow(NamedTuple):
    function: Function
    name: str  # the name of the function


def workflows_in(source: Source) -> list[LocatedWorkflow]:
    """Functions that are decorated, made into a Workflow, or passed to a Worker as a pair with a name."""
    functions: dict[ast.AST, Function] = {}
    for function in _all(source, source.tree, (), source.env, None):
        functions.setdefault(function.node, function)
    return [LocatedWorkflow(each, each.name) for each in functions.values()]


def _all(source: Source, node: ast.AST, path: _Scope, env: Env, owner: Class | None) -> Iterator[Function]:
    for part in ast.iter_child_nodes(node):
        if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)):
            function = Function(source, part, env, owner)
            if names.is_workflow(function):
                yield function
            inner = (*path, part)
            if any(isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Call)) for each in ast.walk(part)):
                yield from _all(source, part, inner, enclosing_env(source, inner), None)
        elif isinstance(part, ast.ClassDef):
            yield from _all(source, part, path, env, Class(source, part, env))
        else:
            if isinstance(part, ast.Call):
                yield from _made(part, env)
            yield from _all(source, part, path, env, owner)


def _made(call: ast.Call, env: Env) -> Iterator[Function]:
    """`Workflow(f)`, `workflow("name")(f)` and `Worker(workflows=[("name", f)])`."""
    candidates: list[ast.expr] = []
    path = names.resolve(call.func, env).plain_path
    if path in _CLASSES:
        candidates = call.args[:1]
    elif path.endswith(("Worker", "Worker.workflows")):
        for value in (*call.args, *(each.value for each in call.keywords)):
            pairs = value.elts if isinstance(value, (ast.List, ast.Tuple)) else []
            candidates += [each.elts[1] for each in pairs if isinstance(each, ast.Tuple) and len(each.elts) == 2]
    for candidate in candidates:
        function = names.resolve(candidate, env).function
        if function is not None:
            yield function


def function_at(source: Source, name: str, line: int) -> Function | None:
    """The function of this name whose code begins at `line`, which is that of its first decorator."""
    path: list[ast.AST] = []
    owner: Class | None = None
    node: ast.AST = source.tree
    while True:
        inside = _child_at(node, line)
        if inside is None:
            return None
        if isinstance(inside, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if inside.name == name and _first_line(inside) == line:
                return Function(source, inside, enclosing_env(source, path), owner)
            path.append(inside)
            owner = None
        elif isinstance(inside, ast.ClassDef):
            owner = Class(source, inside, enclosing_env(source, path))
        node = inside


def _child_at(node: ast.AST, line: int) -> ast.AST | None:
    """The nested statement that a line belongs to."""
    for part in ast.iter_child_nodes(node):
        if isinstance(part, ast.match_case):  # has no line numbers
            inside = _child_at(part, line)
            if inside is not None:
                return inside
        elif isinstance(part, (ast.stmt, ast.ExceptHandler)) and _first_line(part) <= line <= (part.end_lineno or 0):
            return part
    return None


def _first_line(node: ast.stmt | ast.ExceptHandler) -> int:
    listed = node.decorator_list if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) else []
    return min([node.lineno, *(each.lineno for each in listed)])

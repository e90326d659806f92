"""Resolves names through imports and assignments: `from datetime import datetime as dt` makes dt.now a known call."""

import ast
import builtins
from collections.abc import Iterable, Iterator

from .values import CONTEXT, SET, STEP_CALL, UNKNOWN, Class, Env, Function, Source, Value

_PUBLIC = frozenset({"ChildHandle", "Context", "Signal", "Step", "Worker", "Workflow", "step", "workflow"})
_BUILTINS = frozenset(dir(builtins))
_CONTAINERS = frozenset(
    {
        "builtins.list",
        "builtins.dict",
        "builtins.set",
        "collections.defaultdict",
        "collections.deque",
        "collections.Counter",
        "collections.OrderedDict",
    }
)
_SAME_CALL = ("retry", "timeout", "key", "once")  # methods of a step call that return one


def define(statements: Iterable[ast.stmt], source: Source, env: Env, *, module: bool) -> None:
    """Add to `env` the names that these statements define, in nested blocks too, but not in functions."""
    for statement in _flat(statements):
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            env.names.update(imported(statement, source.package))
        elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            env.names[statement.name] = Value(function=Function(source, statement, env))
        elif isinstance(statement, ast.ClassDef):
            origin = "class" if module else ""
            path = f"{source.name}.{statement.name}"
            env.names[statement.name] = Value(path, cls=Class(source, statement, env), origin=origin)
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
            _assign(statement, env, module=module)


def _assign(statement: ast.Assign | ast.AnnAssign, env: Env, *, module: bool) -> None:
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    for target in targets:
        if isinstance(target, ast.Name):
            value = UNKNOWN if statement.value is None else resolve(statement.value, env)
            if module:
                container = statement.value is not None and _is_container(statement.value, value)
                value = value._replace(origin="variable", container=container)
            env.names[target.id] = value


def _is_container(node: ast.expr, value: Value) -> bool:
    if isinstance(node, (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)):
        return True
    return isinstance(node, ast.Call) and value.plain_path in _CONTAINERS


def _flat(statements: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in statements:
        yield statement
        for block in ("body", "orelse", "finalbody"):
            if not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                yield from _flat(getattr(statement, block, ()))
        for handler in getattr(statement, "handlers", ()):
            yield from _flat(handler.body)


def imported(statement: ast.Import | ast.ImportFrom, package: str) -> dict[str, Value]:
    """The names that an import statement defines, with their values."""
    names: dict[str, Value] = {}
    if isinstance(statement, ast.Import):
        for alias in statement.names:
            path = alias.name if alias.asname else alias.name.partition(".")[0]
            names[alias.asname or path] = Value(path, origin="import")
        return names
    base = _absolute(statement.module or "", statement.level, package)
    for alias in statement.names:
        ours = base.partition(".")[0] == "kagzi" and alias.name in _PUBLIC
        path = f"kagzi.{alias.name}" if ours else f"{base}.{alias.name}"
        names[alias.asname or alias.name] = Value(path, origin="import")
    return names


def _absolute(module: str, level: int, package: str) -> str:
    """Resolves a relative module: `from ..words import x` in package a.b is from a.words."""
    if not level:
        return module
    parts = package.split(".") if package else []
    base = parts[: max(len(parts) - level + 1, 0)]
    return ".".join([*base, module] if module else base)


def resolve(node: ast.expr, env: Env) -> Value:
    """The value of an expression, as far as its names tell; checks nothing."""
    if isinstance(node, ast.Name):
        return lookup(node.id, env)
    if isinstance(node, ast.Attribute):
        return attribute(resolve(node.value, env), node.attr)
    if isinstance(node, ast.Await):
        return resolve(node.value, env)
    if isinstance(node, ast.Call):
        return called(resolve(node.func, env))
    if isinstance(node, (ast.List, ast.Tuple)):
        return Value(choices=choices(resolve(each, env) for each in node.elts))
    if isinstance(node, ast.Dict):
        return Value(choices=choices(resolve(each, env) for each in node.values))
    if isinstance(node, ast.Subscript):
        return Value(choices=resolve(node.value, env).choices)
    return UNKNOWN


def choices(elements: Iterable[Value]) -> tuple[Value, ...]:
    """The named elements of a collection."""
    return tuple(each._replace(pending=None, choices=()) for each in elements if each.function is not None or each.path)


def lookup(name: str, env: Env) -> Value:
    value = env.find(name)
    if value is None:
        return Value(f"builtins.{name}") if name in _BUILTINS else UNKNOWN
    return value


def attribute(owner: Value, name: str) -> Value:
    path = f"{owner.path}.{name}" if owner.path else ""
    if owner.cls is not None:
        method = owner.cls.method(name)
        return Value(path, function=method) if method is not None else UNKNOWN
    return Value(path, origin="import" if owner.origin == "import" else "")


def called(callee: Value) -> Value:
    """The value that a call of it returns."""
    if callee.path.startswith(STEP_CALL) and callee.path.removeprefix(f"{STEP_CALL}.") in _SAME_CALL:
        return Value(STEP_CALL)
    return Value(f"{callee.path}()" if callee.path else "", cls=callee.cls)


def annotated(annotation: ast.expr | None, env: Env) -> Value:
    """A value of the annotated type."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            annotation = ast.parse(annotation.value, mode="eval").body
        except (SyntaxError, ValueError):
            return UNKNOWN
    if isinstance(annotation, ast.Subscript):
        return _generic(resolve(annotation.value, env).plain_path, annotation.slice, env)
    if isinstance(annotation, (ast.Name, ast.Attribute)):
        kind = resolve(annotation, env)
        if kind.plain_path in SETS:
            return Value(unordered=SET)
        return Value(f"{kind.path}()" if kind.path else "", cls=kind.cls)
    return UNKNOWN


SETS = frozenset(
    {
        "builtins.set",
        "builtins.frozenset",
        "typing.Set",
        "typing.FrozenSet",
        "typing.AbstractSet",
        "collections.abc.Set",
        "collections.abc.MutableSet",
    }
)
ORDERED = "builtins.set[int]()"  # a set of numbers has the same order in every process
_STABLE = ("builtins.int", "builtins.bool")  # their hashes are the same in every process


def _generic(kind: str, arguments: ast.expr, env: Env) -> Value:
    if kind in SETS:
        return Value(ORDERED) if resolve(arguments, env).path in _STABLE else Value(unordered=SET)
    if kind == "typing.Annotated" and isinstance(arguments, ast.Tuple) and arguments.elts:
        return annotated(arguments.elts[0], env)
    return UNKNOWN


def decorators(function: Function) -> tuple[str, ...]:
    """The full names of its decorators."""
    if function.decorators is None:
        listed = [] if isinstance(function.node, ast.Lambda) else function.node.decorator_list
        function.decorators = tuple(resolve(each, function.outer).plain_path for each in listed)
    return function.decorators


def is_step(function: Function) -> bool:
    return "kagzi.step" in decorators(function)


def is_workflow(function: Function) -> bool:
    return "kagzi.workflow" in decorators(function)


def is_context(value: Value) -> bool:
    return value.path == CONTEXT

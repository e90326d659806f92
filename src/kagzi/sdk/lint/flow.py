"""Statements of workflow code, read in order, and the functions that they call, each read once per combination of
arguments."""

import ast
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from . import handlers, names, rules
from .call_values import bind
from .expressions import Expressions
from .reading import Loop, Reading, Summary
from .report import Chain, Report, UsedFunction
from .sources import Sources
from .values import CONTEXT, STEP_CALL, UNKNOWN, Env, Function, Source, Value

_FUNCTIONS_MAX = 2_000  # read for one report: generated code must not delay the start of a worker
_DEPTH_MAX = 30
_SWALLOWED = "catches the cancellation of the run and loses it: the code runs on, and its next step is refused"


class Linter:
    """Reads workflows and all functions of the project that they call."""

    def __init__(self, sources: Sources) -> None:
        self.sources = sources
        self.report = Report()
        self.steps: dict[ast.AST, UsedFunction] = {}
        self.functions: dict[ast.AST, Function] = {}  # read as workflow code
        self._summaries: dict[object, Summary] = {}
        self._depth = 0

    def workflow(self, function: Function, name: str) -> None:
        parameters = function.parameters
        if function.owner is not None:
            parameters = parameters[1:]
        context = {parameters[0].arg: Value(CONTEXT)} if parameters else {}
        self._read_once(function, Chain(name), bind(function, (), {}) | context, is_workflow=True)

    def read(self, function: Function, chain: Chain, arguments: Mapping[str, Value]) -> Summary:
        return self._read_once(function, chain, arguments, is_workflow=False)

    def add_step(self, function: Function, chain: Chain) -> None:
        self.steps.setdefault(function.node, UsedFunction(function, chain))

    def _read_once(
        self, function: Function, chain: Chain, arguments: Mapping[str, Value], *, is_workflow: bool
    ) -> Summary:
        known = tuple(sorted((name, *_facts(each)) for name, each in arguments.items()))
        key = (function.node, id(function.outer), known, tuple(map(id, chain.suppressions)))
        if key not in self._summaries:
            if len(self._summaries) >= _FUNCTIONS_MAX or self._depth >= _DEPTH_MAX:
                return Summary()
            self._summaries[key] = Summary()  # for recursive calls
            self.functions[function.node] = function
            self._depth += 1
            self._summaries[key] = _Statements(self, function, chain, arguments, is_workflow=is_workflow).read()
            self._depth -= 1
        return self._summaries[key]


class _Statements:
    """The body of one function."""

    def __init__(
        self,
        linter: Linter,
        function: Function,
        chain: Chain,
        arguments: Mapping[str, Value],
        *,
        is_workflow: bool,
    ) -> None:
        self._function = function
        self._is_workflow = is_workflow
        env = Env(function.outer, _parameters(function, arguments))
        body = function.body
        self._reading = Reading(function.source, chain, env, linter.sources, linter.report, linter, body[0])
        self._expressions = Expressions(self._reading)
        self._assigned: dict[str, Value] = {}  # names that hold a call that must be awaited
        self._handlers: dict[type[ast.stmt], Callable[[Any], None]] = {
            ast.Expr: self._expression,
            ast.Assign: self._assign,
            ast.AnnAssign: self._annotated,
            ast.AugAssign: self._augmented,
            ast.Return: self._return,
            ast.For: self._for,
            ast.AsyncFor: self._for,
            ast.With: self._with,
            ast.AsyncWith: self._with,
            ast.Try: self._try,
            ast.TryStar: self._try,
            ast.FunctionDef: self._function_definition,
            ast.AsyncFunctionDef: self._function_definition,
            ast.ClassDef: self._class_definition,
            ast.Import: self._import,
            ast.ImportFrom: self._import,
            ast.Global: self._global,
            ast.Delete: self._delete,
            ast.Match: self._match,
        }

    def read(self) -> Summary:
        reading = self._reading
        self._block(self._function.body)
        if self._assigned:
            loaded = {
                node.id
                for node in ast.walk(self._function.node)
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
            }
            for name, value in self._assigned.items():
                if name not in loaded:
                    reading.not_awaited(value.pending)
        return Summary(reading.durable, reading.returns)

    def _block(self, statements: Iterable[ast.stmt]) -> None:
        for statement in statements:
            self._reading.statement = statement
            handler = self._handlers.get(type(statement))
            if handler is None:
                self._other(statement)
            else:
                handler(statement)

    def _other(self, statement: ast.stmt) -> None:
        """Statements without a handler of their own: their expressions are read, then their blocks."""
        for part in ast.iter_child_nodes(statement):
            if isinstance(part, ast.expr):
                self._reading.not_awaited(self._expressions.value(part).pending)
        self._block(getattr(statement, "body", ()))
        self._block(getattr(statement, "orelse", ()))

    def _expression(self, statement: ast.Expr) -> None:
        value = self._expressions.value(statement.value)
        self._reading.not_awaited(value.pending)
        if value.path == STEP_CALL:
            self._expressions.step_without_function(statement.value)

    def _assign(self, statement: ast.Assign) -> None:
        value = self._expressions.value(statement.value)
        parts = statement.value.elts if isinstance(statement.value, ast.Tuple) else None
        for target in statement.targets:
            if parts is not None and isinstance(target, ast.Tuple) and len(parts) == len(target.elts):
                for each, part in zip(target.elts, parts, strict=True):
                    self._store(each, names.resolve(part, self._reading.env))
            else:
                self._store(target, value)

    def _annotated(self, statement: ast.AnnAssign) -> None:
        declared = names.annotated(statement.annotation, self._reading.env)
        value = UNKNOWN if statement.value is None else self._expressions.value(statement.value)
        self._store(statement.target, declared if value == UNKNOWN or declared.path == names.ORDERED else value)

    def _augmented(self, statement: ast.AugAssign) -> None:
        value = self._expressions.value(statement.value)
        self._reading.not_awaited(value.pending)
        if not isinstance(statement.target, ast.Name) or statement.target.id in self._reading.globals:
            self._expressions.store(statement.target, UNKNOWN)

    def _store(self, target: ast.expr, value: Value) -> None:
        self._expressions.store(target, value._replace(origin="", container=False))
        if isinstance(target, ast.Name) and value.pending is not None:
            self._assigned[target.id] = value

    def _return(self, statement: ast.Return) -> None:
        if statement.value is None:
            return
        value = self._expressions.value(statement.value)
        if self._is_workflow:
            self._reading.not_awaited(value.pending)
        self._reading.returns = value

    def _for(self, statement: ast.For | ast.AsyncFor) -> None:
        reading = self._reading
        iterable = self._expressions.value(statement.iter)
        reading.not_awaited(iterable.pending)
        self._expressions.store_element(statement.target, iterable)
        if iterable.unordered:
            reading.loops.append(Loop(statement.iter, at_once=False))
        self._block(statement.body)
        if iterable.unordered:
            reading.loops.pop()
        self._block(statement.orelse)

    def _with(self, statement: ast.With | ast.AsyncWith) -> None:
        for item in statement.items:
            value = self._expressions.value(item.context_expr)
            if item.optional_vars is not None:
                self._store(item.optional_vars, value._replace(pending=None))
            kind = handlers.suppressed(item, self._reading.env)
            if kind and not handlers.awaits_cancelled_task(statement.body, self._function.node):
                self._swallowed(item.context_expr, ast.unparse(item.context_expr), kind)
        self._block(statement.body)

    def _try(self, statement: ast.Try | ast.TryStar) -> None:
        self._block(statement.body)
        for handler in statement.handlers:
            self._reading.statement = statement
            if handler.name:
                self._reading.env.names[handler.name] = UNKNOWN
            self._check_handler(statement, handler)
            self._block(handler.body)
        self._block(statement.orelse)
        returned = handlers.returns(statement.finalbody)
        if returned is not None:
            self._reading.statement = returned
            self._swallowed(returned, "return in finally:", "all")
        self._block(statement.finalbody)

    def _check_handler(self, statement: ast.Try | ast.TryStar, handler: ast.ExceptHandler) -> None:
        kind = handlers.caught(handler, self._reading.env)
        if not kind or handlers.raises(handler.body):
            return
        if kind == "cancelled" and handlers.leaves(handler.body):
            return  # the documented way to complete despite a cancellation
        if handlers.awaits_cancelled_task(statement.body, self._function.node):
            return
        self._swallowed(handler, "except:" if handler.type is None else f"except {ast.unparse(handler.type)}:", kind)

    def _swallowed(self, node: ast.expr | ast.stmt | ast.ExceptHandler, written: str, kind: str) -> None:
        instead = "End the handler with raise" if isinstance(node, ast.ExceptHandler) else "Let it pass"
        if kind == "all":
            instead += ", or catch Exception: cancellations are not among them"
        self._reading.problem(rules.CANCELLATION, node, f"{written} {_SWALLOWED}", instead)

    def _function_definition(self, statement: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        env = self._reading.env
        env.names[statement.name] = Value(function=Function(self._reading.source, statement, env))

    def _class_definition(self, statement: ast.ClassDef) -> None:
        self._reading.env.names[statement.name] = UNKNOWN

    def _import(self, statement: ast.Import | ast.ImportFrom) -> None:
        self._reading.env.names.update(names.imported(statement, self._reading.source.package))

    def _global(self, statement: ast.Global) -> None:
        self._reading.globals.update(statement.names)

    def _delete(self, statement: ast.Delete) -> None:
        for target in statement.targets:
            if isinstance(target, (ast.Attribute, ast.Subscript)):
                self._expressions.store(target, UNKNOWN)

    def _match(self, statement: ast.Match) -> None:
        self._reading.not_awaited(self._expressions.value(statement.subject).pending)
        for case in statement.cases:
            for part in ast.walk(case.pattern):
                name = getattr(part, "name", None) or getattr(part, "rest", None)
                if isinstance(name, str):
                    self._reading.env.names[name] = UNKNOWN
            if case.guard is not None:
                self._expressions.value(case.guard)
            self._block(case.body)


def _facts(value: Value) -> tuple[object, ...]:
    """The properties of an argument that may matter to the called function."""
    chosen = tuple((each.path, id(each.function)) for each in value.choices)
    return value.path, value.unordered, id(value.function), chosen


def _parameters(function: Function, arguments: Mapping[str, Value]) -> dict[str, Value]:
    """What is known about the parameters, from the call or from their annotations."""
    node = function.node.args
    every = [*function.parameters, *node.kwonlyargs, *(each for each in (node.vararg, node.kwarg) if each)]
    values: dict[str, Value] = {}
    for parameter in every:
        value = arguments.get(parameter.arg, UNKNOWN)
        if value == UNKNOWN and parameter not in (node.vararg, node.kwarg):
            value = names.annotated(parameter.annotation, function.outer)
        values[parameter.arg] = value
    return values


def enclosing_env(source: Source, path: Iterable[ast.AST]) -> Env:
    """The names that a function sees from the functions of `path`, in which it is nested, the outermost first."""
    env = source.env
    for node in path:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            outer = Function(source, node, env)
            env = Env(env, _parameters(outer, {}))
            names.define(node.body, source, env, module=False)
    return env

"""Expressions in workflow code: each is read once, in the order of evaluation."""

import ast
from collections.abc import Callable
from typing import Any

from . import names, rules
from .call_values import CallValues, written
from .reading import Loop, Reading
from .values import DERIVED, SET, STEP_CALL, UNKNOWN, Env, Function, Value

_COROUTINE_METHODS = ("close", "send", "throw")
_Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp


class Expressions:
    """The expressions of one function."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self.calls = CallValues(reading, self.value)
        self._handlers: dict[type[ast.expr], Callable[[Any], Value]] = {
            ast.Name: self._name,
            ast.Attribute: self._attribute,
            ast.Await: self._await,
            ast.Lambda: self._lambda,
            ast.NamedExpr: self._named,
            ast.Starred: self._starred,
            ast.Constant: self._constant,
            ast.List: self._collection,
            ast.Tuple: self._collection,
            ast.Set: self._collection,
            ast.Dict: self._dict,
            ast.Subscript: self._element,
            ast.IfExp: self._condition,
            ast.Compare: self._comparison,
            ast.ListComp: self._comprehension,
            ast.SetComp: self._comprehension,
            ast.GeneratorExp: self._comprehension,
            ast.DictComp: self._comprehension,
            ast.Call: self._call,
        }

    def value(self, node: ast.expr) -> Value:
        handler = self._handlers.get(type(node))
        return self._operation(node) if handler is None else handler(node)

    def store(self, target: ast.expr, value: Value) -> None:
        """Assign to a name, to several, or to a part of an object."""
        if isinstance(target, ast.Name):
            if target.id in self._reading.globals:
                self.calls.global_write(target, target.id)
            else:
                self._reading.env.names[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            for part in target.elts:
                self.store(part.value if isinstance(part, ast.Starred) else part, UNKNOWN)
        elif isinstance(target, (ast.Attribute, ast.Subscript)):
            self.value(target.value)
            if isinstance(target, ast.Subscript):
                self.value(target.slice)
            if self.calls.module_variable(target):
                self.calls.global_write(target, written(target))

    def store_element(self, target: ast.expr, collection: Value) -> None:
        """Assign the elements of a collection in turn; of a dict's items, the second part is the element."""
        element = Value(choices=self._reading.resolved(collection).choices)
        if isinstance(target, ast.Tuple) and len(target.elts) == 2:
            self.store(target.elts[0], UNKNOWN)
            self.store(target.elts[1], element)
        else:
            self.store(target, element)

    def _name(self, node: ast.Name) -> Value:
        return names.lookup(node.id, self._reading.env)

    def _attribute(self, node: ast.Attribute) -> Value:
        owner = self.value(node.value)
        if node.attr not in _COROUTINE_METHODS:
            self._reading.not_awaited(owner.pending)
        return names.attribute(owner, node.attr)

    def _await(self, node: ast.Await) -> Value:
        value = self.value(node.value)
        if value.path == STEP_CALL:
            self.step_without_function(node.value)
            return UNKNOWN
        return value._replace(pending=None)

    def step_without_function(self, node: ast.expr) -> None:
        self._reading.problem(
            rules.NOT_AWAITED,
            node,
            f"{written(node)} has no function to run: it does nothing",
            'Write await ctx.step("name").run(function, ...)',
        )

    def _lambda(self, node: ast.Lambda) -> Value:
        return Value(function=Function(self._reading.source, node, self._reading.env))

    def _named(self, node: ast.NamedExpr) -> Value:
        value = self.value(node.value)
        self.store(node.target, value)
        return value

    def _starred(self, node: ast.Starred) -> Value:
        return self.value(node.value)

    def _constant(self, node: ast.Constant) -> Value:
        return UNKNOWN

    def _collection(self, node: ast.List | ast.Tuple | ast.Set) -> Value:
        values = [self.value(each) for each in node.elts]
        if isinstance(node, ast.Set):
            stable = all(isinstance(each, ast.Constant) and isinstance(each.value, int) for each in node.elts)
            return UNKNOWN if stable else Value(unordered=SET)
        spread = zip(node.elts, values, strict=True)
        unordered = any(isinstance(each, ast.Starred) and value.unordered for each, value in spread)
        return Value(unordered=DERIVED if unordered else "", choices=names.choices(values))

    def _dict(self, node: ast.Dict) -> Value:
        for key in node.keys:
            if key is not None:
                self.value(key)
        return Value(choices=names.choices([self.value(each) for each in node.values]))

    def _element(self, node: ast.Subscript) -> Value:
        owner, index = self.value(node.value), self.value(node.slice)
        self._reading.not_awaited(owner.pending)
        self._reading.not_awaited(index.pending)
        unordered = DERIVED if owner.unordered or index.unordered else ""
        return Value(unordered=unordered, choices=self._reading.resolved(owner).choices)

    def _condition(self, node: ast.IfExp) -> Value:
        self._reading.not_awaited(self.value(node.test).pending)
        body, otherwise = self.value(node.body), self.value(node.orelse)
        return body if body.unordered or body.pending else otherwise

    def _comparison(self, node: ast.Compare) -> Value:
        self._operation(node)
        return UNKNOWN

    def _operation(self, node: ast.expr) -> Value:
        """Operators and f-strings: they need values, and keep the order of their operands."""
        values = [self.value(each) for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr)]
        for value in values:
            self._reading.not_awaited(value.pending)
        if isinstance(node, ast.BinOp):
            kinds = {value.unordered for value in values}
            path = values[0].path if isinstance(node.op, ast.Div) else ""  # Path("a") / "b"
            return Value(path, unordered=SET if SET in kinds else max(kinds))
        return Value(unordered=DERIVED if any(value.unordered for value in values) else "")

    def _comprehension(self, node: _Comprehension) -> Value:
        reading = self._reading
        outer, loops = reading.env, len(reading.loops)
        reading.env = Env(outer)
        unordered = False
        for generator in node.generators:
            iterable = self.value(generator.iter)
            if iterable.unordered:
                unordered = True
                reading.loops.append(Loop(generator.iter, at_once=True))
            self.store_element(generator.target, iterable)
            for condition in generator.ifs:
                self.value(condition)
        for each in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
            self.value(each)
        reading.env = outer
        del reading.loops[loops:]
        if isinstance(node, ast.SetComp):
            return Value(unordered=SET)
        return Value(unordered=DERIVED if unordered else "")

    def _call(self, node: ast.Call) -> Value:
        return self.calls.call(node)

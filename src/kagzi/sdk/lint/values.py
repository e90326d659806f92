"""What is known about a value without executing code: its full name, its order, and whether it must be awaited."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, TypeAlias

from .suppressions import Suppressions

FunctionNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

CONTEXT = "kagzi.Context()"
STEP_CALL = "kagzi.Context().step()"
SET = "set"
DERIVED = "derived"  # a list, dict or text with the order of a set


class Pending(NamedTuple):
    """A call that returns a coroutine: its text and its place."""

    words: str
    node: ast.expr


class Value(NamedTuple):
    """`path`: the full name, with `()` after each call: `httpx.Client().get`; empty if it is not known.

    `origin`: "variable" or "class" of a module, or "import"; empty for local values. `container`: a module variable
    that is a list, dict or set. `unordered`: SET or DERIVED for values with the order of a set. `choices`: the named
    elements of a list, tuple or dict, or the possible values of an element.
    """

    path: str = ""
    unordered: str = ""
    function: Function | None = None
    cls: Class | None = None
    pending: Pending | None = None
    origin: str = ""
    container: bool = False
    choices: tuple[Value, ...] = ()

    @property
    def plain_path(self) -> str:
        return self.path.replace("()", "")


UNKNOWN = Value()


class Env:
    """The names of one scope, and the enclosing scope."""

    __slots__ = ("names", "outer")

    def __init__(self, outer: Env | None = None, names: dict[str, Value] | None = None) -> None:
        self.outer = outer
        self.names: dict[str, Value] = {} if names is None else names

    def find(self, name: str) -> Value | None:
        env: Env | None = self
        while env is not None:
            value = env.names.get(name)
            if value is not None:
                return value
            env = env.outer
        return None

    @property
    def module(self) -> Env:
        env = self
        while env.outer is not None:
            env = env.outer
        return env


class Source:
    """One module. `name`: its full name; `package`: the base of its relative imports; `env`: what it defines."""

    def __init__(self, file: str, text: str, name: str, package: str) -> None:
        """Raises SyntaxError, ValueError."""
        self.file = file
        self.text = text
        self.name = name
        self.package = package
        self.tree = ast.parse(text, file)
        self.env = Env()

    @cached_property
    def suppressions(self) -> Suppressions:
        return Suppressions(self.text)


@dataclass(slots=True, eq=False)
class Function:
    """A function of the project, with the names that its body sees."""

    source: Source
    node: FunctionNode
    outer: Env
    owner: Class | None = None
    decorators: tuple[str, ...] | None = field(default=None)  # full names, once they are needed

    @property
    def name(self) -> str:
        return "lambda" if isinstance(self.node, ast.Lambda) else self.node.name

    @property
    def parameters(self) -> list[ast.arg]:
        arguments = self.node.args
        return [*arguments.posonlyargs, *arguments.args]

    @property
    def body(self) -> list[ast.stmt]:
        if isinstance(self.node, ast.Lambda):
            return [ast.copy_location(ast.Return(self.node.body), self.node.body)]
        return self.node.body


@dataclass(slots=True, eq=False)
class Class:
    """A class of the project."""

    source: Source
    node: ast.ClassDef
    outer: Env

    def method(self, name: str) -> Function | None:
        """Its own method, or that of a base class in the same scope."""
        for part in self.node.body:
            if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)) and part.name == name:
                return Function(self.source, part, self.outer, self)
        for base in self.node.bases:
            known = self.outer.find(base.id) if isinstance(base, ast.Name) else None
            if known is not None and known.cls is not None and known.cls is not self:
                inherited = known.cls.method(name)
                if inherited is not None:
                    return inherited
        return None

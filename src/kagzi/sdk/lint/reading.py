"""The state of one function while it is read as workflow code."""

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from . import rules
from .report import Chain, Place, Report
from .rules import Rule
from .sources import Sources
from .values import UNKNOWN, Env, Function, Pending, Source, Value

_ORDER = "is made in the order of a set, which is another one in every process: the replay does not fit"


class Summary(NamedTuple):
    """What is known about a function that was read. `durable`: it makes steps, sleeps, waits or children."""

    durable: bool = False
    returns: Value = UNKNOWN


class Loop(NamedTuple):
    """A loop over an unordered collection. `at_once`: all its calls are made before one is awaited, as in a list."""

    iterable: ast.expr
    at_once: bool


class Follower(Protocol):
    """Reads the functions that this one calls."""

    def read(self, function: Function, chain: Chain, arguments: Mapping[str, Value]) -> Summary: ...

    def add_step(self, function: Function, chain: Chain) -> None:
        """Record a function that is executed as a step."""
        ...


@dataclass(slots=True, eq=False)
class Reading:
    source: Source
    chain: Chain
    env: Env
    sources: Sources
    report: Report
    follower: Follower
    statement: ast.stmt
    durable: bool = False
    returns: Value = UNKNOWN
    loops: list[Loop] = field(default_factory=list[Loop])
    globals: set[str] = field(default_factory=set[str])

    def problem(self, rule: Rule, node: ast.expr | ast.stmt | ast.ExceptHandler, message: str, instead: str) -> None:
        self.report.add(rule, Place(self.source, node, self.statement), self.chain, f"{message}.", f"{instead}.")

    def makes_durable_call(self, *, keyed: bool = False) -> None:
        """A step, sleep, wait or child begins here. `keyed`: its identity does not depend on its place."""
        self.durable = True
        for loop in self.loops:
            if not (keyed and loop.at_once):
                self.problem(rules.UNORDERED, loop.iterable, f"what this loop awaits {_ORDER}", "Use sorted(...)")

    def not_awaited(self, pending: Pending | None) -> None:
        """A coroutine is used as if it were its result, or not used at all."""
        if pending is None:
            return
        message = f"{pending.words} is not awaited: it does not run, and nothing waits for it"
        instead = f"Write await {pending.words}" if len(pending.words) < 60 else "Write await before it"
        self.problem(rules.NOT_AWAITED, pending.node, message, instead)

    def resolved(self, value: Value) -> Value:
        """The function, class or variable of the project with this full name; else the value itself."""
        if value.function is not None or value.cls is not None or not value.path or value.path.startswith("builtins."):
            return value
        known = self.sources.find(value.plain_path)
        return value if known is UNKNOWN else known

"""Findings: each is reported once, unless a comment suppresses it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from .rules import RULES, SUPPRESSION, Rule
from .suppressions import Suppression
from .values import Function, Source


class Caller(NamedTuple):
    """A call through which workflow code reaches a helper."""

    function: str  # the called function
    file: str
    line: int


class Finding(NamedTuple):
    """`message`: the consequence. `instead`: what to write. `called_from`: for a helper, the calls that lead to it."""

    file: str
    line: int
    column: int
    rule: str
    workflow: str
    message: str
    instead: str
    called_from: tuple[Caller, ...] = ()

    @property
    def advice(self) -> str:
        """Message, remedy and the calls that lead here, in one line."""
        via = ""
        if self.called_from:
            first = self.called_from[0]
            via = f" (Workflow {self.workflow!r} calls {first.function}() at {first.file}:{first.line}.)"
        return f"{self.message} {self.instead}{via}"


class Chain(NamedTuple):
    """How the code being read was reached: the workflow, the calls, and the suppressions at the lines of the calls."""

    workflow: str
    calls: tuple[Caller, ...] = ()
    suppressions: tuple[Suppression, ...] = ()

    def calling(self, function: str, source: Source, node: ast.expr, statement: ast.stmt) -> Chain:
        here = source.suppressions.at(lines_of(node, statement))
        call = Caller(function, source.file, node.lineno)
        return Chain(self.workflow, (*self.calls, call), (*self.suppressions, *here))


class UsedFunction(NamedTuple):
    """A function, and how workflow code reaches it."""

    function: Function
    chain: Chain


class Place(NamedTuple):
    """The node that a finding is about, and the statement that contains it."""

    source: Source
    node: ast.expr | ast.stmt | ast.ExceptHandler
    statement: ast.stmt


class Report:
    """The findings so far."""

    def __init__(self) -> None:
        self._findings: dict[tuple[str, int, int, str], Finding] = {}

    def add(self, rule: Rule, place: Place, chain: Chain, message: str, instead: str) -> None:
        source, node, statement = place
        own = source.suppressions.at(lines_of(node, statement))
        suppressed = False
        for each in (*own, *chain.suppressions):
            if rule.name in each.rules:
                each.used.add(rule.name)
                suppressed = True
        if not suppressed:
            where = (source.file, node.lineno, node.col_offset + 1)
            finding = Finding(*where, rule.name, chain.workflow, message, instead, chain.calls)
            self._findings.setdefault((*where, rule.name), finding)

    def findings(self) -> list[Finding]:
        return sorted(self._findings.values(), key=lambda each: (each.file, each.line, each.column, each.rule))


def lines_of(node: ast.expr | ast.stmt | ast.ExceptHandler, statement: ast.stmt) -> list[int]:
    """Where a comment may be: at the first or last line of the expression, or the first line of the statement."""
    lines = {node.lineno, statement.lineno}
    if isinstance(node, ast.expr) and node.end_lineno is not None:
        lines.add(node.end_lineno)
    return sorted(lines)


def about_suppressions(source: Source, seen_lines: set[int], unchecked: set[str]) -> Iterator[Finding]:
    """Comments that give no reason, name no rule, or suppress nothing. `seen_lines`: lines of which it is
    known whether they are workflow code, without helpers that no workflow here calls. `unchecked`: skipped rules."""
    for each in source.suppressions.all:
        place = (source.file, each.line, each.column, SUPPRESSION.name, "")
        if each.problem:
            write = f"# kagzi: ignore[{each.rules[0] if each.rules else 'clock'}] why it is right here"
            known = "" if "rule" not in each.problem else f" The rules are {', '.join(RULES)}."
            yield Finding(*place, f"this suppression {each.problem}.", f"Write {write}.{known}")
        elif each.line + each.above in seen_lines:
            unused = [rule for rule in each.unused if rule not in unchecked]
            if unused:
                yield Finding(*place, f"this suppression of {', '.join(unused)} suppresses nothing.", "Remove it.")

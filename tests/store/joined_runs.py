"""Reads SQL and finds where rows of two runs meet without a comparison of their namespaces.

Every row that belongs to a run names it by `run_id`; some columns name another run (a child, a parent, a blocker). What
a statement equates is put into classes, each of which is one run. Two runs meet where one names the other, where their
rows are in the same FROM clause, or where one's rows are looked for within a statement about the other. Where they
meet, both must have a namespace, and the statement must hold these two equal; a run that the caller names by itself has
the namespace that the caller names beside it.
"""

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

import sqlglot
from sqlglot import exp

from tests.store.sql_reader import PARAMETERS, Node, Reader


@dataclass(frozen=True)
class Meeting:
    """Two runs of a statement whose namespaces are not compared."""

    one: str
    other: str


def meetings(reader: Reader) -> Iterator[Meeting]:
    runs, namespaces = reader.runs, reader.namespaces
    members: dict[Node, list[Node]] = {}
    for node in reader.touched:
        members.setdefault(runs.find(node), []).append(node)

    def home_of(node: Node) -> set[Node]:
        """The namespaces of all that is there whenever this is, and belongs to the same run."""
        context = reader.context_of.get(node.place, ())
        return {
            namespaces.find(reader.namespace_of[each.place])
            for each in members[runs.find(node)]
            if _has_home(reader, each) and context[: len(prefix := reader.context_of[each.place])] == prefix
        }

    named = {namespaces.find(node) for node in reader.namespace_parameters}
    for one, other in sorted(reader.meetings):
        if one not in reader.touched or other not in reader.touched:
            continue
        first, second = runs.find(one), runs.find(other)
        if first == second or (
            one.place == other.place and not any(_by_caller(reader, node) for node in members[first])
        ):
            continue  # one run; or named only, and whoever reads rows of it is met by itself
        home, other_home = home_of(one), home_of(other)
        if home & other_home:
            continue
        unknown, known_home = (second, home) if home else (first, other_home)
        by_caller = any(_by_caller(reader, node) for node in members[unknown])
        if (home and other_home) or not (known_home & named and by_caller):
            yield Meeting(_text(reader, one), _text(reader, other))


def _has_home(reader: Reader, node: Node) -> bool:
    is_own = reader.own.get(node.place) == node or reader.tables.get(node.place) == PARAMETERS
    return is_own and node.place in reader.namespace_of


def _by_caller(reader: Reader, node: Node) -> bool:
    return node in reader.named_by_caller or reader.tables.get(node.place, PARAMETERS) == PARAMETERS


def _text(reader: Reader, node: Node) -> str:
    return f"{reader.tables.get(node.place, PARAMETERS)}.{node.name}"


def unions(tree: exp.Expression) -> list[exp.Expression]:
    return list(tree.find_all(exp.SetOperation))


def crossings(sql: str, dialect: str) -> set[Meeting]:
    """Where rows of two runs meet and their namespaces are not compared."""
    text = re.sub(r"\bINDEXED BY \w+", "", sql)
    [tree] = [each for each in sqlglot.parse(text, dialect=dialect) if each is not None]
    branched = unions(tree)
    unguarded: set[Meeting] = set()
    for choice in itertools.product((0, 1), repeat=len(branched)):
        reader = Reader({id(union): branch for union, branch in zip(branched, choice, strict=True)})
        reader.query(tree, None, {})
        unguarded.update(meetings(reader))
    return unguarded

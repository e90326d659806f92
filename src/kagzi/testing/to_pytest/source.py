"""Python source as a tree, laid out as `ruff format` does.

What fits on a line stays on one line; otherwise each item of a bracket gets its own line and a trailing comma. These
commas keep the layout under any longer line length.
"""

import unicodedata
from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

WIDTH = 88
"""The line length: the default of ruff and black."""

_INDENT = "    "


class Bracket(NamedTuple):
    """`opening` item, item `closing`. `comments` are the lines before the item with that index: a bracket with comments
    is never written on one line."""

    opening: str
    items: tuple["Item", ...]
    closing: str
    comments: tuple[tuple[int, str], ...] = ()


class Item(NamedTuple):
    """`prefix` is written before the value: `name=`, or `"key": `."""

    prefix: str
    value: "Node"


Node: TypeAlias = str | Bracket
"""An atom, which is never split, or a bracket."""


def call(function: str, arguments: Iterable[Node] = (), keywords: Iterable[tuple[str, Node]] = ()) -> Bracket:
    items = [Item("", each) for each in arguments]
    items += [Item(f"{name}=", each) for name, each in keywords]
    return Bracket(f"{function}(", tuple(items), ")")


def sequence(opening: str, values: Iterable[Node], closing: str) -> Bracket:
    return Bracket(opening, tuple(Item("", each) for each in values), closing)


def mapping(pairs: Iterable[tuple[Node, Node]]) -> Bracket:
    return Bracket("{", tuple(Item(f"{flat(key)}: ", value) for key, value in pairs), "}")


def flat(node: Node) -> str:
    """On one line, of any length."""
    if isinstance(node, str):
        return node
    inner = ", ".join(item.prefix + flat(item.value) for item in node.items)
    comma = "," if node.opening == "(" and len(node.items) == 1 else ""  # a tuple with one item
    return f"{node.opening}{inner}{comma}{node.closing}"


def lay_out(prefix: str, node: Node, *, suffix: str = "", depth: int = 0) -> list[str]:
    """Lines of `prefix` node `suffix`, at this indentation depth."""
    indent = _INDENT * depth
    line = f"{indent}{prefix}{flat(node)}{suffix}"
    if isinstance(node, str) or not node.items or (fits(line) and not _has_comments(node)):
        return [line]
    comments = dict(node.comments)
    lines = [f"{indent}{prefix}{node.opening}"]
    for place, item in enumerate(node.items):
        if place in comments:
            lines += [f"{indent}{_INDENT}# {text}" for text in comments[place].splitlines()]
        lines += lay_out(item.prefix, item.value, suffix=",", depth=depth + 1)
    return [*lines, f"{indent}{node.closing}{suffix}"]


def assigned(name: str, node: Node, *, depth: int = 0) -> list[str]:
    """Lines of `name = node`. An atom that is too long for its line is put in parentheses, if that helps."""
    indent = _INDENT * depth
    if isinstance(node, str) and _width(f"{indent}{name} = {node}") > WIDTH >= _width(f"{indent}{_INDENT}{node}"):
        return [f"{indent}{name} = (", f"{indent}{_INDENT}{node}", f"{indent})"]
    return lay_out(f"{name} = ", node, depth=depth)


def fits(line: str) -> bool:
    return _width(line) <= WIDTH


def _width(line: str) -> int:
    """The width in columns: wide characters take two, and combining ones none."""
    if line.isascii():
        return len(line)
    return sum(map(_columns, line))


def _columns(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _has_comments(node: Node) -> bool:
    return isinstance(node, Bracket) and (bool(node.comments) or any(_has_comments(item.value) for item in node.items))


def text(value: str) -> str:
    """A string literal in double quotes, or in single quotes if that needs fewer escapes."""
    return _quoted("'".join(repr(part)[1:-1] for part in value.split("'")))


def number(value: float) -> str:
    return repr(value).replace("e+", "e")


def data(value: bytes) -> str:
    """A bytes literal, likewise."""
    return "b" + _quoted("'".join(repr(part)[2:-1] for part in value.split(b"'")))


def _quoted(inner: str) -> str:
    """`inner` must not have escaped quotes yet."""
    if inner.count('"') > inner.count("'"):
        return "'" + inner.replace("'", "\\'") + "'"
    return '"' + inner.replace('"', '\\"') + '"'

"""Proposed commands are copied into a shell: each value in one is quoted."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from kagzi.cli.main import COMMANDS

SOURCES = Path(__file__).parents[3] / "src" / "kagzi"
BEFORE = re.compile(rf"(?:^|[^\w.])kagzi (?:{'|'.join(COMMANDS)})\b")
AFTER = re.compile(r"[.;,:)`\n](?:\s|$)|`| shows\b| follows\b")
QUOTED = ("quoted", "same_server")
ALREADY = ("where",)  # what same_server() returned


def unquoted(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and text of each value in a command that nothing quotes."""
    for text in ast.walk(tree):
        if not isinstance(text, ast.JoinedStr):
            continue
        in_command = False
        for part in text.values:
            if isinstance(part, ast.Constant):
                in_command = _is_in_command(part.value, in_command)
            elif in_command and isinstance(part, ast.FormattedValue) and not _is_quoted(part.value):
                yield part.lineno, ast.unparse(part.value)


def _is_in_command(text: str, before: bool) -> bool:
    begins = [match.end() for match in BEFORE.finditer(text)]
    if begins:
        return AFTER.search(text, begins[-1]) is None
    return before and AFTER.search(text) is None


def _is_quoted(value: ast.expr) -> bool:
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
        return value.func.id in QUOTED
    return isinstance(value, ast.Name) and value.id in ALREADY


def test_values_in_commands_are_quoted() -> None:
    values = [
        f"{path.relative_to(SOURCES)}:{line}: {text}"
        for path in sorted(SOURCES.rglob("*.py"))
        for line, text in unquoted(ast.parse(path.read_text()))
    ]
    assert not values, "wrap in quoted(), of kagzi.core.text.commands:\n" + "\n".join(values)


def test_the_rule_sees_what_it_should() -> None:
    def names_in(source: str) -> list[str]:
        return [text for _, text in unquoted(ast.parse(source))]

    assert names_in('f"Send it: kagzi signal {run} {name} VALUE"') == ["run", "name"]
    assert names_in('f"Send it: kagzi signal {quoted(run)} {name}. It is {late}"') == ["name"]
    assert names_in('f"kagzi {thing}, kagzi get {quoted(run)}{where} shows {it}"') == []

"""Comments that disable a rule for a line: `# kagzi: ignore[clock] it is only logged`."""

import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from .rules import OF_TESTS, RULES

_COMMENT = re.compile(r"#\s*kagzi:\s*ignore\b(?:\[(?P<rules>[^\]]*)\])?[\s:-]*(?P<reason>[^#]*)")
_ALMOST = "kagzi:"


@dataclass(slots=True, eq=False)
class Suppression:
    """One comment. `above`: it is alone on its line and applies to the next line."""

    line: int
    column: int
    rules: tuple[str, ...]
    reason: str
    above: bool
    used: set[str] = field(default_factory=set[str])

    @property
    def problem(self) -> str:
        """The error in the comment itself; empty if there is none."""
        if not self.rules:
            return "names no rule"
        unknown = [rule for rule in self.rules if rule not in RULES and rule not in OF_TESTS]
        if unknown:
            return f"names {unknown[0]!r}, which is not a rule"
        return "" if self.reason else "has no reason"

    @property
    def unused(self) -> list[str]:
        return [rule for rule in self.rules if rule in RULES and rule not in self.used]


class Suppressions:
    """The suppressions of one file."""

    def __init__(self, text: str) -> None:
        self.all = list(_read(text)) if _ALMOST in text else []
        self._by_line: dict[int, list[Suppression]] = {}
        for each in self.all:
            self._by_line.setdefault(each.line + 1 if each.above else each.line, []).append(each)

    def at(self, lines: Iterable[int]) -> list[Suppression]:
        if not self._by_line:
            return []
        return [each for line in lines for each in self._by_line.get(line, ())]


def _read(text: str) -> Iterator[Suppression]:
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError):
        return
    for token in tokens:
        match = _COMMENT.search(token.string) if token.type == tokenize.COMMENT else None
        if match is None:
            continue
        line, column = token.start
        rules = tuple(name.strip() for name in (match["rules"] or "").split(",") if name.strip())
        above = not token.line[:column].strip()
        yield Suppression(line, column + 1 + match.start(), rules, match["reason"].strip(), above)

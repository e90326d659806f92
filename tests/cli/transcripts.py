"""What commands print, word for word, kept in files. `KAGZI_UPDATE_GOLDEN=1 pytest tests/cli/test_golden.py` updates
them; read the difference like any other change."""

import difflib
import os
import re
import shlex
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

GOLDEN = Path(__file__).parent / "golden"
UPDATE = "KAGZI_UPDATE_GOLDEN"

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_MASKS = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)"), "<time>"),
    (re.compile(r"(?m)^--- \d{4}-\d\d-\d\d UTC[+-]\d\d:\d\d$"), "--- <day>"),
    (re.compile(r"(?m)^\d\d:\d\d:\d\d\.\d{3}"), "<clock>"),
    (re.compile(r"(?:\d+[smhd] )?\d+[smhd] ago"), "<age> ago"),
    (re.compile(r"\bin (?:\d+[smhd] )?\d+[smhd]\b"), "in <age>"),
    (re.compile(r"(?m)(?<=  )\d+(?:\.\d)?m?s(?=  |$)"), "<span>"),
    (re.compile(r"\d{4}_\w+(?:, \d{4}_\w+)*"), "<migrations>"),
    (re.compile(r"(schema|needs|->) [1-9]\d*"), r"\1 <latest>"),
    (re.compile(r"/\S+/(?=\S+\.db )"), "<directory>/"),
    (re.compile(r"is still \w+"), "is still <status>"),
    (re.compile(r"127\.0\.0\.1:\d+"), "<address>"),
)


class Transcript:
    """Commands with what they printed and how they ended."""

    def __init__(self, run: Callable[..., subprocess.CompletedProcess[str]]) -> None:
        self._run = run
        self._lines: list[str] = []
        self._ids: dict[str, str] = {}

    def call(self, *arguments: str, stdin: str = "") -> str:
        """Returns what was printed on stdout, as it was."""
        done = self._run(*arguments, stdin=stdin)
        self._lines.append(f"$ kagzi {shlex.join(arguments)}")
        self._lines += done.stdout.splitlines()
        self._lines += [f"2> {line}".rstrip() for line in done.stderr.splitlines()]
        if done.returncode:
            self._lines.append(f"[exit code {int(done.returncode)}]")
        self._lines.append("")
        return done.stdout.strip()

    def masked(self) -> str:
        """Without what is different each time. Columns are as wide as their cells, so their width goes, too."""
        text = re.sub(r"(?<=\S) {2,}", "  ", _UUID.sub(self._numbered, "\n".join(self._lines)))
        for pattern, mask in _MASKS:
            text = pattern.sub(mask, text)
        return text

    def plain(self) -> str:
        return "\n".join(self._lines)

    def _numbered(self, match: re.Match[str]) -> str:
        return self._ids.setdefault(match[0], f"<id {len(self._ids) + 1}>")


def check(name: str, text: str) -> None:
    """Raises AssertionError if the file says something else."""
    path = GOLDEN / f"{name}.txt"
    if os.environ.get(UPDATE):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    expected = path.read_text() if path.exists() else ""
    changes = "\n".join(
        difflib.unified_diff(expected.splitlines(), text.splitlines(), "kept", "printed", lineterm="", n=1)
    )
    assert text == expected, f"{path.name} differs; if that is meant, write it anew with {UPDATE}=1\n{changes}"


def names(folder: str) -> Sequence[str]:
    return sorted(path.stem for path in (GOLDEN / folder).glob("*.txt"))

"""The types help those who write workflows: right programs pass both checkers, wrong lines are rejected, a forgotten
await is seen."""

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PROGRAMS = HERE / "programs"
CHECKERS = ("mypy", "basedpyright")
WRONG_LINES = {"wrong.py": 16, "wrong_verbs.py": 12}
FORGOTTEN_LINES = 4
# What says that something was not awaited.
FORGOTTEN = {"unused-coroutine", "unused-awaitable", "reportUnusedCoroutine"}

pytestmark = pytest.mark.xdist_group("typecheck")


class Finding(NamedTuple):
    file: str
    line: int
    rule: str
    message: str


@cache
def findings(checker: str) -> tuple[Finding, ...]:
    """Every error in the programs, in one run of the checker."""
    diagnostics = _mypy() if checker == "mypy" else _basedpyright()
    elsewhere = [finding for finding in diagnostics if not (PROGRAMS / finding.file).exists()]
    assert elsewhere == [], "the examples, or the SDK itself, do not pass"
    return tuple(diagnostics)


def _mypy() -> list[Finding]:
    files = sorted(str(path.relative_to(ROOT)) for path in PROGRAMS.glob("*.py"))
    options = ("--config-file", str(HERE / "mypy.ini"), "--output", "json", "--cache-dir", str(ROOT / ".mypy_cache"))
    text = _checked(sys.executable, "-m", "mypy", *options, *files)
    diagnostics = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return [
        Finding(Path(each["file"]).name, each["line"], each["code"], each["message"])
        for each in diagnostics
        if each["severity"] == "error"
    ]


def _basedpyright() -> list[Finding]:
    command = (sys.executable, "-m", "basedpyright", "--project", str(HERE), "--pythonpath", sys.executable)
    diagnostics = json.loads(_checked(*command, "--outputjson"))
    return [
        Finding(Path(each["file"]).name, each["range"]["start"]["line"] + 1, each.get("rule", ""), each["message"])
        for each in diagnostics["generalDiagnostics"]
        if each["severity"] == "error"
    ]


def _checked(*command: str) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode in (0, 1), done.stderr + done.stdout
    return done.stdout


def marked(program: str, message: str) -> Mapping[int, str]:
    """The lines of a program that end in a mark, such as `# E7`. A decorator is part of the function below it."""
    lines = (PROGRAMS / program).read_text().splitlines()
    markers = {
        number: match[1] for number, line in enumerate(lines, 1) if (match := re.search(rf"# ({message}\d+)", line))
    }
    for number, line in enumerate(lines, 1):
        if line.startswith("@") and number + 1 in markers:
            markers[number] = markers[number + 1]
    return markers


@pytest.mark.timeout(300)
@pytest.mark.parametrize("checker", CHECKERS)
@pytest.mark.parametrize("program", ["infer.py", "verbs.py"])
def test_what_is_right_passes(checker: str, program: str) -> None:
    assert [finding for finding in findings(checker) if finding.file == program] == []


@pytest.mark.timeout(300)
@pytest.mark.parametrize("checker", CHECKERS)
@pytest.mark.parametrize("program", list(WRONG_LINES))
def test_each_wrong_line_is_rejected_and_no_other(checker: str, program: str) -> None:
    markers = marked(program, "E")
    assert len(set(markers.values())) == WRONG_LINES[program]
    rejected = [finding for finding in findings(checker) if finding.file == program]
    assert [finding for finding in rejected if finding.line not in markers] == []
    assert {markers[finding.line] for finding in rejected} == set(markers.values())


@pytest.mark.timeout(300)
@pytest.mark.parametrize("checker", CHECKERS)
def test_a_forgotten_await_is_noticed(checker: str) -> None:
    markers = marked("forgot.py", "F")
    assert len(markers) == FORGOTTEN_LINES
    noticed = [finding for finding in findings(checker) if finding.file == "forgot.py"]
    assert {finding.line for finding in noticed} == set(markers)
    assert {finding.rule for finding in noticed} <= FORGOTTEN

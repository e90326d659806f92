"""Comments that switch a rule off: for their line, with a reason, and only where there is something to switch off."""

from pathlib import Path

import pytest

from kagzi.sdk.lint.linting import lint
from tests.sdk.lint.marked import HEAD, in_workflow, linted

HELPER = "import time\n\ndef stamp() -> float:\n    return time.time()\n"

SUPPRESSED = {
    "at the line": "x = time.time()  # kagzi: ignore[clock] only logged",
    "behind another comment": "x = time.time()  # noqa: X  # kagzi: ignore[clock] only logged",
    "above": "# kagzi: ignore[clock] only logged\nx = time.time()",
    "at the statement": "x = [  # kagzi: ignore[clock] only logged\n    time.time(),\n]",
    "at the last line": "x = time.strftime(\n    '%Y',\n)  # kagzi: ignore[clock] only logged",
    "two rules": "x = time.time(), hash('x')  # kagzi: ignore[clock, random] only logged",
    "at the call of a helper": "x = stamp()  # kagzi: ignore[clock] only logged",
}


@pytest.mark.parametrize("case", SUPPRESSED)
def test_a_suppression_with_a_reason(case: str, tmp_path: Path) -> None:
    assert linted(HEAD + in_workflow(SUPPRESSED[case], HELPER), tmp_path) == []


def test_only_its_own_rule_and_line(tmp_path: Path) -> None:
    body = "x = hash(str(time.time()))  # kagzi: ignore[clock] only logged\ny = time.time()"
    assert [rule for _, rule in linted(HEAD + in_workflow(body, HELPER), tmp_path)] == ["random", "clock"]


def test_a_helper_that_is_excused_at_one_call_is_not_at_another(tmp_path: Path) -> None:
    body = "stamp()  # kagzi: ignore[clock] only logged\nstamp()"
    assert [rule for _, rule in linted(HEAD + in_workflow(body, HELPER), tmp_path)] == ["clock"]


@pytest.mark.parametrize(
    ("comment", "message"),
    [
        ("# kagzi: ignore[clock]", "this suppression has no reason."),
        ("# kagzi: ignore only logged", "this suppression names no rule."),
        ("# kagzi: ignore[clok] only logged", "this suppression names 'clok', which is not a rule."),
        ("# kagzi: ignore[random] only logged", "this suppression of random suppresses nothing."),
    ],
)
def test_a_suppression_is_a_finding_itself(comment: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "flow.py").write_text(HEAD + in_workflow(f"x = time.time()  {comment}", HELPER))
    findings = lint([tmp_path / "flow.py"], None).findings
    (finding,) = [each for each in findings if each.rule == "suppression"]
    assert (finding.line, finding.column, finding.message) == (9, 22, message)
    assert "Write # kagzi: ignore[" in finding.instead or finding.instead == "Remove it."
    assert ("clock" in [each.rule for each in findings]) is ("[clock]" not in comment)


def test_where_unused_ones_are_reported(tmp_path: Path) -> None:
    """In workflow code and in steps. A helper that nobody calls here may be called from elsewhere."""
    program = (
        HEAD
        + """
import time

@step
def body() -> float:
    return time.time()  # kagzi: ignore[clock] not needed in a step

def elsewhere() -> float:
    return time.time()  # kagzi: ignore[clock] only logged

@workflow
async def flow(ctx: Context) -> None:
    await body()  # kagzi: ignore[unserialisable] can only be said after an import
    text = "# kagzi: ignore[clock] a text and not a comment"
"""
    )
    assert linted(program, tmp_path) == [(7, "suppression")]

"""The page about lint has every rule, with code that is right and wrong as it says; the project's own code, examples
and documentation are without findings."""

import re
from pathlib import Path

import pytest

from kagzi.cli.bench import flows
from kagzi.cli.demo import shop
from kagzi.sdk.lint.linting import lint
from kagzi.sdk.lint.registration import findings
from kagzi.sdk.lint.rules import RULES
from tests.docs.snippets import ROOT, blocks
from tests.docs.test_snippets import PAGES
from tests.sdk.lint.marked import HEAD, in_workflow
from tests.sdk.lint.test_annotations import linted

CRASH_PAGE = "docs/how-to/crash-everywhere.md"  # shows what is not replay-safe, and that it is found
PAGE = "docs/how-to/lint.md"
IMPORTS = f"""{HEAD}import asyncio
import time
import httpx
from dataclasses import dataclass
from datetime import datetime
from uuid import uuid4
"""


def sections() -> dict[str, list[str]]:
    parts = (ROOT / PAGE).read_text().split("\n### ")[1:]
    return {
        part.partition("\n")[0]: re.findall(r"^```python\n(.*?)^```$", part, re.MULTILINE | re.DOTALL) for part in parts
    }


def test_the_page_has_every_rule() -> None:
    assert list(sections()) == list(RULES)


@pytest.mark.parametrize("rule", RULES)
def test_the_code_of_a_rule_is_wrong_and_right_as_it_says(
    rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong, right = sections()[rule]
    assert [each.rule for each in linted(IMPORTS + wrong, tmp_path, monkeypatch).findings] == [rule]
    assert linted(IMPORTS + right, tmp_path, monkeypatch).findings == ()


def test_the_examples_the_demo_and_the_benchmark_have_no_findings() -> None:
    files = [*sorted((ROOT / "examples").glob("e*.py")), Path(shop.__file__), Path(flows.__file__)]
    result = lint(files, None)
    assert result.findings == ()
    assert result.workflows >= 20
    assert findings([*shop.WORKFLOWS, *flows.FLOWS.values()]) == []


def programs(page: str) -> list[str]:
    """The code of a page as modules: what uses a `ctx` that nobody defines is the body of a workflow."""
    modules: list[str] = []
    for block in blocks(page):
        if block.language != "python":
            continue
        has_workflow = "@workflow" in block.text or "def " in block.text or "import " in block.text
        modules.append(HEAD + (block.text if has_workflow else in_workflow(block.text)))
    return modules


def test_the_documentation_has_no_findings(tmp_path: Path) -> None:
    files: list[Path] = []
    for page in PAGES:
        if page not in (PAGE, CRASH_PAGE):
            for number, program in enumerate(programs(page)):
                files.append(tmp_path / f"{page.replace('/', '_').replace('-', '_')[:-3]}_{number}.py")
                files[-1].write_text(program)
    result = lint(files, None)
    assert [f"{Path(each.file).name}:{each.line}: {each.message}" for each in result.findings] == []
    assert result.workflows > 30

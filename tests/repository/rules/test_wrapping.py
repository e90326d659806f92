"""Documentation is wrapped as code is: at 120 columns. (For code ruff says so.)"""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
WIDTH = 120


def test_the_documentation_is_wrapped() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    long = [line for page in sorted(pages) if page.name != "CHANGELOG.md" for line in long_lines(page)]
    assert not long, "\n".join(long)


def long_lines(page: Path) -> list[str]:
    """Not of tables and blocks of code."""
    too_long: list[str] = []
    is_code = False
    for number, line in enumerate(page.read_text().splitlines(), 1):
        is_code ^= line.lstrip().startswith("```")
        if len(line) > WIDTH and not is_code and not line.lstrip().startswith("|"):
            too_long.append(f"{page.relative_to(ROOT)}:{number}: {len(line)} columns")
    return too_long

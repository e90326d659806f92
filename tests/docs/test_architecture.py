"""ARCHITECTURE.md stays short and true: its statuses and limits are those of the code. Pages name files that exist."""

import re

from kagzi.core import limits
from kagzi.core.states import TRANSITIONS
from tests.docs.snippets import ROOT

TEXT = (ROOT / "ARCHITECTURE.md").read_text()


def test_it_is_short() -> None:
    assert TEXT.count("\n") < 300


def test_every_path_that_a_page_names_exists() -> None:
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("bench/*.md")]
    paths = [(page.name, path) for page in pages if page.name != "CHANGELOG.md" for path in paths_in(page.read_text())]
    for page in ("ARCHITECTURE.md", "CONTRIBUTING.md"):
        assert len([path for name, path in paths if name == page]) > 20
    assert sorted({each for each in paths if not (ROOT / each[1]).exists()}) == []


def paths_in(text: str) -> list[str]:
    top = r"`((?:src/kagzi|proto|tests|bench|docs|examples|scripts)/[\w./-]+)`"
    within = r"`((?:core|store|engine|wire|server|sdk|cli)/[\w./-]+)`"
    return re.findall(top, text) + [f"src/kagzi/{path}" for path in re.findall(within, text)]


def test_its_figures_are_those_of_the_code() -> None:
    batches = re.findall(r"at most (\d+)\s+operations or (\d+) MiB", TEXT)
    assert batches == [(str(limits.BATCH_OPERATIONS), str(limits.BATCH_BYTES // limits.MIB))]


def test_its_limits_are_those_of_the_code() -> None:
    units = {"MiB": limits.MIB, "KiB": limits.KIB, "": 1}
    settings = limits.Settings()
    rows = re.findall(r"^\| `(\w+)` \| ([\d,]+) ?(MiB|KiB|) \|$", TEXT, re.MULTILINE)
    assert len(rows) > 10
    for name, number, unit in rows:
        expected = getattr(settings, name) if name.islower() else getattr(limits, name)
        assert int(number.replace(",", "")) * units[unit] == expected, name


def test_its_picture_of_a_run_has_every_transition() -> None:
    drawn = set(re.findall(r"^    ([A-Z]+) --> ([A-Z]+):", TEXT, re.MULTILINE))
    assert drawn == {(now.name, then.name) for now, following in TRANSITIONS.items() for then in following}

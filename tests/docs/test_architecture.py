"""ARCHITECTURE.md stays short, and what it says of files, statuses and limits is so. CONTRIBUTING.md names files that exist."""

import re

import pytest

from kagzi.core import limits
from kagzi.core.run.status import TRANSITIONS
from tests.docs.snippets import ROOT

TEXT = (ROOT / "ARCHITECTURE.md").read_text()


def test_it_is_short() -> None:
    assert TEXT.count("\n") < 300


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_every_path_it_names_exists(page: str) -> None:
    text = (ROOT / page).read_text()
    paths = re.findall(r"`((?:src/kagzi|proto|tests|bench|docs|examples|scripts)/[\w./-]+)`", text)
    paths += [
        f"src/kagzi/{path}" for path in re.findall(r"`((?:core|store|engine|wire|server|sdk|cli)/[\w./-]+)`", text)
    ]
    assert len(paths) > 20
    assert sorted({path for path in paths if not (ROOT / path).exists()}) == []


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

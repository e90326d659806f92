"""ARCHITECTURE.md stays short, and what it names exists."""

import re

from kagzi.core import limits
from tests.docs.snippets import ROOT

TEXT = (ROOT / "ARCHITECTURE.md").read_text()


def test_it_is_short() -> None:
    assert TEXT.count("\n") < 300


def test_every_path_it_names_exists() -> None:
    paths = re.findall(r"`((?:src/kagzi|proto|tests|bench|docs|examples|scripts)/[\w./-]+)`", TEXT)
    paths += [
        f"src/kagzi/{path}" for path in re.findall(r"`((?:core|store|engine|wire|server|sdk|cli)/[\w./-]+)`", TEXT)
    ]
    assert len(paths) > 20
    assert sorted({path for path in paths if not (ROOT / path).exists()}) == []


def test_its_figures_are_those_of_the_code() -> None:
    batches = re.findall(r"at most (\d+)\s+operations or (\d+) MiB", TEXT)
    assert batches == [(str(limits.BATCH_OPERATIONS), str(limits.BATCH_BYTES // limits.MIB))]

"""ARCHITECTURE.md stays short, and what it names exists."""

import re

import msgspec

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


UNITS = {
    "KiB": limits.KIB, "MiB": limits.MIB, "bytes": 1,
    "operations": 1, "runs": 1, "steps": 1, "attempts": 1, "rows": 1, "signals": 1, "leases": 1, "events": 1,
    "ms": 1, "s": 1_000, "seconds": 1_000, "minutes": 60_000, "hours": 3_600_000, "days": 86_400_000,
}  # fmt: skip


def test_its_figures_are_those_of_the_code() -> None:
    """Whatever has a unit is a limit, or the default of a setting. Times are in milliseconds, or microseconds, there."""
    known = {value for value in vars(limits).values() if isinstance(value, int | float)}
    known |= set(msgspec.structs.asdict(limits.Settings()).values())
    known |= {value // 1_000 for name, value in vars(limits).items() if name.endswith("_US")}
    figures = re.findall(rf"\b(\d[\d,]*)\s+({'|'.join(UNITS)})\b", TEXT)
    assert ("200", "operations") in figures, "or nothing is compared here"
    wrong = [f"{number} {unit}" for number, unit in figures if int(number.replace(",", "")) * UNITS[unit] not in known]
    assert not wrong, f"not in core/limits.py: {wrong}"


def test_the_size_of_a_batch_is_told() -> None:
    batches = re.findall(r"at most (\d+)\s+operations or (\d+) MiB", TEXT)
    assert batches == [(str(limits.BATCH_OPERATIONS), str(limits.BATCH_BYTES // limits.MIB))]

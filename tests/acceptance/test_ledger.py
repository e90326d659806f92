"""The ledger is the witness of other tests: it must not lose, mix or overlook anything."""

import sys
from pathlib import Path

import pytest

from tests.support.ledger import Entry, Ledger, check_acknowledged_run_once, check_one_holder, describe, overlapping
from tests.support.processes import Processes

WRITER = """
import sys
from tests.support.ledger import Ledger
ledger = Ledger(sys.argv[1])
for n in range(300):
    ledger.write("begin", sys.argv[2], str(n), note="x" * 500)
"""


def entry(event: str, *, run_id: str = "r", step_id: str = "a", **rest: int | float) -> Entry:
    return Entry(event=event, run_id=run_id, step_id=step_id, **rest)


async def test_entries_of_many_processes_never_mix(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    async with Processes(tmp_path) as processes:
        writers = [await processes.run(sys.executable, "-c", WRITER, str(ledger.path), f"run-{n}") for n in range(3)]
        assert [await writer.wait() for writer in writers] == [0, 0, 0]
    assert len(ledger.entries(event="begin")) == 900
    assert len({entry.pid for entry in ledger.entries()}) == 3
    assert set(ledger.executions().values()) == {1}
    assert describe(ledger.entries(), "run-1").count("\n") == 299


def test_an_entry_too_long_to_be_one_piece_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="4096"):
        Ledger(tmp_path / "ledger").write("begin", "r", "a", note="x" * 5_000)


def test_a_body_that_ran_after_its_acknowledgement_is_detected() -> None:
    entries = [entry("begin", at=1.0), entry("begin", at=3.0), entry("begin", step_id="b", at=9.0)]
    acknowledged = {("r", "a"): 4.0}
    assert check_acknowledged_run_once(entries, lambda run, step: acknowledged.get((run, step))) == 2
    acknowledged["r", "a"] = 2.0
    with pytest.raises(AssertionError, match="ran again"):
        check_acknowledged_run_once(entries, lambda run, step: acknowledged.get((run, step)))


def test_a_holder_that_works_past_its_lease_is_detected() -> None:
    check_one_holder([entry("begin", lease=1), entry("begin", lease=1), entry("begin", lease=2)])
    with pytest.raises(AssertionError, match="older lease"):
        check_one_holder([entry("begin", lease=2), entry("begin", lease=1)])


def test_bodies_that_overlap_are_detected() -> None:
    first, second = entry("begin", pid=1), entry("begin", pid=2)
    assert overlapping([first, entry("end", pid=1), second]) == []
    assert overlapping([first, second, entry("end", pid=1)]) == [(first, second)]

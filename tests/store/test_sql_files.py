"""Statements call statuses, kinds and reasons by name; the loader knows the names and refuses others."""

import re
import sqlite3
from importlib import resources

import pytest

from kagzi.core.states import CODE_OF_RUN_STATUS, KindCode, RunCode, RunStatus, StepCode
from kagzi.core.stats import TOOK_BOUNDS_US
from kagzi.store.sql_files import CODES, load_statements
from kagzi.store.sqlite.statements import SQL
from tests.support.duration_classes import class_of

STORES = ("kagzi.store.postgres", "kagzi.store.sqlite")
_COLUMN = r"\b(?:status|kind|wait_reason|on_close|source)\b"
_BARE = re.compile(
    rf"{_COLUMN}(?: \+ 0)? (?:=|<>|<|>|<=|>=|IS) \d"  # compared or assigned
    rf"|{_COLUMN}(?: \+ 0)? (?:NOT )?IN \(\d"
    rf"|{_COLUMN} = CASE\b[^,]*\b(?:THEN|ELSE) \d"
    rf"|{_COLUMN} = iif\([^)]*, \d"
    rf"|\bCASE \w*\.?{_COLUMN} WHEN \d"
    r"|\d(?:::\w+)? AS (?:status|kind|wait_reason|on_close|source)\b"
)


@pytest.mark.parametrize("package", STORES)
def test_no_statement_compares_a_status_or_a_kind_with_a_bare_number(package: str) -> None:
    bare = [
        f"{file.name}:{number}: {line.strip()}"
        for file in resources.files(package).joinpath("sql").iterdir()
        for number, line in enumerate(file.read_text("utf-8").splitlines(), start=1)
        if _BARE.search(line)
    ]
    assert bare == []


@pytest.mark.parametrize("package", STORES)
def test_statements_hold_the_numbers_of_core(package: str) -> None:
    assert not [name for name, text in load_statements(package).items() if re.search(r"\{[A-Z]", text)]
    assert CODES["RUN.SLEEPING"] == str(int(RunCode.SLEEPING))
    assert CODES["STEP.ABANDONED"] == str(int(StepCode.ABANDONED))
    assert CODES["KIND.FIRST_PAYLOAD"] == str(int(KindCode.INPUT))


def test_open_and_ended_are_all_statuses_of_runs() -> None:
    both = [int(code) for name in ("RUN.OPEN", "RUN.ENDED") for code in CODES[name].split(", ")]
    assert sorted(both) == sorted(CODE_OF_RUN_STATUS[status] for status in RunStatus)


def test_an_unknown_name_is_an_error_at_load(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(CODES, "RUN.PAUSED")
    with pytest.raises(ValueError, match=r"no code is called RUN\.PAUSED"):
        load_statements("kagzi.store.postgres")


def test_a_list_has_a_statement_for_each_direction() -> None:
    for package in STORES:
        statements = load_statements(package)
        assert "(created_at, schedule_id) < (" in statements["list_schedules_next"]
        assert "(created_at, schedule_id) > (" in statements["list_schedules_prev"]
        assert "list_schedules" not in statements


def test_the_stores_call_what_they_share_by_one_name() -> None:
    """A statement of a store's own folder that has the name of a shared one is an error."""
    shared = load_statements(STORES[0]).keys() & load_statements(STORES[1]).keys()
    assert {"insert_bulk", "list_workers_next", "put_namespace", "remove_workers"} <= shared


def test_sqlite_reads_shared_statements_in_its_own_words() -> None:
    assert "::" not in "".join(SQL.values())
    assert not [name for name, text in SQL.items() if "FOR UPDATE" in text or "rows(:" in text or "/*" in text]
    assert "INDEXED BY bulk_operations_open" in SQL["claim_bulk"]
    assert "next_at IS :read_next_at" in SQL["replace_schedule"]
    assert "json_extract(value, '$.worker_id') AS worker_id" in SQL["note_worker_events"]
    assert "key AS place FROM json_each(:events)" in SQL["note_worker_events"]
    assert "status <> 'offline'" in SQL["expire_workers"], "the name of a worker's status, not a code"


def test_statements_hold_the_classes_of_core() -> None:
    """In PostgreSQL as an array, in SQLite as cases."""
    bounds = ",".join(map(str, TOOK_BOUNDS_US))
    assert f"'{{{bounds}}}'::bigint[]" in load_statements("kagzi.store.postgres")["part_bounds"]
    case = load_statements("kagzi.store.sqlite")["part_class"]
    database = sqlite3.connect(":memory:")
    for took_us in (0, *(bound + step for bound in TOOK_BOUNDS_US for step in (-1, 0, 1))):
        query = f"SELECT {case} FROM (SELECT 7 AS started_at, ? + 7 AS finished_at) AS r"
        assert database.execute(query, (took_us,)).fetchone() == (class_of(took_us),)
    database.close()

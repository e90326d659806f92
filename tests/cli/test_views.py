"""Records as they are printed: JSON and cells made of the names of fields, and why a step was not retried."""

from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from kagzi.cli.runs.views import SHOWN_CHARS, run_view, shown_text, shown_value, step_view, whole_run_view
from kagzi.cli.views import cell, cells, limit_cells, view
from kagzi.core.error_details import ErrorDetail, ErrorKind
from kagzi.core.records import RunKey, StepRecord
from kagzi.core.retry.policy import RetryPolicy
from kagzi.core.states import StepKind, StepStatus
from kagzi.sdk.client.run_records import RunInfo
from kagzi.sdk.client.step_records import read_step_record
from kagzi.wire.steps import write_step

WRONG = ErrorDetail(type="ValueError", message="no amount", kind=ErrorKind.PERMANENT)


def failed(error: ErrorDetail, policy: RetryPolicy | None = None) -> StepRecord:
    return StepRecord(
        run=RunKey("default", "run-1"),
        step_id="charge",
        name="charge",
        kind=StepKind.FUNCTION,
        status=StepStatus.FAILED,
        attempt=1,
        begun_seq=0,
        seq=1,
        created_at=0,
        started_at=None,
        finished_at=None,
        error=error,
        retry=policy,
    )


def test_a_failed_step_says_why_it_was_not_retried() -> None:
    view = step_view(read_step_record(write_step(failed(WRONG))))
    assert view["not_retried"] == "not retried: ValueError is a programming error; retry_on=[ValueError] retries it"
    assert (view["error"]["kind"], view["error"]["exhausted"]) == ("permanent", False)
    listed = step_view(read_step_record(write_step(failed(WRONG, RetryPolicy(non_retryable_errors=("ValueError",))))))
    assert listed["not_retried"] == "not retried: non_retryable of its retry policy lists ValueError"


def test_a_step_whose_attempts_are_used_up_says_that_instead() -> None:
    view = step_view(read_step_record(write_step(failed(ErrorDetail(type="ConnectionError", exhausted=True)))))
    assert view["not_retried"] is None
    assert (view["error"]["kind"], view["error"]["exhausted"]) == ("transient", True)


def test_only_long_texts_are_cut() -> None:
    assert shown_text("x" * SHOWN_CHARS) == "x" * SHOWN_CHARS
    assert shown_text("x" * (SHOWN_CHARS + 1)) == f"{'x' * SHOWN_CHARS} ... (2.0 kB in all; --json prints it)"
    assert shown_value(["\ud800" * SHOWN_CHARS]).endswith(" kB in all; --json prints it)")


class Part(NamedTuple):
    id: str
    note: str
    at: datetime
    span: timedelta
    kind: ErrorKind
    tags: tuple[str, ...]
    limit: float | None


PART = Part("a", "", datetime(2026, 11, 16, 12, tzinfo=UTC), timedelta(minutes=5), ErrorKind.LOST, ("x", "y"), None)


def test_a_view_is_made_of_names() -> None:
    assert view(PART, "part_id=id", "note?", "at", "every=span", "kind", "tags", "limit") == {
        "part_id": "a",
        "note": None,
        "at": "2026-11-16T12:00:00.000000Z",
        "every": "5m",
        "kind": "lost",
        "tags": ["x", "y"],
        "limit": None,
    }
    assert view(PART, "note") == {"note": ""}


def test_cells_are_made_of_names() -> None:
    assert cells(PART, "part_id=id", "note", "tags", "limit") == {
        "part id": "a",
        "note": "",
        "tags": "x, y",
        "limit": "",
    }
    assert limit_cells(PART, "limit", "id") == {"limit": "-", "id": "a"}
    assert [cell(value) for value in (2.0, 0.25, 7, {"b": "2", "a": "1"})] == ["2", "0.25", "7", "a=1 b=2"]


def test_every_field_of_a_run_is_shown() -> None:
    """A new one needs no line here: it is in JSON under its own name."""
    values: dict[str, Any] = dict.fromkeys(field.name for field in fields(RunInfo))
    run = RunInfo(**values | {"input": b"1", "output": b""})
    renamed = {"id": "run_id", "parent": "parent_run_id", "parent_step": "parent_step_id"}
    names = {renamed.get(field.name, field.name) for field in fields(RunInfo)} - {"encoding"}
    assert set(whole_run_view(run)) == names
    assert set(run_view(run)) == names - {*("input", "output", "context", "state", "waits", "scheduled_at", "state_at")}

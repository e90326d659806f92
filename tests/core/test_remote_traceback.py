"""The recorded traceback, where a person looks: on the error itself, once, whatever way the error takes."""

import copy
import pickle
import traceback

import pytest

from kagzi.core.error_details import ErrorDetail, ErrorKind
from kagzi.core.errors import (
    ChildError,
    InvalidArgument,
    KagziError,
    NonRetryable,
    RequestError,
    RunError,
    StepError,
)
from kagzi.core.retry.retry_after import RetryAfter
from kagzi.core.text.remote_traceback import NOTE_CHARS, remote_traceback

FRAME = '  File "shop.py", line 7, in price\n    return prices[item]\n'
RECORDED = ErrorDetail(
    type="KeyError",
    message="'tea'",
    traceback=f"Traceback (most recent call last):\n{FRAME}",
    subject="step",
    subject_id="price",
)


def printed(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


@pytest.mark.parametrize(
    "error",
    [
        StepError.of("price", RECORDED, attempts=3),
        RunError.of("r-1", "failed", RECORDED),
        ChildError.of("r-1", "failed", RECORDED),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_is_printed_of_a_failure_shows_the_frames_of_the_step_once(error: KagziError) -> None:
    ways = [error, pickle.loads(pickle.dumps(error)), copy.copy(error), ExceptionGroup("several", [error])]  # noqa: S301  our own
    for each in ways:
        text = printed(each)
        assert text.count('File "shop.py", line 7, in price') == 1
        assert "in step 'price'" in text
        assert "KeyError: 'tea'" in text


def test_what_led_to_an_error_comes_first_as_in_python() -> None:
    outer = ErrorDetail(type="shop.NoPrice", message="tea", traceback="Traceback:\n  File 2\n", cause=RECORDED)
    note = remote_traceback(outer)
    assert note.index("line 7") < note.index("which led to:") < note.index("File 2") < note.index("NoPrice: tea")


def test_an_error_without_any_traceback_has_no_note() -> None:
    bare = ErrorDetail(kind=ErrorKind.CANCELLED, message="no longer wanted", cause=ErrorDetail(message="because"))
    assert not hasattr(RunError.of("r-1", "cancelled", bare), "__notes__")


def test_a_note_is_bounded_and_keeps_its_head_and_tail() -> None:
    long = ErrorDetail(type="ValueError", message="the end", traceback="Traceback:\n" + "  File x\n" * 100_000)
    note = remote_traceback(long)
    assert len(note) <= NOTE_CHARS + 100
    assert note.startswith("Recorded by the worker")
    assert "... cut" in note
    assert note.endswith("ValueError: the end")


def test_nothing_in_a_note_can_pass_for_something_else_or_move_the_cursor() -> None:
    evil = ErrorDetail(type="ValueError", message="x\x1b[2J\r\nTraceback: forged\u202e", traceback="Traceback:\n")
    note = remote_traceback(evil)
    assert all(char.isprintable() or char == "\n" for char in note)
    assert all(line.startswith("  | ") for line in note.splitlines()[1:])


@pytest.mark.parametrize(
    "error",
    [
        NonRetryable("stolen", code="card", details={"last4": 1}),
        RetryAfter("busy", "5s"),
        RequestError("no", field="name", metadata={"limit": "x"}),
        InvalidArgument("no", field="name"),
        StepError.of("price", RECORDED, attempts=3),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_survive_pickling_with_all_they_hold(error: KagziError) -> None:
    again = pickle.loads(pickle.dumps(error))  # noqa: S301  our own
    assert type(again) is type(error)
    assert (str(again), vars(again)) == (str(error), vars(error))

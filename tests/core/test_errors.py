"""Errors carry what their reader needs: what happened as Python would print it, its classes by name, and what to do."""

import copy
import inspect
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kagzi.core import errors
from kagzi.core.error_details import Child, ErrorCode, ErrorDetail, ErrorKind, decode_detail, encode_detail
from kagzi.core.errors import (
    AlreadyExists,
    ChildError,
    Diverged,
    InternalError,
    InvalidArgument,
    KagziError,
    NonRetryable,
    NotFound,
    RequestError,
    RunError,
    StepError,
    Unavailable,
    not_found,
)
from kagzi.core.raised.exceptions import qualified_name
from kagzi.core.retry.retry_after import RetryAfter
from kagzi.core.run.children import child_error
from kagzi.core.states import RunCode


class ShopError(Exception):
    pass


class PaymentError(ShopError):
    pass


def detail_of(error: type[BaseException], message: str = "declined") -> ErrorDetail:
    """As a worker would report it: the class and its bases by qualified name."""
    name, *bases = (qualified_name(cls) for cls in error.__mro__ if cls is not object)
    return ErrorDetail(type=name, message=message, bases=tuple(bases))


details = st.recursive(
    st.builds(
        ErrorDetail,
        code=st.sampled_from(ErrorCode),
        kind=st.sampled_from(ErrorKind),
        message=st.text(max_size=30),
        type=st.text(max_size=20),
        bases=st.lists(st.text(max_size=10), max_size=3).map(tuple),
        traceback=st.text(max_size=30),
        non_retryable=st.booleans(),
        retry_after_ms=st.integers(0, 2**53),
        subject=st.text(max_size=10),
        subject_id=st.text(max_size=10),
        metadata=st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3),
    ),
    lambda inner: st.builds(ErrorDetail, message=st.text(max_size=10), cause=inner),
    max_leaves=3,
)


@given(details)
def test_a_stored_error_is_read_back_as_it_was(detail: ErrorDetail) -> None:
    assert decode_detail(encode_detail(detail)) == detail


@pytest.mark.parametrize(
    ("detail", "text"),
    [
        (ErrorDetail(type="shop.PaymentError", message="declined"), "PaymentError: declined"),
        (ErrorDetail(type="ValueError", message="declined"), "ValueError: declined"),
        (ErrorDetail(type="shop.PaymentError"), "PaymentError"),
        (ErrorDetail(message="declined"), "declined"),
        (ErrorDetail(), ""),
    ],
)
def test_the_text_is_what_python_would_print(detail: ErrorDetail, text: str) -> None:
    assert detail.text == text


@pytest.mark.parametrize("of", [StepError.of, ChildError.of, RunError.of])
def test_matches_is_isinstance_for_an_error_of_another_process(of: object) -> None:
    if of == StepError.of:
        failure: StepError | RunError = StepError.of("charge", detail_of(PaymentError), attempts=3)
    else:
        failure = of("run-1", "failed", detail_of(PaymentError))  # type: ignore[operator]
    assert failure.matches(PaymentError)
    assert failure.matches(ShopError)
    assert failure.matches(Exception)
    assert failure.matches(ValueError, ShopError)
    assert not failure.matches(ValueError)
    assert not failure.matches()


def test_a_class_of_the_same_plain_name_in_another_module_does_not_match() -> None:
    failure = StepError.of("charge", ErrorDetail(type="other.PaymentError", bases=("Exception",)), attempts=1)
    assert not failure.matches(PaymentError)


def test_a_step_error_says_which_step_how_often_and_why() -> None:
    failure = StepError.of("charge", detail_of(PaymentError), attempts=3)
    assert str(failure) == "step 'charge' failed after 3 attempts: PaymentError: declined"
    assert "after 1 attempt:" in str(StepError.of("charge", detail_of(PaymentError), attempts=1))
    assert (failure.step, failure.attempts) == ("charge", 3)


def test_a_run_error_contains_type_and_message_of_its_cause() -> None:
    failure = RunError.of("run-1", "failed", detail_of(PaymentError))
    assert str(failure) == "run run-1 failed: PaymentError: declined"
    assert str(RunError.of("run-1", "cancelled", ErrorDetail(kind=ErrorKind.CANCELLED))) == "run run-1 cancelled"


def test_a_failure_has_kind_code_and_metadata_of_what_was_recorded() -> None:
    detail = ErrorDetail(kind=ErrorKind.EXHAUSTED, code=ErrorCode.TIMEOUT, metadata={"limit": "3"})
    failure = RunError.of("run-1", "failed", detail)
    assert (failure.kind, failure.code, failure.metadata) == (ErrorKind.EXHAUSTED, ErrorCode.TIMEOUT, {"limit": "3"})


def test_a_record_that_says_exhausted_in_its_kind_is_read_as_one() -> None:
    old = decode_detail(b'{"kind": "exhausted", "type": "shop.PaymentError"}')
    assert (old.kind, old.exhausted) == (ErrorKind.EXHAUSTED, True)
    new = ErrorDetail(kind=ErrorKind.TIMEOUT, exhausted=True)
    assert decode_detail(encode_detail(new)) == new
    assert StepError.of("charge", new, attempts=3).exhausted


def test_every_error_says_whether_to_try_again_and_what_it_is_about() -> None:
    raised = [
        KagziError("x"),
        NonRetryable("x"),
        RetryAfter("x", "1s"),
        StepError.of("charge", ErrorDetail(), attempts=1),
        RunError.of("run-1", "failed", ErrorDetail(non_retryable=True)),
        RunError.of("run-1", "failed", ErrorDetail(subject="step", subject_id="charge")),
        Diverged("x", subject="step", subject_id="charge"),
        InvalidArgument("x", field="id"),
        Unavailable("x"),
        InternalError("x"),
    ]
    assert [(each.non_retryable, each.subject, each.subject_id) for each in raised] == [
        (True, "", ""),
        (True, "", ""),
        (False, "", ""),
        (False, "step", "charge"),
        (True, "run", "run-1"),
        (False, "step", "charge"),
        (True, "step", "charge"),
        (True, "field", "id"),
        (False, "", ""),
        (False, "", ""),
    ]


def test_builtins_are_named_as_people_write_them() -> None:
    assert qualified_name(ValueError) == "ValueError"
    assert qualified_name(PaymentError) == f"{__name__}.PaymentError"


def test_kagzis_own_errors_are_named_as_they_are_exported() -> None:
    assert qualified_name(NotFound) == "kagzi.NotFound"
    assert qualified_name(errors.ServerUnavailable) == "kagzi.Unavailable", "it is not exported: its nearest base is"
    assert qualified_name(errors.FailureError) == "kagzi.KagziError"


def test_a_record_that_names_an_error_by_the_file_it_was_in_is_read_as_today() -> None:
    old = decode_detail(
        b'{"type": "kagzi.core.errors.InvalidArgument", "bases": ["kagzi.core.errors.RequestError", '
        b'"shop.Mine", "ValueError"],'
        b' "cause": {"type": "kagzi.core.errors.ChildError"}}'
    )
    assert (old.type, old.bases) == ("kagzi.InvalidArgument", ("kagzi.RequestError", "shop.Mine", "ValueError"))
    assert old.cause == ErrorDetail(type="kagzi.ChildError")
    failure = StepError.of("charge", old, attempts=1)
    assert failure.matches(InvalidArgument)
    assert failure.matches(RequestError)
    assert not failure.matches(NotFound)


def test_a_record_with_a_bare_name_is_read_as_it_is() -> None:
    bare = decode_detail(b'{"type": "InvalidArgument", "bases": ["ValueError"]}')
    assert (bare.type, bare.text) == ("InvalidArgument", "InvalidArgument")
    assert StepError.of("charge", bare, attempts=1).matches(ValueError)


def test_everything_raised_has_one_root() -> None:
    classes = [cls for _, cls in inspect.getmembers(errors, inspect.isclass) if issubclass(cls, BaseException)]
    assert all(issubclass(cls, KagziError) for cls in classes)
    for cls in classes:
        assert isinstance(cls.kind, ErrorKind)
        assert isinstance(cls.code, ErrorCode)


def test_refusals_name_the_field() -> None:
    refused = InvalidArgument("timeout=3 has no unit", field="timeout")
    assert (refused.field, refused.subject, refused.subject_id) == ("timeout", "field", "timeout")
    assert isinstance(refused, ValueError)
    missing = not_found("run", "r1")
    assert str(missing) == "run r1 not found"
    assert (missing.subject, missing.subject_id) == ("run", "r1")
    assert isinstance(missing, LookupError)
    assert isinstance(missing, NotFound)
    assert issubclass(AlreadyExists, RequestError)


def test_retry_after_takes_a_duration_and_refuses_a_bare_number() -> None:
    assert RetryAfter("busy", "30s").retry_after == timedelta(seconds=30)
    with pytest.raises(InvalidArgument, match='Write "30s"'):
        RetryAfter("busy", 30)  # type: ignore[arg-type]


def test_non_retryable_keeps_code_and_details() -> None:
    assert NonRetryable("no", code="E42", details={"n": 1}).metadata == {"code": "E42", "details": '{"n":1}'}


def test_the_error_of_a_child_begins_with_its_workflow_its_id_and_the_cause() -> None:
    child = Child("0190-run", "shipment", "order-4/lead")
    heavy = ErrorDetail(type="kagzi.NonRetryable", message="too heavy for any carrier")
    recorded = child_error(child, RunCode.FAILED, heavy)
    error = ChildError.of_step(recorded)
    assert str(error) == error.message == recorded.message
    assert str(error) == "shipment 'order-4/lead' failed: too heavy for any carrier"
    assert (error.run_id, error.workflow, error.workflow_id) == ("0190-run", "shipment", "order-4/lead")
    assert str(copy.copy(error)) == str(error)
    declined = child_error(child, RunCode.FAILED, ErrorDetail(type="shop.CardDeclined", message="no funds"))
    assert declined.message == "shipment 'order-4/lead' failed: CardDeclined: no funds"
    generated = Child("0190-run", "shipment", "0190-run")
    assert child_error(generated, RunCode.CANCELLED, None).message == "shipment cancelled"


def test_the_error_of_a_child_that_an_older_version_recorded_names_the_run() -> None:
    old = ErrorDetail(type="kagzi.ChildError", message="run 0190 failed", subject="run", subject_id="0190")
    assert str(ChildError.of_step(old)).startswith("run 0190 failed")

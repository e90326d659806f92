"""Whether and when to try again: decided from the recorded policy, never past its cap, never by an error's message."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kagzi.core import limits
from kagzi.core.error_details import ErrorCode, ErrorDetail, ErrorKind
from kagzi.core.retry.policy import (
    NO_RETRY,
    SERVER_DEFAULT,
    UNLIMITED,
    Exhausted,
    RetryAt,
    RetryPolicy,
    after_failure,
    delay_after,
)
from kagzi.core.times import US_PER_MS
from tests.support.clock import BEGINNING
from tests.support.providers import LoadedRng

NOW = BEGINNING
BOOM = ErrorDetail(type="shop.PaymentError", message="card declined", bases=("shop.ShopError", "Exception"))

policies = st.builds(
    RetryPolicy,
    maximum_attempts=st.integers(1, 20) | st.just(UNLIMITED),
    initial_interval_ms=st.integers(0, 100_000),
    backoff_coefficient=st.floats(1, 100),
    maximum_interval_ms=st.integers(0, 10_000_000),
    jitter=st.floats(0, 1),
)
fractions = st.floats(0, 1, exclude_max=True)
attempts = st.integers(1, 50) | st.integers(1, 10**9)


def decide(
    policy: RetryPolicy,
    attempt: int = 1,
    error: ErrorDetail = BOOM,
    *,
    fraction: float = 0.0,
    deadline_at: int | None = None,
) -> RetryAt | Exhausted:
    return after_failure(policy, attempt, error, NOW, rng=LoadedRng([fraction]), deadline_at=deadline_at)


@given(policies, fractions)
def test_no_more_executions_than_the_cap(policy: RetryPolicy, fraction: float) -> None:
    executed = 1
    while isinstance(decision := decide(policy, executed, fraction=fraction), RetryAt):
        assert decision.attempt == executed + 1
        executed += 1
        if policy.maximum_attempts == UNLIMITED and executed > 30:
            return
    assert executed == policy.maximum_attempts


@given(policies, attempts, fractions)
def test_a_delay_lies_between_nothing_and_the_capped_interval(
    policy: RetryPolicy, attempt: int, fraction: float
) -> None:
    delay_ms = delay_after(policy, attempt, BOOM, rng=LoadedRng([fraction]))
    try:
        interval = policy.initial_interval_ms * policy.backoff_coefficient ** (attempt - 1)
    except OverflowError:
        interval = float("inf") if policy.initial_interval_ms else 0.0
    longest = min(interval, policy.maximum_interval_ms)
    assert longest * (1 - policy.jitter) - 1 <= delay_ms <= longest + 1


@pytest.mark.parametrize(
    ("attempt", "delay_ms"), [(1, 1_000), (2, 2_000), (3, 4_000), (6, 32_000), (7, 60_000), (50, 60_000)]
)
def test_the_backoff_factor_counts(attempt: int, delay_ms: int) -> None:
    policy = RetryPolicy(maximum_attempts=UNLIMITED, jitter=0.0)
    assert decide(policy, attempt) == RetryAt(attempt + 1, NOW + delay_ms * US_PER_MS)


@pytest.mark.parametrize("attempt", [10**6, 10**18])
@pytest.mark.parametrize("coefficient", [1.0, 2.0, 1e300])
def test_the_millionth_attempt_is_no_overflow(attempt: int, coefficient: float) -> None:
    policy = RetryPolicy(maximum_attempts=UNLIMITED, backoff_coefficient=coefficient, jitter=0.0)
    expected_ms = 1_000 if coefficient == 1.0 else 60_000
    assert decide(policy, attempt) == RetryAt(attempt + 1, NOW + expected_ms * US_PER_MS)


@given(attempts, st.floats(1, 1e300))
def test_an_interval_of_nothing_stays_nothing(attempt: int, coefficient: float) -> None:
    policy = RetryPolicy(maximum_attempts=UNLIMITED, initial_interval_ms=0, backoff_coefficient=coefficient)
    assert decide(policy, attempt) == RetryAt(attempt + 1, NOW)


def test_the_default_waits_half_of_each_interval_at_least() -> None:
    assert decide(SERVER_DEFAULT, fraction=0.0) == RetryAt(2, NOW + 1_000 * US_PER_MS)
    assert decide(SERVER_DEFAULT, fraction=0.5) == RetryAt(2, NOW + 750 * US_PER_MS)
    assert decide(SERVER_DEFAULT, fraction=0.998) == RetryAt(2, NOW + 501 * US_PER_MS)


def test_full_jitter_spreads_over_the_whole_interval() -> None:
    policy = RetryPolicy(jitter=1.0)
    assert decide(policy, fraction=0.5) == RetryAt(2, NOW + 500 * US_PER_MS)
    assert decide(policy, fraction=0.999) == RetryAt(2, NOW + 1 * US_PER_MS)


@given(policies, attempts, fractions, st.integers(0, 10**9))
def test_never_before_the_delay_the_error_asks_for(
    policy: RetryPolicy, attempt: int, fraction: float, requested_ms: int
) -> None:
    busy = msgspec.structs.replace(BOOM, retry_after_ms=requested_ms)
    decision = decide(policy, attempt, busy, fraction=fraction)
    assert isinstance(decision, Exhausted) or decision.at >= NOW + requested_ms * US_PER_MS


def test_a_requested_delay_is_at_most_a_century() -> None:
    endless = msgspec.structs.replace(BOOM, retry_after_ms=2**63 - 1)
    decision = decide(SERVER_DEFAULT, 1, endless)
    assert decision == RetryAt(2, NOW + limits.DURATION_MAX_US)


def test_no_retry_means_one_execution_and_keeps_the_kind_of_the_error() -> None:
    assert NO_RETRY.maximum_attempts == 1
    assert decide(NO_RETRY) == Exhausted(BOOM)


def test_out_of_retries_is_reported_as_exhausted() -> None:
    decision = decide(RetryPolicy(maximum_attempts=3), 3)
    assert decision == Exhausted(msgspec.structs.replace(BOOM, exhausted=True))


@pytest.mark.parametrize("kind", sorted(set(ErrorKind) - {ErrorKind.PERMANENT}))
def test_the_kind_of_the_last_error_outlives_the_last_attempt(kind: ErrorKind) -> None:
    error = msgspec.structs.replace(BOOM, kind=kind)
    assert decide(RetryPolicy(maximum_attempts=3), 3, error) == Exhausted(
        msgspec.structs.replace(error, exhausted=True)
    )


@pytest.mark.parametrize("name", ["shop.PaymentError", "PaymentError", "shop.ShopError", "ShopError", "Exception"])
def test_an_error_listed_by_its_class_or_a_base_is_final(name: str) -> None:
    policy = RetryPolicy(maximum_attempts=10, non_retryable_errors=("OtherError", name))
    assert decide(policy) == Exhausted(msgspec.structs.replace(BOOM, non_retryable=True))


WRONG = msgspec.structs.replace(BOOM, kind=ErrorKind.PERMANENT, bases=("shop.ShopError", "ValueError"))


@given(policies)
def test_permanent_errors_are_not_retried_by_default(policy: RetryPolicy) -> None:
    assert decide(policy, 1, WRONG) == Exhausted(msgspec.structs.replace(WRONG, non_retryable=True))


@pytest.mark.parametrize("name", ["shop.PaymentError", "PaymentError", "ShopError", "ValueError", "Exception"])
def test_permanent_errors_are_retried_where_the_policy_says_so(name: str) -> None:
    policy = RetryPolicy(retry_on_errors=("OtherError", name))
    assert isinstance(decide(policy, 1, WRONG), RetryAt)
    assert decide(policy, 3, WRONG) == Exhausted(msgspec.structs.replace(WRONG, exhausted=True))
    assert isinstance(decide(policy, 1, msgspec.structs.replace(WRONG, non_retryable=True)), Exhausted)


@pytest.mark.parametrize(
    ("retried", "final", "is_retried"),
    [
        ("PaymentError", "ValueError", True),
        ("ValueError", "PaymentError", False),
        ("ShopError", "Exception", True),
        ("Exception", "shop.ShopError", False),
        ("NotFound", "PaymentError", True),
        ("PaymentError", "404", False),
    ],
)
def test_of_two_names_the_nearer_one_decides(retried: str, final: str, is_retried: bool) -> None:
    error = msgspec.structs.replace(WRONG, code=ErrorCode.NOT_FOUND, metadata={"code": "404"})
    policy = RetryPolicy(retry_on_errors=(retried,), non_retryable_errors=(final,))
    assert isinstance(decide(policy, 1, error), RetryAt) is is_retried


@pytest.mark.parametrize(
    "code", ["InvalidArgument", "INVALID_ARGUMENT", "invalid_argument", "ERROR_CODE_INVALID_ARGUMENT"]
)
@pytest.mark.parametrize(
    "code_fields", [{"code": ErrorCode.INVALID_ARGUMENT}, {"metadata": {"code": "INVALID_ARGUMENT"}}]
)
def test_codes_are_matched_in_every_spelling(code: str, code_fields: dict[str, Any]) -> None:
    error = ErrorDetail(message="no class, only a code", **code_fields)
    assert isinstance(decide(RetryPolicy(), 1, error), RetryAt)
    assert isinstance(decide(RetryPolicy(non_retryable_errors=(code,)), 1, error), Exhausted)
    wrong = msgspec.structs.replace(error, kind=ErrorKind.PERMANENT)
    assert isinstance(decide(RetryPolicy(retry_on_errors=(code,)), 1, wrong), RetryAt)


@pytest.mark.parametrize(
    "name", ["card declined", "card", "", "Payment", "shop", "shop.Payment", "PaymentErrorX", "paymenterror"]
)
def test_neither_the_message_nor_a_part_of_a_name_is_compared(name: str) -> None:
    policy = RetryPolicy(maximum_attempts=10, non_retryable_errors=(name,))
    assert isinstance(decide(policy), RetryAt)
    nameless = ErrorDetail(message="card declined")
    assert isinstance(decide(policy, 1, nameless), RetryAt)


@given(policies)
def test_an_error_that_forbids_it_is_never_retried(policy: RetryPolicy) -> None:
    final = msgspec.structs.replace(BOOM, non_retryable=True, kind=ErrorKind.PERMANENT)
    assert decide(policy, 1, final) == Exhausted(final)


@given(policies, attempts, fractions, st.integers(-10, 100_000_000_000))
def test_no_retry_at_or_after_the_deadline(policy: RetryPolicy, attempt: int, fraction: float, left_us: int) -> None:
    decision = decide(policy, attempt, fraction=fraction, deadline_at=NOW + left_us)
    if isinstance(decision, RetryAt):
        assert decision.at < NOW + left_us


def test_a_retry_that_would_miss_the_deadline_is_exhaustion() -> None:
    policy = RetryPolicy(jitter=0.0)
    assert isinstance(decide(policy, deadline_at=NOW + 1_000 * US_PER_MS + 1), RetryAt)
    missed = decide(policy, deadline_at=NOW + 1_000 * US_PER_MS)
    assert missed == Exhausted(msgspec.structs.replace(BOOM, exhausted=True))

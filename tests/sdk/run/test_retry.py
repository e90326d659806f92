"""Retry as users write it, and what the server is told."""

from datetime import timedelta
from typing import Any

import pytest

from kagzi.core.errors import InvalidArgument, NonRetryable
from kagzi.core.retry.policy import RetryPolicy
from kagzi.sdk.workflow.retry import Retry, retry_of_extra_tries


@pytest.mark.parametrize(
    ("retry", "policy"),
    [
        (Retry.none(), RetryPolicy(maximum_attempts=1)),
        (Retry.attempts(7), RetryPolicy(maximum_attempts=7)),
        (Retry.forever(), RetryPolicy(maximum_attempts=-1)),
        (retry_of_extra_tries(0), RetryPolicy(maximum_attempts=1)),
        (retry_of_extra_tries(3), RetryPolicy(maximum_attempts=4)),
        (
            Retry.exponential(5, initial="100ms", max="30s", backoff=3, jitter=0.5, non_retryable=[OSError, "Gone"]),
            RetryPolicy(
                maximum_attempts=5,
                initial_interval_ms=100,
                maximum_interval_ms=30_000,
                backoff_coefficient=3.0,
                jitter=0.5,
                non_retryable_errors=("OSError", "Gone"),
            ),
        ),
        (
            Retry.fixed(2, "1500us"),
            RetryPolicy(
                maximum_attempts=2, initial_interval_ms=2, maximum_interval_ms=2, backoff_coefficient=1.0, jitter=0.0
            ),
        ),
        (Retry.linear(2, "2s"), Retry.fixed(2, "2s").to_policy()),
        (
            Retry.attempts(4).initial("2s").max("5s").backoff(1.5).jittered(0),
            Retry.exponential(4, initial="2s", max="5s", backoff=1.5, jitter=0).to_policy(),
        ),
    ],
)
def test_what_the_server_is_told(retry: Retry, policy: RetryPolicy) -> None:
    assert retry.to_policy() == policy


def test_a_retry_never_changes() -> None:
    base = Retry.attempts(3)
    assert base.initial("5s") is not base
    assert base == Retry.attempts(3)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Retry.attempts(0), r"attempts=0 must be 1 or more.*Retry.none\(\)"),
        (lambda: Retry.attempts(-1), r"Retry.forever\(\)"),
        (lambda: Retry.attempts("3"), "must be a whole number"),
        (lambda: Retry.attempts(True), "must be a whole number"),
        (lambda: Retry.exponential(3, initial=1), "no unit"),
        (lambda: Retry.exponential(3, backoff=0.5), r"backoff=0.5 must be between 1 and"),
        (lambda: Retry.exponential(3, backoff=float("nan")), "backoff=nan must be a number"),
        (lambda: Retry.attempts(3).jittered(2), "jitter=2 must be between 0 and 1"),
        (lambda: Retry.exponential(3, non_retryable=OSError), r"is one error. Write non_retryable=\[...\]"),
        (lambda: Retry.exponential(3, non_retryable=[3]), "neither an exception class nor its name"),
        (lambda: Retry.exponential(3, retry_on=OSError), r"is one error. Write retry_on=\[...\]"),
        (
            lambda: Retry.exponential(3, retry_on=[OSError], non_retryable=["OSError"]),
            "OSError is both in retry_on and in non_retryable",
        ),
        (lambda: retry_of_extra_tries(-1), "retries=-1 must be a whole number"),
    ],
)
def test_bad_values_are_refused_in_words(make: Any, text: str) -> None:
    with pytest.raises(InvalidArgument, match=text):
        make()


def test_final_errors_are_matched_by_class_and_name_never_by_message() -> None:
    class Declined(Exception): ...

    class Stolen(Declined): ...

    retry = Retry.exponential(3, non_retryable=[Declined, "KeyError"])
    assert retry.is_final(Stolen("x"))
    assert retry.is_final(KeyError("x"))
    assert retry.is_final(NonRetryable("x"))
    assert not retry.is_final(RuntimeError("Declined"))
    assert [retry.allows(attempt, RuntimeError()) for attempt in (1, 2, 3)] == [True, True, False]
    assert Retry.forever().allows(10**9, RuntimeError())


def test_only_what_is_listed_is_retried_if_everything_else_is_final() -> None:
    only = Retry.attempts(3).non_retryable([Exception]).retry_on([ConnectionError])
    assert only.allows(1, ConnectionResetError())
    assert not only.allows(1, RuntimeError())


def test_the_longest_wait_grows_to_the_maximum() -> None:
    retry = Retry.exponential(9, initial="1s", max="5s")
    assert [retry.delay_after(n) for n in (1, 2, 3, 4)] == [timedelta(seconds=n) for n in (1, 2, 4, 5)]
    assert retry.delay_after(10_000) == timedelta(seconds=5)

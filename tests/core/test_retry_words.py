"""Why an error was not retried, and what would have it retried."""

import pytest

from kagzi.core.error_details import ErrorCode, ErrorDetail, ErrorKind
from kagzi.core.retry.policy import SERVER_DEFAULT, RetryPolicy
from kagzi.core.retry.reasons import why_not_retried

FINAL = RetryPolicy(non_retryable_errors=("shop.Declined",))


def permanent(name: str, *bases: str, **more: object) -> ErrorDetail:
    return ErrorDetail(type=name, bases=bases, kind=ErrorKind.PERMANENT, non_retryable=True, **more)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  fields of it


@pytest.mark.parametrize(
    ("policy", "error", "words"),
    [
        (
            SERVER_DEFAULT,
            permanent("ValueError"),
            "not retried: ValueError is a programming error; retry_on=[ValueError] retries it",
        ),
        (
            SERVER_DEFAULT,
            permanent("KeyError", "LookupError"),
            "not retried: KeyError is a programming error; retry_on=[KeyError] retries it",
        ),
        (
            SERVER_DEFAULT,
            permanent("shop.NoStock", "shop.ShopError", "ValueError"),
            "not retried: NoStock is a ValueError, a programming error; retry_on=[NoStock] retries it",
        ),
        (
            SERVER_DEFAULT,
            permanent("PermissionError", "OSError"),
            "not retried: PermissionError is permanent; retry_on=[PermissionError] retries it",
        ),
        (
            SERVER_DEFAULT,
            permanent("httpx.HTTPStatusError", metadata={"code": "404"}),
            'not retried: HTTP 404 is permanent; retry_on=["404"] retries it',
        ),
        (FINAL, permanent("shop.Declined"), "not retried: non_retryable of its retry policy lists Declined"),
        (SERVER_DEFAULT, permanent("kagzi.NonRetryable"), ""),
        (SERVER_DEFAULT, permanent("shop.Gone", "kagzi.NonRetryable"), ""),
        (SERVER_DEFAULT, permanent("kagzi.InvalidArgument", code=ErrorCode.INVALID_ARGUMENT), ""),
        (SERVER_DEFAULT, ErrorDetail(type="ConnectionError", exhausted=True), ""),
        (RetryPolicy(retry_on_errors=("ValueError",)), ErrorDetail(type="ValueError", kind=ErrorKind.PERMANENT), ""),
        (SERVER_DEFAULT, ErrorDetail(message="nameless", kind=ErrorKind.PERMANENT), ""),
    ],
)
def test_why_an_error_was_not_retried(policy: RetryPolicy, error: ErrorDetail, words: str) -> None:
    assert why_not_retried(policy, error) == words

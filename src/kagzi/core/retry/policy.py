"""Decides about retries. The server decides, by the policy that was recorded when the step began."""

from collections.abc import Iterator
from typing import TypeAlias

import msgspec

from .. import limits
from ..error_details import OWN_CODE, ErrorCode, ErrorDetail, ErrorKind, current_name
from ..providers import Rng
from ..times import US_PER_MS, Timestamp

UNLIMITED = -1
_ROOTS = ("Exception", "BaseException")
_MAX_EXPONENT = 1_000  # beyond it every interval is the maximum; keeps floats finite


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """`maximum_attempts` counts executions in total: 1 = no retry, -1 = unlimited. (0, "inherit", exists on the wire
    only.)

    `retry_on_errors` and `non_retryable_errors` list class names (plain or qualified) and codes of errors that are, or
    are not, retried, whatever their kind. `jitter` is the part of each wait that is random; see ADR 0096.
    """

    maximum_attempts: int = 3
    initial_interval_ms: int = 1_000
    backoff_coefficient: float = 2.0
    maximum_interval_ms: int = 60_000
    non_retryable_errors: tuple[str, ...] = ()
    jitter: float = 0.5
    retry_on_errors: tuple[str, ...] = ()


SERVER_DEFAULT = RetryPolicy()
NO_RETRY = RetryPolicy(maximum_attempts=1)


class RetryAt(msgspec.Struct, frozen=True):
    """Retry as attempt `attempt`, not before `at`."""

    attempt: int
    at: Timestamp


class Exhausted(msgspec.Struct, frozen=True):
    """No more attempts. `error` is what the awaiting code gets, live and on replay."""

    error: ErrorDetail


RetryDecision: TypeAlias = RetryAt | Exhausted


def after_failure(
    policy: RetryPolicy,
    attempt: int,
    error: ErrorDetail,
    now: Timestamp,
    *,
    rng: Rng,
    deadline_at: Timestamp | None = None,
) -> RetryDecision:
    """Decides what follows the failure of attempt number `attempt` (1, 2, ...). There is no retry after the
    deadline."""
    if is_final(policy, error):
        return Exhausted(msgspec.structs.replace(error, non_retryable=True))
    if policy.maximum_attempts != UNLIMITED and attempt >= policy.maximum_attempts:
        return Exhausted(msgspec.structs.replace(error, exhausted=policy.maximum_attempts != 1))
    at = now + delay_after(policy, attempt, error, rng=rng) * US_PER_MS
    if deadline_at is not None and at >= deadline_at:
        return Exhausted(msgspec.structs.replace(error, exhausted=True))
    return RetryAt(attempt + 1, at)


def is_final(policy: RetryPolicy, error: ErrorDetail) -> bool:
    """Whether the error itself forbids another attempt.

    `non_retryable` on the error decides first, then the lists of the policy, then the kind of the error: permanent
    errors are not retried. See ADR 0029.
    """
    if error.non_retryable:
        return True
    named = retried_by_name(policy, error)
    return error.kind is ErrorKind.PERMANENT if named is None else not named


def retried_by_name(policy: RetryPolicy, error: ErrorDetail) -> bool | None:
    """What the policy's two lists say about the error: retry it, do not retry it, or (None) nothing.

    A code is more specific than a class, and a class more specific than its bases: the most specific entry decides.
    Codes and names are compared, never messages.
    """
    if not policy.retry_on_errors and not policy.non_retryable_errors:
        return None
    codes = _codes(error)
    for listed, verdict in ((policy.non_retryable_errors, False), (policy.retry_on_errors, True)):
        if not codes.isdisjoint(normalized_code(name) for name in listed):
            return verdict
    final = frozenset(map(current_name, policy.non_retryable_errors))
    retried = frozenset(map(current_name, policy.retry_on_errors))
    for name in _names(error):
        if name in final:
            return False
        if name in retried:
            return True
    return None


def normalized_code(code: str) -> str:
    """`InvalidArgument`, `INVALID_ARGUMENT` and `ERROR_CODE_INVALID_ARGUMENT` are one code."""
    return code.upper().removeprefix("ERROR_CODE_").replace("_", "")


def _codes(error: ErrorDetail) -> frozenset[str]:
    """Kagzi's code, and the code of the system that raised the error: an HTTP status, a gRPC code."""
    codes = ("" if error.code is ErrorCode.USER else error.code, error.metadata.get(OWN_CODE, ""))
    return frozenset(normalized_code(code) for code in codes if code)


def _names(error: ErrorDetail) -> Iterator[str]:
    """Every name of the error, the most specific first: its class and bases, qualified and plain."""
    for qualified in (error.type, *error.bases, *_ROOTS) if error.type else ():
        yield qualified
        yield qualified.rpartition(".")[2]


def delay_after(policy: RetryPolicy, attempt: int, error: ErrorDetail, *, rng: Rng) -> int:
    """Milliseconds to wait after attempt number `attempt` failed: at least what the error asks for, at most a
    century."""
    exponent = min(attempt - 1, _MAX_EXPONENT)
    try:
        interval = policy.initial_interval_ms * policy.backoff_coefficient**exponent
    except OverflowError:
        interval = float("inf") if policy.initial_interval_ms else 0.0
    capped = min(interval, float(max(policy.maximum_interval_ms, 0)))
    jittered = capped * (1.0 - policy.jitter * rng.fraction())
    return min(max(round(jittered), error.retry_after_ms), limits.DURATION_MAX_US // US_PER_MS)

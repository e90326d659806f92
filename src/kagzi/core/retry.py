"""When to try again. The server decides, from the policy recorded when the step began."""

from typing import TypeAlias

import msgspec

from . import limits
from .errors import ErrorDetail, ErrorKind
from .seams import Dice
from .times import US_PER_MS, Timestamp

UNLIMITED = -1
_MAX_EXPONENT = 1_000  # beyond it every interval is the maximum; keeps floats finite


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """`maximum_attempts` counts executions in total: 1 = no retry, -1 = unlimited. (0, "inherit", exists on the wire only.)"""

    maximum_attempts: int = 3
    initial_interval_ms: int = 1_000
    backoff_coefficient: float = 2.0
    maximum_interval_ms: int = 60_000
    non_retryable_errors: tuple[str, ...] = ()
    jitter: float = 1.0


SERVER_DEFAULT = RetryPolicy()
NO_RETRY = RetryPolicy(maximum_attempts=1)


class RetryAt(msgspec.Struct, frozen=True):
    """Try again, as attempt `attempt`, not before `at`."""

    attempt: int
    at: Timestamp


class Exhausted(msgspec.Struct, frozen=True):
    """No more tries. `error` is what the awaiting code gets, live and on replay."""

    error: ErrorDetail


RetryDecision: TypeAlias = RetryAt | Exhausted


def after_failure(
    policy: RetryPolicy,
    attempt: int,
    error: ErrorDetail,
    now: Timestamp,
    *,
    dice: Dice,
    deadline_at: Timestamp | None = None,
) -> RetryDecision:
    """What follows the failure of attempt number `attempt` (1, 2, ...). A retry that would come after the deadline is none."""
    if is_final(policy, error):
        return Exhausted(error)
    if policy.maximum_attempts != UNLIMITED and attempt >= policy.maximum_attempts:
        kind = error.kind if policy.maximum_attempts == 1 else ErrorKind.EXHAUSTED
        return Exhausted(msgspec.structs.replace(error, kind=kind))
    at = now + delay_after(policy, attempt, error, dice=dice) * US_PER_MS
    if deadline_at is not None and at >= deadline_at:
        return Exhausted(msgspec.structs.replace(error, kind=ErrorKind.EXHAUSTED))
    return RetryAt(attempt + 1, at)


def is_final(policy: RetryPolicy, error: ErrorDetail) -> bool:
    """Whether the error itself forbids another try. Names are compared, never messages."""
    return error.non_retryable or not error.names().isdisjoint(policy.non_retryable_errors)


def delay_after(policy: RetryPolicy, attempt: int, error: ErrorDetail, *, dice: Dice) -> int:
    """Milliseconds to wait after attempt number `attempt` failed; never less than the error asks for, up to a century."""
    exponent = min(attempt - 1, _MAX_EXPONENT)
    try:
        interval = policy.initial_interval_ms * policy.backoff_coefficient**exponent
    except OverflowError:
        interval = float("inf") if policy.initial_interval_ms else 0.0
    capped = min(interval, float(max(policy.maximum_interval_ms, 0)))
    jittered = capped * (1.0 - policy.jitter * dice.fraction())
    return min(max(round(jittered), error.retry_after_ms), limits.DURATION_MAX_US // US_PER_MS)

"""Retry policies as users write them. The server applies them; see `kagzi.core.retry.policy`."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Self

from ...core.checks.values import retry as check_policy
from ...core.duration import Duration, parse_duration
from ...core.errors import InvalidArgument
from ...core.public import exported
from ...core.raised.exceptions import qualified_name
from ...core.retry.policy import SERVER_DEFAULT, UNLIMITED, RetryPolicy, is_final
from ...core.times import US_PER_MS, us_from_timedelta
from .failures import describe

ErrorClass = str | type[BaseException]

_MAX_ATTEMPTS = 2**31 - 1  # the largest int32 of the protocol


@exported
@dataclass(frozen=True, slots=True)
class Retry:
    """When and how often to try again. Immutable: every method returns a new Retry.

    Programming errors (TypeError, ValueError, KeyError ...), responses with an HTTP status of 400 to 499 (except 408,
    425, 429) and other permanent errors are not retried unless `retry_on` lists them. All other errors are retried
    unless `non_retryable` lists them. If both match an error, the most specific entry decides: its code, its class,
    then its base classes.
    """

    max_attempts: int | None = 3  #: executions in total (1: no retry); None: no limit
    initial_interval: timedelta = timedelta(seconds=1)  #: the wait after the first attempt
    max_interval: timedelta = timedelta(seconds=60)  #: the longest wait
    backoff_coefficient: float = 2.0  #: each wait is this many times as long as the one before
    jitter: float = SERVER_DEFAULT.jitter  #: the part of each wait that is random, 0 to 1; the rest is always waited
    non_retryable_errors: tuple[str, ...] = ()  #: names or codes of errors that are not retried
    retry_on_errors: tuple[
        str, ...
    ] = ()  #: names or codes of errors that are retried although they would not be by default

    def __post_init__(self) -> None:
        _check_attempts(self.max_attempts)
        _check_number("backoff", self.backoff_coefficient, at_least=1.0, at_most=1_000_000.0)
        _check_number("jitter", self.jitter, at_least=0.0, at_most=1.0)
        for name in self.retry_on_errors:
            if name in self.non_retryable_errors:
                raise InvalidArgument(
                    f"{name} is both in retry_on and in non_retryable. Remove it from one of them.", field="retry_on"
                )
        check_policy(self.to_policy(), "retry")

    @classmethod
    def attempts(cls, n: int) -> Self:
        """At most `n` executions in total, with the default intervals."""
        return cls(max_attempts=n)

    @classmethod
    def exponential(
        cls,
        attempts: int = 3,
        *,
        initial: Duration = "1s",
        max: Duration = "60s",
        backoff: float = 2.0,
        jitter: float = SERVER_DEFAULT.jitter,
        non_retryable: Iterable[ErrorClass] = (),
        retry_on: Iterable[ErrorClass] = (),
    ) -> Self:
        """Wait longer after each attempt.

        Args:
            attempts: Executions in total; 1 means that nothing is retried.
            initial: The first interval.
            max: The longest interval.
            backoff: Each interval is this many times as long as the one before, at least 1.
            jitter: The part of each interval that is random: 0 is none, 0.5 is half of it, 1 is all of it.
            non_retryable: Errors that are not retried: classes (with their subclasses), names, codes.
            retry_on: Errors that are retried although they would not be by default, in the same form.
        """
        return cls(
            max_attempts=attempts,
            initial_interval=parse_duration(initial, what="initial"),
            max_interval=parse_duration(max, what="max"),
            backoff_coefficient=backoff,
            jitter=jitter,
            non_retryable_errors=_listed("non_retryable", non_retryable),
            retry_on_errors=_listed("retry_on", retry_on),
        )

    @classmethod
    def fixed(cls, attempts: int, interval: Duration) -> Self:
        """At most `attempts` executions in total, with exactly this `interval` between them. Also called `linear`."""
        pause = parse_duration(interval, what="interval")
        return cls(
            max_attempts=attempts, initial_interval=pause, max_interval=pause, backoff_coefficient=1.0, jitter=0.0
        )

    linear = fixed  #: another name for `fixed`

    @classmethod
    def none(cls) -> Self:
        """One execution, no retry."""
        return cls(max_attempts=1)

    @classmethod
    def forever(cls) -> Self:
        """Try until it works, with the default intervals."""
        return cls(max_attempts=None)

    def initial(self, d: Duration) -> Self:
        """The same policy with `d` as the first interval."""
        return replace(self, initial_interval=parse_duration(d, what="initial"))

    def max(self, d: Duration) -> Self:
        """The same policy with `d` as the longest interval."""
        return replace(self, max_interval=parse_duration(d, what="max"))

    def backoff(self, coefficient: float) -> Self:
        """The same policy with intervals that grow by this `coefficient`, at least 1."""
        return replace(self, backoff_coefficient=coefficient)

    def jittered(self, fraction: float) -> Self:
        """The same policy with this `fraction` of each interval random: 0 is none, 1 is all of it."""
        return replace(self, jitter=fraction)

    def non_retryable(self, errors: Iterable[ErrorClass]) -> Self:
        """The same policy without retries of these `errors`: classes (with their subclasses), names of classes
        (plain or qualified), or codes: "InvalidArgument" or "INVALID_ARGUMENT", and "404" of an HTTP error."""
        return replace(self, non_retryable_errors=_listed("non_retryable", errors))

    def retry_on(self, errors: Iterable[ErrorClass]) -> Self:
        """The same policy, but these `errors`, in the same form, are retried although they would not be by default:
        `retry_on=[ValueError]`. Errors that are retried by default still are; to retry these errors only, add
        `non_retryable=[Exception]`."""
        return replace(self, retry_on_errors=_listed("retry_on", errors))

    def delay_after(self, attempt: int) -> timedelta:
        """The longest wait after attempt number `attempt` (1, 2, ...); jitter shortens it."""
        try:
            factor = self.backoff_coefficient ** (attempt - 1)
            return min(self.initial_interval * factor, self.max_interval)
        except OverflowError:
            return self.max_interval

    def allows(self, attempt: int, error: BaseException) -> bool:
        """Whether another attempt follows if attempt number `attempt` failed with `error`."""
        return not self.is_final(error) and (self.max_attempts is None or attempt < self.max_attempts)

    def is_final(self, error: BaseException) -> bool:
        """Whether `error` itself forbids another attempt. Classes, names and codes are compared, never messages."""
        return is_final(self.to_policy(), describe(error))

    def to_policy(self) -> RetryPolicy:
        """The policy as it is sent to the server."""
        return RetryPolicy(
            maximum_attempts=UNLIMITED if self.max_attempts is None else self.max_attempts,
            initial_interval_ms=_milliseconds(self.initial_interval),
            backoff_coefficient=float(self.backoff_coefficient),
            maximum_interval_ms=_milliseconds(self.max_interval),
            non_retryable_errors=self.non_retryable_errors,
            jitter=float(self.jitter),
            retry_on_errors=self.retry_on_errors,
        )


def retry_of_extra_tries(retries: int, *, what: str = "retries") -> Retry:
    """The policy for `retries=n`: n tries after the first, so n + 1 attempts."""
    if not _is_count(retries):
        raise InvalidArgument(f"{what}={retries!r} must be a whole number, 0 (no retry) or more.", field=what)
    return Retry.attempts(retries + 1)


def _listed(what: str, errors: Iterable[ErrorClass]) -> tuple[str, ...]:
    if isinstance(errors, (str, type)):
        raise InvalidArgument(f"{what}={errors!r} is one error. Write {what}=[...].", field=what)
    return tuple(_error_name(what, error) for error in errors)


def _error_name(what: str, error: object) -> str:
    if isinstance(error, str) and error:
        return error
    if isinstance(error, type) and issubclass(error, BaseException):
        return qualified_name(error)
    raise InvalidArgument(f"{what}: {error!r} is neither an exception class nor its name.", field=what)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _milliseconds(duration: timedelta) -> int:
    return -(-us_from_timedelta(duration) // US_PER_MS)  # rounded up: an interval never becomes shorter than written


def _check_attempts(n: object) -> None:
    if n is None:
        return
    if isinstance(n, bool) or not isinstance(n, int):
        raise InvalidArgument(f"attempts={n!r} must be a whole number.", field="attempts")
    if n < 1:
        raise InvalidArgument(
            f"attempts={n} must be 1 or more: it counts executions. Write Retry.none() for no retry, "
            f"Retry.forever() for no limit.",
            field="attempts",
        )
    if n > _MAX_ATTEMPTS:
        raise InvalidArgument(
            f"attempts={n} is over the limit of {_MAX_ATTEMPTS}. Write Retry.forever().", field="attempts"
        )


def _check_number(what: str, value: object, *, at_least: float, at_most: float) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise InvalidArgument(f"{what}={value!r} must be a number.", field=what)
    if not at_least <= value <= at_most:
        raise InvalidArgument(f"{what}={value!r} must be between {at_least:g} and {at_most:g}.", field=what)


def check_retry(retry: object) -> Retry | None:
    """Raises InvalidArgument for a value that is neither a Retry nor None."""
    if retry is None or isinstance(retry, Retry):
        return retry
    raise InvalidArgument(f"retry={retry!r} is not a Retry. Write Retry.attempts(3), for example.", field="retry")

"""How often a step is tried, as users write it. The server decides with it; see `kagzi.core.retry`."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Self

from ..core.duration import Duration, parse_duration
from ..core.errors import InvalidArgument, NonRetryable, qualified_name
from ..core.retry import UNLIMITED, RetryPolicy
from ..core.times import US_PER_MS, us_from_timedelta

ErrorClass = str | type[BaseException]

_MAX_ATTEMPTS = 2**31 - 1  # what the wire can carry


@dataclass(frozen=True, slots=True)
class Retry:
    """When and how often to try again. Immutable: every method returns a new Retry."""

    max_attempts: int | None = 3  #: executions in total (1: no retry); None: no limit
    initial_interval: timedelta = timedelta(seconds=1)  #: the wait after the first attempt
    max_interval: timedelta = timedelta(seconds=60)  #: the longest wait
    backoff_coefficient: float = 2.0  #: each wait is this many times as long as the one before
    jitter: float = 1.0  #: the part of each wait that is random, 0 to 1
    non_retryable_errors: tuple[str, ...] = ()  #: names of errors after which there is no other attempt
    non_retryable_classes: tuple[type[BaseException], ...] = ()  #: their classes, as far as they were given

    def __post_init__(self) -> None:
        _check_attempts(self.max_attempts)
        _check_number("backoff", self.backoff_coefficient, at_least=1.0, at_most=1_000_000.0)
        _check_number("jitter", self.jitter, at_least=0.0, at_most=1.0)

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
        jitter: float = 1.0,
        non_retryable: Iterable[ErrorClass] = (),
    ) -> Self:
        """Wait a little, then longer each time.

        Args:
            attempts: Executions in total; 1 is no retry.
            initial: The first interval.
            max: The longest interval.
            backoff: Each interval is this many times as long as the one before, at least 1.
            jitter: The part of each interval that is random: 0 is none, 1 is all of it.
            non_retryable: Errors after which there is no other attempt: classes (with their subclasses) or names.
        """
        return cls(
            max_attempts=attempts,
            initial_interval=parse_duration(initial, what="initial"),
            max_interval=parse_duration(max, what="max"),
            backoff_coefficient=backoff,
            jitter=jitter,
        ).non_retryable(non_retryable)

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
        """The same with `d` as the first interval."""
        return replace(self, initial_interval=parse_duration(d, what="initial"))

    def max(self, d: Duration) -> Self:
        """The same with `d` as the longest interval."""
        return replace(self, max_interval=parse_duration(d, what="max"))

    def backoff(self, coefficient: float) -> Self:
        """The same with intervals that grow by this `coefficient`, at least 1."""
        return replace(self, backoff_coefficient=coefficient)

    def jittered(self, fraction: float) -> Self:
        """The same with this `fraction` of each interval left to chance: 0 is none, 1 is all of it."""
        return replace(self, jitter=fraction)

    def non_retryable(self, errors: Iterable[ErrorClass]) -> Self:
        """The same, with `errors` after which there is no other attempt: classes (with their subclasses) or names."""
        if isinstance(errors, (str, type)):
            raise InvalidArgument(
                f"non_retryable={errors!r} is one error. Write non_retryable=[...].", field="non_retryable"
            )
        names: list[str] = []
        classes: list[type[BaseException]] = []
        for error in errors:
            if isinstance(error, str) and error:
                names.append(error)
            elif isinstance(error, type) and issubclass(error, BaseException):  # pyright: ignore[reportUnnecessaryIsInstance]  callers are users
                names.append(qualified_name(error))
                classes.append(error)
            else:
                raise InvalidArgument(
                    f"non_retryable: {error!r} is neither an exception class nor its name.", field="non_retryable"
                )
        return replace(self, non_retryable_errors=tuple(names), non_retryable_classes=tuple(classes))

    def delay_after(self, attempt: int) -> timedelta:
        """The longest wait after attempt number `attempt` (1, 2, ...); jitter shortens it."""
        try:
            factor = self.backoff_coefficient ** (attempt - 1)
            return min(self.initial_interval * factor, self.max_interval)
        except OverflowError:
            return self.max_interval

    def allows(self, attempt: int, error: BaseException) -> bool:
        """Whether another attempt follows when attempt number `attempt` failed with `error`."""
        return not self.is_final(error) and (self.max_attempts is None or attempt < self.max_attempts)

    def is_final(self, error: BaseException) -> bool:
        """Whether `error` itself forbids another attempt. Classes and names are compared, never messages."""
        if isinstance(error, (NonRetryable, *self.non_retryable_classes)):
            return True
        if not self.non_retryable_errors:
            return False
        bases = type(error).__mro__
        own = {cls.__name__ for cls in bases} | {qualified_name(cls) for cls in bases if issubclass(cls, BaseException)}
        return not own.isdisjoint(self.non_retryable_errors)

    def to_policy(self) -> RetryPolicy:
        """The policy as it is sent to the server."""
        return RetryPolicy(
            maximum_attempts=UNLIMITED if self.max_attempts is None else self.max_attempts,
            initial_interval_ms=_milliseconds(self.initial_interval),
            backoff_coefficient=float(self.backoff_coefficient),
            maximum_interval_ms=_milliseconds(self.max_interval),
            non_retryable_errors=self.non_retryable_errors,
            jitter=float(self.jitter),
        )


def retry_of_extra_tries(retries: int, *, what: str = "retries") -> Retry:
    """`retries=n` means n tries after the first: n + 1 attempts."""
    if not _is_count(retries):
        raise InvalidArgument(f"{what}={retries!r} must be a whole number, 0 (no retry) or more.", field=what)
    return Retry.attempts(retries + 1)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _milliseconds(duration: timedelta) -> int:
    return -(-us_from_timedelta(duration) // US_PER_MS)  # up: an interval never becomes shorter than written


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

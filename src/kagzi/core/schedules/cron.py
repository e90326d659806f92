"""Nominal times: when a schedule should run. A cron expression in a time zone, or an interval from an anchor.

Clocks change twice a year. An expression that names hours means wall-clock time: a local time that does not exist runs
once, at the end of the gap; one that occurs twice runs the first time. An expression that matches every hour means
elapsed time: it continues through both passes of a repeated hour.

Searching backwards is as cheap as forwards, so that the last few of a million missed times are found at once.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Protocol
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from ..errors import InvalidArgument
from ..limits import SCHEDULE_INTERVAL_MIN_US
from ..times import US_PER_S, Timestamp, from_datetime, to_datetime
from .cron_search import Search

EXPRESSION_BYTES = 256
_FIRST_TIME: Timestamp = -2_208_988_800 * US_PER_S  # 1900: within the range of calendars
_LAST_TIME: Timestamp = 221_845_392_000 * US_PER_S  # 9000
_DAY_US = 86_400 * US_PER_S
_EVERY_HOUR = 24
_SOME_DATE = datetime(2000, 1, 1)  # noqa: DTZ001  only used to test whether the expression ever matches


class NominalTimes(Protocol):
    """An endless, deterministic sequence of times."""

    def next(self, after: Timestamp) -> Timestamp | None:
        """The first time after `after`."""
        ...

    def latest(self, at: Timestamp) -> Timestamp | None:
        """The last time not later than `at`."""
        ...

    @property
    def steps(self) -> int:
        """The cost of all searches so far."""
        ...


class Interval:
    """A fixed interval, counted from the anchor, so that it does not drift."""

    def __init__(self, interval_us: int, anchor: Timestamp) -> None:
        if interval_us < SCHEDULE_INTERVAL_MIN_US:
            raise InvalidArgument(
                f"interval is {interval_us / US_PER_S:g}s; the minimum is {SCHEDULE_INTERVAL_MIN_US // US_PER_S}s. "
                "Use a longer interval, or one run that sleeps in a loop.",
                field="interval",
            )
        self._interval_us = interval_us
        self._anchor = anchor

    steps = 0  # computed without a search

    def next(self, after: Timestamp) -> Timestamp | None:
        at = self._anchor + ((after - self._anchor) // self._interval_us + 1) * self._interval_us
        return at if at <= _LAST_TIME else None

    def latest(self, at: Timestamp) -> Timestamp | None:
        latest = self._anchor + (at - self._anchor) // self._interval_us * self._interval_us
        return latest if latest >= _FIRST_TIME else None


class Cron:
    """Raises InvalidArgument for an invalid expression or time zone, and for an expression that never matches."""

    def __init__(self, expression: str, timezone: str = "") -> None:
        simulation = _parse(expression)
        self._search = Search(simulation)
        self._zone = _zone(timezone)
        self._is_hourly = len(simulation.hours) == _EVERY_HOUR

    @property
    def steps(self) -> int:
        """The cost of all searches so far, in months and days."""
        return self._search.steps

    def next(self, after: Timestamp) -> Timestamp | None:
        if not _FIRST_TIME <= after < _LAST_TIME:
            return None
        if self._is_hourly:
            return self._next_hourly(after)
        local = self._match_after(self._ceiling(after))
        return None if local is None else self._instant(local)

    def latest(self, at: Timestamp) -> Timestamp | None:
        if not _FIRST_TIME <= at < _LAST_TIME:
            return None
        if self._is_hourly:
            return self._latest_hourly(at)
        local = self._match_until(self._ceiling(at))
        return None if local is None else self._instant(local)

    # --- wall-clock time ----------------------------------------------------------------------------------------------

    def _ceiling(self, at: Timestamp) -> datetime:
        """The latest local time that the wall clock has shown by then. A repeated hour adds nothing new."""
        local = to_datetime(at).astimezone(self._zone)
        if not local.fold:
            return local.replace(tzinfo=None)
        repeated = from_datetime(local) - from_datetime(local.replace(fold=0))
        turned = self._turn(at - repeated, at)
        return _plain(turned - 1, self._offset(turned - 1))

    def _instant(self, local: datetime) -> Timestamp:
        aware = local.replace(tzinfo=self._zone, fold=0)
        at = from_datetime(aware)
        if to_datetime(at).astimezone(self._zone).replace(tzinfo=None) == local:
            return at
        return self._turn(from_datetime(aware.replace(fold=1)), at)

    # --- hourly: periods between two clock changes, each with its own offset ------------------------------------------

    def _next_hourly(self, after: Timestamp) -> Timestamp | None:
        while True:
            first = after + 1  # the earliest possible match
            offset = self._offset(first)
            end = first + _DAY_US
            turns = self._offset(end) != offset
            if turns:
                end = self._turn(first, end)
            local = self._match_after(_plain(after, offset))
            if local is None:
                return None
            at = _as_utc(local) - offset
            if at < end:
                return at
            # Nothing up to two days before this match can match, whatever the clock does in between.
            after = end - 1 if turns else max(end - 1, at - 2 * _DAY_US)

    def _latest_hourly(self, at: Timestamp) -> Timestamp | None:
        while True:
            offset = self._offset(at)
            begin = at - _DAY_US
            turns = self._offset(begin) != offset
            if turns:
                begin = self._turn(begin, at)
            local = self._match_until(_plain(at, offset))
            if local is None:
                return None
            latest = _as_utc(local) - offset
            if latest >= begin:
                return latest
            at = begin - 1 if turns else min(begin - 1, latest + 2 * _DAY_US)

    # --- helpers ------------------------------------------------------------------------------------------------------

    def _offset(self, at: Timestamp) -> int:
        offset = to_datetime(at).astimezone(self._zone).utcoffset()
        assert offset is not None
        return offset // timedelta(microseconds=1)

    def _turn(self, before: Timestamp, after: Timestamp) -> Timestamp:
        """The first moment in (before, after] at which the clock has changed."""
        offset = self._offset(before)
        while after - before > 1:
            middle = (before + after) // 2
            if self._offset(middle) == offset:
                before = middle
            else:
                after = middle
        return after

    def _match_after(self, local: datetime) -> datetime | None:
        return self._search.after(local)

    def _match_until(self, local: datetime) -> datetime | None:
        return self._search.until(local)


class Times:
    """Nominal times at or after `start_at` and before `end_at`."""

    def __init__(
        self, source: NominalTimes, start_at: Timestamp | None = None, end_at: Timestamp | None = None
    ) -> None:
        self._source = source
        self._start_at = _FIRST_TIME if start_at is None else start_at
        self._end_at = _LAST_TIME if end_at is None else end_at

    def next(self, after: Timestamp) -> Timestamp | None:
        at = self._source.next(max(after, self._start_at - 1))
        return at if at is not None and at < self._end_at else None

    def latest(self, at: Timestamp) -> Timestamp | None:
        latest = self._source.latest(min(at, self._end_at - 1))
        return latest if latest is not None and latest >= self._start_at else None

    @property
    def steps(self) -> int:
        """See NominalTimes."""
        return self._source.steps

    def after(self, after: Timestamp) -> Iterator[Timestamp]:
        """Earliest first."""
        at = self.next(after)
        while at is not None:
            yield at
            at = self.next(at)

    def back_from(self, at: Timestamp) -> Iterator[Timestamp]:
        """Latest first."""
        latest = self.latest(at)
        while latest is not None:
            yield latest
            latest = self.latest(latest - 1)


def _parse(expression: str) -> CronSim:
    fields = expression.split()
    if len(expression.encode("utf-8", "replace")) > EXPRESSION_BYTES or len(fields) not in (5, 6):
        raise _bad(
            expression[:EXPRESSION_BYTES],
            f"it has {len(fields)} fields in {len(expression)} characters; it must have 5 (minute hour day month "
            f"weekday), or 6 with seconds first, in at most {EXPRESSION_BYTES} bytes",
        )
    try:
        simulation = CronSim(expression, _SOME_DATE)
    except CronSimError as error:
        raise _bad(expression, str(error)) from error
    if Search(simulation).after(_SOME_DATE) is None:
        raise _bad(expression, "it never matches any day")
    return simulation


def _bad(expression: str, reason: str) -> InvalidArgument:
    return InvalidArgument(
        f'cron_expr={expression!r}: {reason}. Write for example "0 6 * * MON-FRI".', field="cron_expr"
    )


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name or "UTC")
    except (LookupError, ValueError, OSError) as error:
        raise InvalidArgument(
            f'timezone={name!r} is not a time zone. Use an IANA name such as "Europe/Berlin" or "UTC".',
            field="timezone",
        ) from error


def _plain(at: Timestamp, offset: int) -> datetime:
    return to_datetime(at + offset).replace(tzinfo=None)


def _as_utc(local: datetime) -> Timestamp:
    return from_datetime(local.replace(tzinfo=_UTC))


_UTC = to_datetime(0).tzinfo

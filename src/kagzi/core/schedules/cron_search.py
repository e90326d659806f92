"""Finds the local times that a cron expression matches: by month, then by day, then by time of day, so that a year
without a match only costs one step for each named month. Steps are counted, so that a search can be bounded."""

import calendar
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from datetime import date, datetime, time

from cronsim import CronSim

SEARCH_YEARS = 50
"""An expression that matches no day within this many years is treated as one that never matches."""

_LAST_YEAR = 9_999
_MOST_DAYS = 31


class Search:
    """Searches the matches of one parsed expression in both directions. `steps`: months and days searched so far."""

    def __init__(self, expression: CronSim) -> None:
        self._matches = expression.match_day
        self._months = sorted(expression.months)
        self._hours = sorted(expression.hours)
        self._minutes = sorted(expression.minutes)
        self._seconds = sorted(expression.seconds)
        plain = all(day > 0 for day in expression.days)
        # Both fields must match, so only the named days of the month can match.
        self._days = sorted(expression.days) if plain and expression.day_and else range(1, _MOST_DAYS + 1)
        self.steps = 0

    def after(self, local: datetime) -> datetime | None:
        """The first match later than `local`, within SEARCH_YEARS."""
        today, now = local.date(), (local.hour, local.minute, local.second)
        for day in self._days_from(today):
            match = self._first_time() if day > today else self._time_after(*now)
            if match is not None:
                return datetime.combine(day, match)
        return None

    def until(self, local: datetime) -> datetime | None:
        """The last match that is not later than `local`, within SEARCH_YEARS."""
        today, now = local.date(), (local.hour, local.minute, local.second)
        for day in self._days_back_from(today):
            match = self._last_time() if day < today else self._time_until(*now)
            if match is not None:
                return datetime.combine(day, match)
        return None

    # --- days ---------------------------------------------------------------------------------------------------------

    def _days_from(self, first: date) -> Iterator[date]:
        for year in range(first.year, min(first.year + SEARCH_YEARS, _LAST_YEAR) + 1):
            for month in self._months:
                if (year, month) >= (first.year, first.month):
                    yield from (day for day in self._days_of(year, month) if day >= first)

    def _days_back_from(self, last: date) -> Iterator[date]:
        for year in range(last.year, max(last.year - SEARCH_YEARS, 1) - 1, -1):
            for month in reversed(self._months):
                if (year, month) <= (last.year, last.month):
                    yield from (day for day in self._days_of(year, month, back=True) if day <= last)

    def _days_of(self, year: int, month: int, *, back: bool = False) -> Iterator[date]:
        self.steps += 1
        _, length = calendar.monthrange(year, month)
        for number in reversed(self._days) if back else self._days:
            if number <= length:
                self.steps += 1
                day = date(year, month, number)
                if self._matches(day):
                    yield day

    # --- times of day -------------------------------------------------------------------------------------------------

    def _first_time(self) -> time:
        return time(self._hours[0], self._minutes[0], self._seconds[0])

    def _last_time(self) -> time:
        return time(self._hours[-1], self._minutes[-1], self._seconds[-1])

    def _time_after(self, hour: int, minute: int, second: int) -> time | None:
        if hour in self._hours:
            if minute in self._minutes and (place := bisect_right(self._seconds, second)) < len(self._seconds):
                return time(hour, minute, self._seconds[place])
            if (place := bisect_right(self._minutes, minute)) < len(self._minutes):
                return time(hour, self._minutes[place], self._seconds[0])
        if (place := bisect_right(self._hours, hour)) < len(self._hours):
            return time(self._hours[place], self._minutes[0], self._seconds[0])
        return None

    def _time_until(self, hour: int, minute: int, second: int) -> time | None:
        if hour in self._hours:
            if minute in self._minutes and (place := bisect_right(self._seconds, second)):
                return time(hour, minute, self._seconds[place - 1])
            if place := bisect_left(self._minutes, minute):
                return time(hour, self._minutes[place - 1], self._seconds[-1])
        if place := bisect_left(self._hours, hour):
            return time(self._hours[place - 1], self._minutes[-1], self._seconds[-1])
        return None

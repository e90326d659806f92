"""Nominal times: forwards and backwards they are the same, and the clock may be turned under them."""

import functools
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim, CronSimError
from hypothesis import given, settings
from hypothesis import strategies as st

from kagzi.core.errors import InvalidArgument
from kagzi.core.schedules.cron import Cron, Interval, Times
from kagzi.core.schedules.cron_search import Search
from kagzi.core.times import US_PER_S, Timestamp, from_datetime, to_datetime

ZONES = ["Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "America/Havana", "UTC"]
# Each zone's clock is turned in one of these days, in spring and in autumn of 2026.
TURNS = ["2026-03-08", "2026-03-29", "2026-04-05", "2026-10-04", "2026-10-25", "2026-11-01"]

minute_fields = st.sampled_from(["0", "30", "*", "*/15", "5,55", "0-59/20"])
hour_fields = st.sampled_from(["*", "2", "0", "1-3", "*/2", "23", "0,2", "3"])
day_fields = st.sampled_from(["*", "*", "1", "25-31", "L", "*/2"])
weekday_fields = st.sampled_from(["*", "*", "SUN", "MON-FRI", "0#1"])
expressions = st.builds(
    lambda minute, hour, day, weekday: f"{minute} {hour} {day} * {weekday}",
    minute_fields,
    hour_fields,
    day_fields,
    weekday_fields,
)


def at(text: str) -> Timestamp:
    return from_datetime(datetime.fromisoformat(text))


def times_between(times: Times, begin: Timestamp, end: Timestamp) -> list[Timestamp]:
    return list(takewhile(lambda nominal: nominal < end, times.after(begin - 1)))


def utc(nominal: Timestamp) -> str:
    return to_datetime(nominal).strftime("%m-%d %H:%M:%S")


@pytest.mark.parametrize(
    ("zone", "expression", "begin", "expected"),
    [
        # 02:30 does not exist: it runs once, when the gap ends.
        ("Europe/Berlin", "30 2 * * *", "2026-03-28", ["03-28 01:30:00", "03-29 01:00:00", "03-30 00:30:00"]),
        ("America/New_York", "30 2 * * *", "2026-03-07", ["03-07 07:30:00", "03-08 07:00:00", "03-09 06:30:00"]),
        # 02:30 (New York 01:30) occurs twice: it runs the first time.
        ("Europe/Berlin", "30 2 * * *", "2026-10-24", ["10-24 00:30:00", "10-25 00:30:00", "10-26 01:30:00"]),
        ("America/New_York", "30 1 * * *", "2026-10-31", ["10-31 05:30:00", "11-01 05:30:00", "11-02 06:30:00"]),
        # Six fields mean the same.
        ("Europe/Berlin", "7 30 2 * * *", "2026-03-28", ["03-28 01:30:07", "03-29 01:00:00", "03-30 00:30:07"]),
        ("Europe/Berlin", "7 30 2 * * *", "2026-10-24", ["10-24 00:30:07", "10-25 00:30:07", "10-26 01:30:07"]),
        ("", "0 6 * * *", "2026-03-28", ["03-28 06:00:00", "03-29 06:00:00", "03-30 06:00:00"]),
    ],
)
def test_a_time_of_day_runs_once_a_day_whatever_the_clock_does(
    zone: str, expression: str, begin: str, expected: list[str]
) -> None:
    times = Times(Cron(expression, zone))
    nominals = list(islice(times.after(at(f"{begin}T00:00:00+00:00")), 3))
    assert [utc(nominal) for nominal in nominals] == expected
    assert list(islice(times.back_from(nominals[-1]), 3)) == nominals[::-1]


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York"])
@pytest.mark.parametrize("day", TURNS)
@pytest.mark.parametrize(("expression", "step_s"), [("*/15 * * * *", 900), ("0 * * * *", 3600), ("0 */5 * * * *", 300)])
def test_an_interval_has_no_gap_and_no_double(zone: str, day: str, expression: str, step_s: int) -> None:
    begin = at(f"{day}T00:00:00+00:00")
    end = begin + 86_400 * US_PER_S
    expected = list(range(begin, end, step_s * US_PER_S))
    times = Times(Cron(expression, zone))
    assert times_between(times, begin, end) == expected
    assert list(islice(times.back_from(end - 1), len(expected))) == expected[::-1]


@pytest.mark.parametrize("day", ["2026-03-29", "2026-10-25"])
def test_every_second_through_the_turn_of_the_clock(day: str) -> None:
    begin = at(f"{day}T00:55:00+00:00")
    expected = [begin + second * US_PER_S for second in range(600)]
    times = Times(Cron("* * * * * *", "Europe/Berlin"))
    assert times_between(times, begin, begin + 600 * US_PER_S) == expected
    assert list(islice(times.back_from(expected[-1]), 600)) == expected[::-1]


@settings(deadline=None, max_examples=30)
@given(expressions, st.sampled_from(ZONES), st.sampled_from(TURNS))
def test_forward_and_backward_agree_with_a_walk_through_every_minute(expression: str, zone: str, day: str) -> None:
    begin = at(f"{day}T00:00:00+00:00") - 36 * 3600 * US_PER_S
    end = begin + 96 * 3600 * US_PER_S
    times = Times(Cron(expression, zone))
    nominals = times_between(times, begin, end)
    assert nominals == expected_by_walking(expression, zone, begin, end)
    backwards = list(takewhile(lambda nominal: nominal >= begin, times.back_from(end - 1)))
    assert backwards == nominals[::-1]


@settings(deadline=None, max_examples=100)
@given(expressions, st.sampled_from(ZONES), st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1)))
def test_next_and_latest_are_neighbours(expression: str, zone: str, moment: datetime) -> None:
    times = Times(Cron(expression, zone))
    now = from_datetime(moment.replace(tzinfo=UTC))
    following, latest = times.next(now), times.latest(now)
    assert following is not None
    assert latest is not None
    assert latest <= now < following
    assert times.next(latest) == following
    assert times.latest(following - 1) == latest
    assert times.latest(following) == following


@functools.cache
def shown_by_clocks(zone: str, begin: Timestamp, end: Timestamp) -> Mapping[datetime, Sequence[Timestamp]]:
    """What clocks there show in each minute, and a little before and after, with the minutes in which they do."""
    shown: dict[datetime, list[Timestamp]] = {}
    margin = 3 * 3600 * US_PER_S
    for minute in range(begin - margin, end + margin, 60 * US_PER_S):
        local = to_datetime(minute).astimezone(ZoneInfo(zone)).replace(tzinfo=None, fold=0)
        shown.setdefault(local, []).append(minute)
    return shown


def expected_by_walking(expression: str, zone: str, begin: Timestamp, end: Timestamp) -> list[Timestamp]:
    """Another way to the same answer: every minute of UTC says what the clock shows, every minute of the calendar what
    it should show."""
    matches = Times(Cron(expression))  # read as if it were UTC, for what the calendar says
    every_hour = expression.split()[1] == "*"
    shown = shown_by_clocks(zone, begin, end)
    nominals: set[Timestamp] = set()
    first, last = min(shown), max(shown)
    for nominal in matches.after(from_datetime(first.replace(tzinfo=UTC)) - 1):
        local = to_datetime(nominal).replace(tzinfo=None)
        if local > last:
            break
        if local in shown:
            nominals.update(shown[local] if every_hour else shown[local][:1])
        elif not every_hour:
            while local not in shown:
                local += timedelta(minutes=1)
            nominals.add(shown[local][0])
    return sorted(nominal for nominal in nominals if begin <= nominal < end)


@given(st.integers(US_PER_S, 10**13), st.integers(1, 2 * 10**15), st.integers(1, 2 * 10**15))
def test_an_interval_counts_from_its_anchor(interval_us: int, anchor: Timestamp, now: Timestamp) -> None:
    times = Interval(interval_us, anchor)
    following, latest = times.next(now), times.latest(now)
    assert following is not None
    assert latest is not None
    assert latest <= now < following == latest + interval_us
    assert (following - anchor) % interval_us == 0


def test_start_and_end_bound_the_times() -> None:
    times = Times(Cron("0 6 * * *"), start_at=at("2026-01-02T06:00:00+00:00"), end_at=at("2026-01-04T06:00:00+00:00"))
    assert [utc(nominal) for nominal in times.after(0)] == ["01-02 06:00:00", "01-03 06:00:00"]
    assert [utc(nominal) for nominal in times.back_from(at("2030-01-01T00:00:00+00:00"))] == [
        "01-03 06:00:00",
        "01-02 06:00:00",
    ]


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("", "5"),
        ("* * * *", "4 fields"),
        ("* * * * * * *", "7 fields"),
        ("61 * * * *", "Bad minute"),
        ("0 0 30 2 *", "Bad day-of-month"),
        ("0 0 31 2,4 *", "Bad day-of-month"),
        ("0 25 * * *", "Bad hour"),
        ("* * * * FUNDAY", "Bad day-of-week"),
        ("*/0 * * * *", "Bad minute"),
        ("0 0 * * " + "1," * 300 + "1", "256 bytes"),
    ],
)
def test_an_expression_that_is_none_is_refused_at_once(expression: str, says: str) -> None:
    with pytest.raises(InvalidArgument, match=says) as refused:
        Cron(expression)
    assert refused.value.field == "cron_expr"


@pytest.mark.parametrize("zone", ["Europe", "Europe/Atlantis", "../../etc/passwd", "\0", "UTC+1 "])
def test_a_zone_that_is_none_is_refused(zone: str) -> None:
    with pytest.raises(InvalidArgument, match="time zone"):
        Cron("* * * * *", zone)


def test_an_interval_under_a_second_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="minimum is 1s"):
        Interval(999_999, 0)


def test_a_rare_day_matches_and_the_end_of_the_calendar_is_not_an_error() -> None:
    leap = Times(Cron("0 0 29 2 *", "Europe/Berlin"))
    assert utc(leap.next(at("2097-01-01T00:00:00+00:00")) or 0) == "02-28 23:00:00"
    assert Cron("0 0 1 1 *").next(at("9500-01-01T00:00:00+00:00")) is None


# --- the search -------------------------------------------------------------------------------------------------------

_rare_days = st.sampled_from(["*", "29", "30,31", "L", "LW", "1", "*/31", "*/10"])
_rare_months = st.sampled_from(["*", "2", "2,4", "12", "*/5", "6-7"])
_rare_weekdays = st.sampled_from(["*", "MON", "0#5", "MON#5", "7L", "*/3"])


@given(
    st.sampled_from(["0", "*/7", "30,31", "*"]),
    minute_fields,
    hour_fields,
    st.tuples(_rare_days, _rare_months, _rare_weekdays),
    st.datetimes(datetime(1990, 1, 1), datetime(2120, 1, 1)),
)
@settings(max_examples=300, deadline=None)
def test_the_search_finds_what_the_simulation_walks_to(
    second: str, minute: str, hour: str, days: tuple[str, str, str], since: datetime
) -> None:
    expression = f"{second} {minute} {hour} {' '.join(days)}"
    since = since.replace(microsecond=0)
    try:
        forwards = CronSim(expression, since)
        backwards = CronSim(expression, since + timedelta(seconds=1), reverse=True)
    except CronSimError:
        return
    search = Search(forwards)
    assert search.after(since) == next(forwards, None)
    assert search.until(since) == next(backwards, None)


@pytest.mark.parametrize(
    ("expression", "most_steps_a_time"),
    [
        ("* * * * *", 3),
        ("0 0 29 2 *", 20),
        ("0 0 31 * *", 5),
        ("0 0 1 1 *", 5),
        ("0 0 * 2 MON#5", 41 * 30),  # years pass between two of them, of which only Februaries are looked at
    ],
)
def test_years_in_which_nothing_matches_cost_a_few_steps(expression: str, most_steps_a_time: int) -> None:
    cron = Cron(expression)
    before = cron.steps
    nominals = list(islice(Times(cron).after(at("2026-01-01T00:00:00+00:00")), 50))
    assert len(nominals) == 50
    assert cron.steps - before <= 50 * most_steps_a_time

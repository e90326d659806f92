"""Points in time are whole microseconds; a datetime without a zone is refused."""

from datetime import UTC, datetime, timedelta, timezone, tzinfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kagzi.core.errors import InvalidArgument
from kagzi.core.times import from_datetime, to_datetime, us_from_timedelta

zones = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
moments = st.datetimes(min_value=datetime(1900, 1, 2), max_value=datetime(2200, 1, 1), timezones=zones)


class Nowhere(tzinfo):
    """A zone object that does not know its offset: to Python such a datetime is naive too."""

    def utcoffset(self, _moment: datetime | None) -> None:
        return None


@given(moments)
def test_a_moment_is_the_same_in_every_zone_to_the_microsecond(moment: datetime) -> None:
    at = from_datetime(moment)
    assert to_datetime(at) == moment
    assert at == from_datetime(moment.astimezone(UTC))
    assert to_datetime(at).tzinfo is UTC


@pytest.mark.parametrize("moment", [datetime(2026, 3, 29, 2, 30), datetime(2026, 3, 29, 2, 30, tzinfo=Nowhere())])
def test_a_naive_datetime_is_refused_with_the_remedy(moment: datetime) -> None:
    with pytest.raises(InvalidArgument, match="has no time zone") as refused:
        from_datetime(moment, what="start_at")
    assert refused.value.field == "start_at"
    assert "start_at='2026-03-29T02:30:00'" in str(refused.value)
    assert "tzinfo=UTC" in str(refused.value)


@given(st.timedeltas())
def test_a_span_is_counted_in_whole_microseconds(span: timedelta) -> None:
    assert timedelta(microseconds=us_from_timedelta(span)) == span

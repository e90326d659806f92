"""Durations are written as people write them, and a number without a unit is refused with the remedy."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kagzi.core.duration import format_duration, parse_duration
from kagzi.core.error_details import ErrorCode
from kagzi.core.errors import InvalidArgument

CENTURY = timedelta(days=36_600)
UNITS = {
    "ns nsec nanos nanosecond nanoseconds": None,  # rounds up to a microsecond
    "us usec usecs µs microsecond microseconds": timedelta(microseconds=1),
    "ms msec msecs millis millisecond milliseconds": timedelta(milliseconds=1),
    "s sec secs second seconds": timedelta(seconds=1),
    "m min mins minute minutes": timedelta(minutes=1),
    "h hr hrs hour hours": timedelta(hours=1),
    "d day days": timedelta(days=1),
    "w wk wks week weeks": timedelta(weeks=1),
    "M month months": timedelta(days=30.44),
    "y yr yrs year years": timedelta(days=365.25),
}
NAMES = [(name, size) for names, size in UNITS.items() for name in names.split() if size is not None]

durations = st.timedeltas(min_value=timedelta(0), max_value=CENTURY)


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("30s", timedelta(seconds=30)),
        ("30sec", timedelta(seconds=30)),
        ("30 seconds", timedelta(seconds=30)),
        ("5m", timedelta(minutes=5)),
        ("5min", timedelta(minutes=5)),
        ("5 minutes", timedelta(minutes=5)),
        ("2h", timedelta(hours=2)),
        ("2hr", timedelta(hours=2)),
        ("2 hours", timedelta(hours=2)),
        ("1d", timedelta(days=1)),
        ("1 day", timedelta(days=1)),
        ("1 days", timedelta(days=1)),
        ("1w", timedelta(weeks=1)),
        ("1 week", timedelta(weeks=1)),
        ("2 weeks", timedelta(weeks=2)),
        ("1h 30m", timedelta(hours=1, minutes=30)),
        ("1 day 12 hours", timedelta(days=1, hours=12)),
        ("5m 30s", timedelta(minutes=5, seconds=30)),
        ("1h30m", timedelta(hours=1, minutes=30)),
        ("1.5h", timedelta(minutes=90)),
        ("  250 ms ", timedelta(milliseconds=250)),
        ("1 hour, 5 minutes", timedelta(hours=1, minutes=5)),
        ("0s", timedelta(0)),
    ],
)
def test_the_forms_people_write(text: str, meaning: timedelta) -> None:
    assert parse_duration(text) == meaning


@pytest.mark.parametrize(("name", "size"), NAMES)
@pytest.mark.parametrize("space", ["", " "])
def test_every_unit_by_every_name(name: str, size: timedelta, space: str) -> None:
    assert parse_duration(f"3{space}{name}") == 3 * size


def test_minutes_and_months_differ_by_case_only_where_the_unit_is_one_character() -> None:
    assert parse_duration("1m") == timedelta(minutes=1)
    assert parse_duration("1M") == timedelta(days=30.44)
    assert parse_duration("1 Min") == timedelta(minutes=1)
    assert parse_duration("1 Month") == timedelta(days=30.44)


@pytest.mark.parametrize("name", ["ns", "nsec", "nanosecond", "nanoseconds"])
def test_less_than_a_microsecond_rounds_up_and_never_to_nothing(name: str) -> None:
    assert parse_duration(f"1{name}") == timedelta(microseconds=1)
    assert parse_duration(f"1001 {name}") == timedelta(microseconds=2)
    assert parse_duration("0.0000001s") == timedelta(microseconds=1)


@given(durations)
def test_what_is_formatted_is_read_back_exactly(duration: timedelta) -> None:
    assert parse_duration(format_duration(duration)) == duration


@given(durations)
def test_a_timedelta_is_taken_as_it_is(duration: timedelta) -> None:
    assert parse_duration(duration) == duration


@given(
    st.lists(st.tuples(st.integers(0, 1_000), st.sampled_from(NAMES)), min_size=1, max_size=4),
    st.sampled_from(["", " ", ", "]),
)
def test_parts_add_up(parts: list[tuple[int, tuple[str, timedelta]]], between: str) -> None:
    text = between.join(f"{count} {name}" for count, (name, _) in parts)
    expected = sum((count * size for count, (_, size) in parts), timedelta(0))
    if expected <= CENTURY:
        assert parse_duration(text) == expected
    else:
        with pytest.raises(InvalidArgument, match="100 years"):
            parse_duration(text)


@pytest.mark.parametrize("value", [30, 2.5, 0, "30", " 30 ", "1.5", "-3", "0"])
def test_a_bare_number_is_refused_with_the_remedy(value: object) -> None:
    with pytest.raises(InvalidArgument, match="has no unit") as refused:
        parse_duration(value, what="timeout")  # type: ignore[arg-type]
    assert refused.value.field == "timeout"
    assert refused.value.code == ErrorCode.INVALID_ARGUMENT
    assert str(refused.value).startswith("timeout=")
    assert f'Write "{str(value).strip()}s"' in str(refused.value)


@pytest.mark.parametrize(
    "value", ["", " ", "soon", "s", "5 parsecs", "30s!", "1h 30", "-5s", "5s -1s", "1e3s", ",", "٣", None, True, b"30s"]
)
def test_what_is_no_duration_is_refused_and_named(value: object) -> None:
    with pytest.raises(InvalidArgument) as refused:
        parse_duration(value, what="delay")  # type: ignore[arg-type]
    assert "delay=" in str(refused.value)
    assert refused.value.field == "delay"


@pytest.mark.parametrize("value", [timedelta(microseconds=-1), timedelta(days=-1)])
def test_time_does_not_run_backwards(value: timedelta) -> None:
    with pytest.raises(InvalidArgument, match="negative"):
        parse_duration(value)


@pytest.mark.parametrize("value", ["101 years", "9" * 30 + "s", "9" * 5_000 + "d", CENTURY + timedelta(microseconds=1)])
def test_a_century_is_enough(value: str | timedelta) -> None:
    with pytest.raises(InvalidArgument, match="100 years"):
        parse_duration(value)


@given(st.text(max_size=30) | st.from_regex(r"[0-9 .,\-a-zA-Zµ]{0,20}"))
def test_any_text_is_a_duration_or_is_refused(text: str) -> None:
    try:
        duration = parse_duration(text)
    except InvalidArgument:
        return
    assert timedelta(0) <= duration <= CENTURY

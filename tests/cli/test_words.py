"""What people read: spans and times, numbers with nouns, and refusals in the words of the command."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import click
import pytest

from kagzi.cli.main import kagzi
from kagzi.cli.option_names import in_options
from kagzi.cli.options import Kebab
from kagzi.cli.runs.tail import event_day, event_line
from kagzi.cli.times import age_text, local_text, span_text, took_text, with_local_times
from kagzi.core.text.plurals import counted

NOON = datetime(2026, 11, 16, 12, 0, 0, tzinfo=UTC)


@pytest.fixture
def in_berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "Europe/Berlin")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0ms"),
        (0.0004, "0ms"),
        (0.0146, "15ms"),
        (0.9994, "999ms"),
        (0.9996, "1.0s"),
        (1.66, "1.7s"),
        (9.94, "9.9s"),
        (9.96, "10s"),
        (59.4, "59s"),
        (59.6, "1m"),
        (90.5, "1m 30s"),
        (3_599.6, "1h"),
        (3_600 + 59 * 60 + 31, "2h"),
        (86_399, "1d"),
        (2 * 86_400 + 3 * 3_600 + 1_801, "2d 4h"),
    ],
)
def test_a_span_is_rounded(seconds: float, text: str) -> None:
    assert span_text(timedelta(seconds=seconds)) == text
    assert took_text(NOON, NOON + timedelta(seconds=seconds)) == text


def test_an_age_is_what_has_passed() -> None:
    assert age_text(NOON - timedelta(seconds=3.9), NOON) == "3s ago"
    assert age_text("2026-11-16T10:00:00.000000Z", NOON) == "2h ago"
    assert age_text(NOON + timedelta(seconds=59.9), NOON) == "in 1m"
    assert age_text(None, NOON) == ""


@pytest.mark.usefixtures("in_berlin")
def test_times_are_local_and_say_so() -> None:
    assert local_text("2026-11-16T23:30:00.500000Z") == "2026-11-17 00:30:00+01:00"
    assert local_text(datetime(2026, 7, 1, 12, tzinfo=UTC)) == "2026-07-01 14:00:00+02:00"
    assert local_text(None) == ""
    event = {"kind": "step_started", "at": "2026-11-16T23:30:00.123456Z", "step": "pay"}
    assert event_day(event) == "2026-11-17 UTC+01:00"
    assert click.unstyle(event_line(event)) == "00:30:00.123  step started      pay"


@pytest.mark.usefixtures("in_berlin")
def test_times_in_a_text_of_the_server_are_local() -> None:
    text = "It sleeps until 2026-11-16T23:30:00.500Z, in step 2026-11-16."
    assert with_local_times(text) == "It sleeps until 2026-11-17 00:30:00+01:00, in step 2026-11-16."


def test_numbers_and_nouns() -> None:
    assert [counted(count, "run") for count in (0, 1, 2)] == ["0 runs", "1 run", "2 runs"]
    assert counted(1, "run", capped=True) == "1+ runs"


@pytest.mark.parametrize(
    ("command", "message", "text"),
    [
        (("workflows", "limit"), "max_running=0 is outside 1..9.", "--max-running 0 is outside 1..9."),
        (("workflows", "limit"), "starts_per_second_per_key=-1 is bad", "--per-key-rate -1 is bad"),
        (("workflows", "limit"), "type 'max_running' is full", "type 'max_running' is full"),
        (("schedule", "create"), "cron_expr and max_catchup", "--cron and --catchup"),
        (("schedule", "create"), "timezone='Mars' is unknown", "--timezone 'Mars' is unknown"),
        (("schedule", "create"), "version 3 of echo is deprecated", "version 3 of echo is deprecated"),
        (("start",), "workflow_id 'a' is taken, workflow_type='b'", "--id 'a' is taken, WORKFLOW 'b'"),
        (("namespaces", "create"), "limits.sessions=-1 is outside 0..9", "--max-sessions -1 is outside 0..9"),
        (("get",), "max_running=0 is outside", "max_running=0 is outside"),
    ],
)
def test_a_refusal_names_options(command: tuple[str, ...], message: str, text: str) -> None:
    target: click.Command | None = kagzi
    for word in command:
        assert isinstance(target, click.Group)
        target = target.get_command(click.Context(kagzi), word)
    assert in_options(message, target) == text


def test_a_refused_field_is_named_as_an_option_even_if_it_is_an_ordinary_word() -> None:
    schedule = kagzi.get_command(click.Context(kagzi), "schedule")
    assert isinstance(schedule, click.Group)
    text = "timezone is given with an interval. Leave it out, or use cron_expr."
    shown = in_options(text, schedule.commands["update"], "timezone")
    assert shown == "--timezone is given with an interval. Leave it out, or use --cron."


def test_choices_are_kebab_case_and_underscores_are_accepted() -> None:
    choice = Kebab(["allow", "buffer_one"])
    assert [choice.convert(text, None, None) for text in ("allow", "buffer-one", "buffer_one")] == [
        "allow",
        "buffer_one",
        "buffer_one",
    ]
    with pytest.raises(click.BadParameter, match="'never' is not one of allow, buffer-one"):
        choice.convert("never", None, None)

"""Changes of a schedule: what saying one thing about it means for the others."""

import pytest

from kagzi.core.errors import InvalidArgument
from kagzi.core.schedules.changes import changed, changed_spec
from kagzi.core.schedules.schedule import ScheduleRecord, ScheduleSpec

DAILY = ScheduleSpec(workflow_type="report", cron_expr="0 6 * * *", timezone="Europe/Berlin", priority=3)
PAUSED = ScheduleRecord(namespace="n", schedule_id="s", spec=DAILY, enabled=False, paused_reason="holidays")


def test_what_is_not_named_stays() -> None:
    assert changed_spec(DAILY, {}) == DAILY
    assert changed_spec(DAILY, {"priority": 5}) == ScheduleSpec(
        workflow_type="report", cron_expr="0 6 * * *", timezone="Europe/Berlin", priority=5
    )


def test_an_interval_takes_the_place_of_a_cron_expression_and_its_zone() -> None:
    every = changed_spec(DAILY, {"interval_us": 60_000_000})
    assert (every.cron_expr, every.timezone, every.interval_us) == ("", "", 60_000_000)
    back = changed_spec(every, {"cron_expr": "0 7 * * *"})
    assert (back.cron_expr, back.timezone, back.interval_us) == ("0 7 * * *", "", None)


def test_a_zone_that_is_given_with_an_interval_is_not_forgotten_but_left_to_be_refused() -> None:
    assert changed_spec(DAILY, {"interval_us": 60_000_000, "timezone": "Asia/Tokyo"}).timezone == "Asia/Tokyo"


def test_both_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="Give one") as refusal:
        changed_spec(DAILY, {"cron_expr": "0 7 * * *", "interval_us": 60_000_000})
    assert refusal.value.field == "interval"


def test_the_reason_of_a_pause_is_that_of_one_pause() -> None:
    assert changed(PAUSED, {}, enabled=None) == PAUSED
    assert changed(PAUSED, {}, enabled=False).paused_reason == "holidays"
    resumed = changed(PAUSED, {"priority": 1}, enabled=True)
    assert (resumed.enabled, resumed.paused_reason, resumed.spec.priority) == (True, "", 1)
    assert changed(resumed, {}, enabled=False).paused_reason == ""

"""Times have a zone, and it is the one that was chosen."""

import json
import re

import pytest
from playwright.sync_api import Page, expect

from tests.web.conftest import NewPage
from tests.web.dashboard import Dashboard

RELATIVE = re.compile(r"^(now|in .+|.+ ago)$")
UTC_TITLE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
SCHEDULE = {"workflow": "hello", "cron": "30 2 * * *", "timezone": "Europe/Berlin", "input": "x"}


def _choose(page: Page, zone: str) -> None:
    page.add_init_script(f"localStorage.setItem('kagzi.prefs', {json.dumps(json.dumps({'zone': zone}))})")


@pytest.mark.parametrize(
    ("zone", "named"),
    [("local", r"(CET|CEST)"), ("utc", "UTC"), ("America/New_York", r"(EST|EDT)")],
)
def test_28_every_time_has_its_zone_and_follows_the_setting(
    dashboard: Dashboard, new_page: NewPage, zone: str, named: str
) -> None:
    run_id = dashboard.start("hello", "zones")
    dashboard.ended(run_id)
    dashboard.api.put("/schedules/zones", json=SCHEDULE)
    worker = dashboard.get("/workers")["rows"][0]["worker_id"]
    page = new_page(timezone_id="Europe/Berlin")
    _choose(page, zone)
    absolute = 0
    for path in (f"workers/{worker}", "schedules/zones", "settings?tab=server", "runs", f"runs/{run_id}?view=history"):
        page.goto(f"{dashboard.url}{path}")
        expect(page.locator("main time").first).to_be_visible()
        for time in page.locator("main time").all():
            text, title = time.inner_text(), time.get_attribute("title") or ""
            assert UTC_TITLE.search(title), f"{path}: hovering over {text} does not give UTC but {title}"
            if RELATIVE.fullmatch(text.strip()):
                assert re.search(rf" {named}", title), f"{path}: {title} is not in {zone}"
                continue
            absolute += 1
            assert re.search(rf" {named}$", text), f"{path}: {text} is not in {zone}"
    assert absolute >= 8
    page.goto(f"{dashboard.url}runs/{run_id}")
    tick = page.locator(".tick").first
    expect(tick).to_be_visible()
    assert re.search(rf" {named}", tick.get_attribute("title") or "")


def test_28_the_times_of_a_schedule_are_right_across_a_change_of_clocks(
    dashboard: Dashboard, new_page: NewPage
) -> None:
    dashboard.api.put("/schedules/clocks", json=SCHEDULE)
    page = new_page(timezone_id="Europe/Berlin")
    page.goto(f"{dashboard.url}schedules/clocks")
    page.get_by_role("button", name="More").click()
    page.get_by_role("menuitem", name="Backfill").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("From").fill("2026-03-28T00:00")
    dialog.get_by_label("Until").fill("2026-03-31T00:00")
    expect(dialog).to_contain_text("3 times")
    times = [text.split(" ", 1)[1] for text in dialog.get_by_role("listitem").all_inner_texts()]
    assert times == ["2026-03-28 02:30:00 CET", "2026-03-29 03:00:00 CEST", "2026-03-30 02:30:00 CEST"]

"""The page of a run that was retried: the steps that the retries discarded."""

import re

from playwright.sync_api import Page, expect

from tests.web.conftest import NewPage
from tests.web.dashboard import Dashboard
from tests.web.run_page import box, open_run, parts, row


def _retries(dashboard: Dashboard, run_id: str) -> list[str]:
    """The keys of their groups, latest first."""
    return [f"before:{each['retry_seq']}" for each in dashboard.get(f"/runs/{run_id}/timeline")["retries"]]


def test_what_a_retry_discarded_is_folded_and_loaded_on_demand(each_dashboard: Dashboard, page: Page) -> None:
    run_id = each_dashboard.retried(1)
    (key,) = _retries(each_dashboard, run_id)
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url) if "forgotten=1" in request.url else None)
    open_run(page, each_dashboard, run_id)
    group = row(page, key)
    expect(group).to_have_attribute("aria-expanded", "false")
    expect(group).to_have_attribute("aria-label", "before the retry, 2 steps")
    expect(page.locator(".timeline-count")).to_have_text("2 steps")  # of the run as it is now
    expect(page.locator(".timeline-row.is-discarded")).to_have_count(1)
    expect(page.locator(".axis-mark-retry")).to_have_count(1)
    assert requests == []
    group.click()
    expect(group).to_have_attribute("aria-expanded", "true")
    settle, refund = row(page, f"{key}:settle"), row(page, f"{key}:refund")
    expect(settle).to_have_attribute("data-state", "failed")
    expect(settle).to_have_attribute("aria-level", "2")
    expect(refund).to_have_attribute("aria-label", re.compile("^refund, completed"))
    expect(page.locator(".timeline-count")).to_have_text("2 steps")
    expect(row(page, "settle")).to_have_attribute("data-state", "completed")
    assert len(requests) == 1
    # what was discarded is drawn before what replaced it
    before, now = (box(parts(page, each).last) for each in (f"{key}:settle", "settle"))
    assert before["x"] + before["width"] <= now["x"] + 1
    assert parts(page, f"{key}:settle").last.evaluate("bar => getComputedStyle(bar).opacity") == "0.6"


def test_a_discarded_step_has_its_own_result_and_address(dashboard: Dashboard, page: Page, new_page: NewPage) -> None:
    run_id = dashboard.retried(1)
    (key,) = _retries(dashboard, run_id)
    open_run(page, dashboard, run_id, f"?row={key}")
    row(page, f"{key}:refund").click()
    inspector = page.locator(".inspector")
    expect(inspector).to_contain_text("refunded")
    expect(inspector).to_contain_text("discarded by the retry of")
    expect(inspector.get_by_role("button", name="Rerun from here…")).to_have_count(0)
    row(page, f"{key}:settle").click()
    expect(inspector).to_contain_text("refusal 1")
    row(page, "settle").click()
    expect(inspector).to_contain_text("settled")
    expect(inspector.get_by_role("button", name="Rerun from here…")).to_be_visible()
    page.go_back()
    expect(row(page, f"{key}:settle")).to_have_attribute("aria-selected", "true")
    expect(inspector).to_contain_text("refusal 1")
    other = new_page()
    other.goto(page.url)
    expect(other.locator(".inspector")).to_contain_text("refusal 1")
    expect(row(other, f"{key}:settle")).to_have_attribute("aria-selected", "true")


def test_each_retry_has_a_group_latest_first_and_keys_open_it(dashboard: Dashboard, page: Page) -> None:
    run_id = dashboard.retried(2)
    latest, first = _retries(dashboard, run_id)
    timeline = open_run(page, dashboard, run_id)
    groups = page.locator("[role=row][data-key^=before]")
    expect(groups).to_have_count(2)
    expect(groups.first).to_have_attribute("data-key", latest)
    expect(groups.first).to_have_attribute("aria-label", re.compile(r"^before retry \d\d:\d\d:\d\d, 2 steps$"))
    row(page, latest).focus()
    page.keyboard.press("ArrowRight")
    expect(row(page, f"{latest}:refund")).to_be_visible()
    expect(timeline).to_have_attribute("aria-rowcount", "7")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(row(page, first)).to_be_focused()
    page.keyboard.press("Enter")
    expect(row(page, f"{first}:settle")).to_be_visible()
    row(page, f"{first}:settle").click()
    expect(page.locator(".inspector")).to_contain_text("refusal 1")
    row(page, f"{latest}:settle").click()
    expect(page.locator(".inspector")).to_contain_text("refusal 2")
    page.keyboard.press("ArrowLeft")
    expect(row(page, latest)).to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(row(page, f"{latest}:settle")).to_have_count(0)


def test_a_retry_that_is_made_on_the_page_is_there_without_a_reload(dashboard: Dashboard, page: Page) -> None:
    run_id = dashboard.start("unlucky", 1)
    dashboard.reached(run_id, {"status": "failed"})
    open_run(page, dashboard, run_id)
    expect(row(page, "refund")).to_have_attribute("data-state", "completed")
    expect(page.locator("[role=row][data-key^=before]")).to_have_count(0)
    assert dashboard.api.post(f"/runs/{run_id}/retry", json={}).is_success
    dashboard.reached(run_id, {"status": "completed"})
    page.bring_to_front()
    expect(page.locator(".run-state")).to_have_text("completed")
    group = page.locator("[role=row][data-key^=before]")
    expect(group).to_have_count(1)
    group.click()
    expect(page.locator("[role=row][data-key$=':refund']")).to_be_visible()
    expect(row(page, "refund")).to_have_count(0)

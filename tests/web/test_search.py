"""The search box of the page of runs, and what its list shows."""

import re

from playwright.sync_api import Page, expect

from tests.web.dashboard import Dashboard
from tests.web.test_runs import namespace_of, row, start_many
from tests.web.watching import Problems


def test_a_word_that_is_being_typed_is_completed_and_not_an_error(dashboard: Dashboard, page: Page) -> None:
    namespace = namespace_of(dashboard, "search")
    first, second = start_many(dashboard, namespace, [{"workflow": "order"}, {"workflow": "delivery"}])
    dashboard.api.post(f"/runs/{first}/terminate", params={"namespace": namespace}, json={})
    page.goto(f"{dashboard.url}runs?namespace={namespace}")
    box = page.get_by_role("combobox", name="Search runs")
    box.press_sequentially("colour:red status:canc")
    expect(page.locator(".field-error")).to_have_text(re.compile("^colour:red"))  # and not the word that is typed
    box.fill("status:canc")
    suggestions = page.get_by_role("listbox", name="Suggestions")
    expect(suggestions.get_by_role("option")).to_have_text(["status:cancelled "])
    box.press("Enter")
    expect(box).to_have_value("status:cancelled")
    expect(row(page, first)).to_be_visible()
    expect(row(page, second)).to_have_count(0)
    box.fill("work")
    box.press("ArrowDown")
    box.press("Enter")
    box.press_sequentially("deli")
    expect(suggestions.get_by_role("option")).to_have_count(0)  # no worker has registered the type
    box.press_sequentially("very")
    expect(row(page, second)).to_be_visible()
    expect(page.locator(".strip-totals")).to_contain_text("of delivery")


def test_several_words_are_one_error_and_the_list_stays(dashboard: Dashboard, page: Page) -> None:
    namespace = namespace_of(dashboard, "words")
    [run_id] = start_many(dashboard, namespace, [{"workflow": "order"}])
    page.goto(f"{dashboard.url}runs?namespace={namespace}")
    box = page.get_by_role("combobox", name="Search runs")
    box.fill("no price for item")
    box.press("Enter")
    expect(page.locator(".field-error")).to_have_count(1)
    expect(page.locator(".field-error")).to_contain_text("one run id or workflow id")
    expect(row(page, run_id)).to_be_visible()


def test_the_start_page_keeps_the_filter(dashboard: Dashboard, page: Page) -> None:
    page.goto(f"{dashboard.url}?status=failed")
    expect(page).to_have_url(re.compile(r"/runs\?status=failed$"))


def test_an_id_without_a_workflow_id_shows_its_end(dashboard: Dashboard, page: Page) -> None:
    namespace = namespace_of(dashboard, "ids")
    [run_id] = start_many(dashboard, namespace, [{"workflow": "order"}])
    page.set_viewport_size({"width": 1000, "height": 700})
    page.goto(f"{dashboard.url}runs?namespace={namespace}")
    link = row(page, run_id).locator(".runs-link")
    expect(link).to_have_text(run_id)
    end = link.locator(".short-id > :last-child")
    expect(end).to_have_text(run_id[-8:])
    assert end.evaluate("end => end.getBoundingClientRect().right <= end.closest('td').getBoundingClientRect().right")


def test_columns_that_say_the_same_of_all_rows_are_hidden(dashboard: Dashboard, page: Page) -> None:
    namespace = namespace_of(dashboard, "columns")
    start_many(dashboard, namespace, [{"workflow": "order", "version": "1"}])
    page.goto(f"{dashboard.url}runs?namespace={namespace}")
    expect(page.get_by_role("columnheader", name="Age", exact=True)).to_be_visible()
    expect(page.get_by_role("columnheader", name="Attempt")).to_have_count(0)
    expect(page.get_by_role("columnheader", name="Version")).to_have_count(0)
    start_many(dashboard, namespace, [{"workflow": "order", "version": "2"}])
    expect(page.get_by_role("columnheader", name="Version")).to_be_visible()


def test_an_unknown_page_has_the_frame_of_the_dashboard(dashboard: Dashboard, page: Page, problems: Problems) -> None:
    problems.allow("status of 404")
    answer = page.goto(f"{dashboard.url}nothing/here")
    assert answer is not None
    assert answer.status == 404
    expect(page.get_by_role("heading", name="Page not found")).to_be_visible()
    expect(page.get_by_role("navigation", name="Pages")).to_be_visible()


def test_the_navigation_stays_in_place(dashboard: Dashboard, page: Page) -> None:
    places = []
    for path in ("runs", "workflows", "settings"):
        page.goto(f"{dashboard.url}{path}")
        # before Inbox, whose count comes and goes with what other tests do
        link = page.get_by_role("navigation", name="Pages").get_by_role("link", name="Workers")
        expect(link).to_be_visible()
        bounds = link.bounding_box()
        assert bounds is not None
        places.append(bounds["x"])
    assert max(places) - min(places) < 0.5, places

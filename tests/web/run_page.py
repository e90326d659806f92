"""The page of a run, as tests look at it."""

import re

from playwright.sync_api import Locator, Page, expect

from tests.web.dashboard import Dashboard


def open_run(page: Page, dashboard: Dashboard, run_id: str, query: str = "") -> Locator:
    """The timeline of the run."""
    page.goto(f"{dashboard.url}runs/{run_id}{query}")
    timeline = page.get_by_role("treegrid", name="Steps")
    expect(timeline).to_be_visible()
    return timeline


def row(page: Page, key: str) -> Locator:
    return page.locator(f'[role=row][data-key="{key}"]')


def parts(page: Page, key: str, shape: str = "") -> Locator:
    return row(page, key).locator(f".seg-{shape}" if shape else ".seg")


def box(locator: Locator) -> dict[str, float]:
    bounds = locator.bounding_box()
    assert bounds is not None
    return {"x": bounds["x"], "y": bounds["y"], "width": bounds["width"], "height": bounds["height"]}


def loaded(page: Page) -> None:
    """All steps are there: the count of them has no plus."""
    expect(page.locator(".timeline-count")).to_have_text(re.compile(r"^[\d\u202f]+ steps?$"))


def in_dialog(page: Page, verb: str) -> None:
    """Does what the open dialog asks for."""
    page.get_by_role("dialog").get_by_role("button", name=verb, exact=True).click()
    expect(page.get_by_role("dialog")).to_have_count(0)

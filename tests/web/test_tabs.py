"""Several tabs of one browser: a browser opens six connections to a host, so that one stream has to do for all."""

import re

from playwright.sync_api import Page, expect

from tests.web.conftest import NewPage
from tests.web.dashboard import Dashboard, until

TABS = 8


def _open_streams(dashboard: Dashboard) -> int:
    text = dashboard.api.get(dashboard.url + "metrics").text
    gauge = re.search(r'kagzi_streams\{kind="events"\} (\d+)', text)
    assert gauge is not None
    return int(gauge[1])


def test_04_eight_tabs_load_and_show_a_failure_with_one_stream_open(dashboard: Dashboard, new_page: NewPage) -> None:
    first = new_page()
    address = f"{dashboard.url}runs?id_prefix=eight-tabs"
    pages: list[Page] = [first, *(first.context.new_page() for _ in range(TABS - 1))]
    for page in pages:  # each while the others are open
        page.goto(address)
        expect(page.get_by_role("navigation", name="Pages")).to_be_visible()
    until(lambda: _open_streams(dashboard), lambda streams: streams == 1)
    dashboard.start("broken", "no money", workflow_id="eight-tabs-1")
    for page in pages:
        expect(page.locator("main")).to_contain_text("eight-tabs-1")
        expect(page.locator("main")).to_contain_text("no money")
    assert _open_streams(dashboard) == 1
    pages[-1].close()  # the tab that has it
    dashboard.start("broken", "no patience", workflow_id="eight-tabs-2")
    for page in pages[:-1]:
        expect(page.locator("main")).to_contain_text("no patience")
    until(lambda: _open_streams(dashboard), lambda streams: streams == 1)

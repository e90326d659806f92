"""Which kinds of work exist, how they do, and starting one."""

import json
import re

import httpx
from playwright.sync_api import Locator, Page, expect

from tests.web.conftest import NewPage
from tests.web.dashboard import Dashboard
from tests.web.watching import Problems

ODD = '{"id": 1970670598291982290, "x": 0.2345678901234568, "a": 1, "a": 2}'
GUEST = "1970670598291982290"


def run_shown(page: Page) -> str:
    """The id of the run whose page was opened."""
    page.wait_for_url(re.compile(r"/runs/[0-9a-f-]{36}"))
    match = re.search(r"/runs/([0-9a-f-]{36})", page.url)
    assert match
    return match[1]


def box(within: Page | Locator, name: str) -> Locator:
    """The text field of that name."""
    return within.get_by_role("textbox", name=re.compile(rf"^{re.escape(name)}( \(required\))?$"))


def input_of(dashboard: Dashboard, run_id: str) -> str:
    answer = dashboard.api.get(f"/runs/{run_id}/input")
    assert answer.status_code == httpx.codes.OK, answer.text
    return answer.text


def test_15_json_is_started_without_a_changed_byte(each_dashboard: Dashboard, page: Page) -> None:
    page.goto(f"{each_dashboard.url}workflows/echo/start")
    editor = page.get_by_label("Input as JSON")
    editor.fill(ODD)
    page.get_by_text("As CLI, curl or Python").click()
    for language in ("CLI", "curl"):
        page.get_by_role("tab", name=language).click()
        expect(page.get_by_role("region", name=language)).to_contain_text(ODD)
    page.get_by_role("tab", name="Python").click()
    expect(page.get_by_role("region", name="Python")).to_contain_text(GUEST)
    page.get_by_role("button", name="Start", exact=True).click()
    assert input_of(each_dashboard, run_shown(page)) == ODD


def test_16_a_form_of_a_model_and_its_json_are_one_state(dashboard: Dashboard, page: Page) -> None:
    page.goto(f"{dashboard.url}workflows/trip/start")
    expect(page.get_by_text("Plans a trip.")).to_be_visible()
    start = page.get_by_role("button", name="Start", exact=True)
    guest = box(page, "guest_id")
    expect(guest).to_have_value("")
    expect(page.locator(".field-error", has_text="is required")).to_have_count(0)  # nobody is done yet
    start.click()
    expect(guest).to_be_focused()
    expect(guest).to_have_attribute("aria-invalid", "true")
    guest.fill("12x")
    expect(page.get_by_text("must be a whole number")).to_be_visible()
    guest.fill(GUEST)
    expect(page.get_by_text("must be a whole number")).to_have_count(0)
    page.get_by_label("arrival").fill("2026-12-24")
    page.get_by_label("bed").select_option("double")
    address = page.get_by_role("group", name="address")
    box(address, "street").fill("Kantstraße 1")
    address.get_by_label("country").select_option("FR")
    page.get_by_role("tab", name="invoice").click()
    days = box(page.get_by_role("group", name="pay"), "days")
    expect(days).to_have_value("30")
    days.fill("14")
    clear = page.get_by_role("button", name="Clear extras")
    expect(clear).to_have_count(0)  # there is nothing in it
    page.get_by_role("button", name="Add to extras").click()
    expect(clear).to_have_text("Clear")  # a sign alone below a list says nothing
    page.get_by_role("button", name="Remove value").click()
    expect(clear).to_have_count(0)
    page.get_by_role("button", name="Add to nights").click()
    box(page, "nights[0]").fill("99.50")
    page.get_by_role("tab", name="JSON").click()
    editor = page.get_by_label("Input as JSON")
    text = editor.input_value()
    assert f'"guest_id": {GUEST}' in text
    assert "99.50" in text
    assert "note" not in text
    editor.fill(text.replace('"days": 14', '"days": 15').replace("99.50", "99.50,\n    1e2"))
    page.get_by_role("tab", name="Form").click()
    expect(days).to_have_value("15")
    expect(box(page, "nights[1]")).to_have_value("1e2")
    expect(guest).to_have_value(GUEST)
    box(page, "note").fill("late")
    start.click()
    sent = input_of(dashboard, run_shown(page))
    assert f'"guest_id": {GUEST}' in sent
    assert "99.50" in sent
    assert "1e2" in sent
    assert json.loads(sent) == {
        "guest_id": int(GUEST),
        "arrival": "2026-12-24",
        "bed": "double",
        "address": {"street": "Kantstraße 1", "country": "FR"},
        "pay": {"kind": "invoice", "days": 15},
        "nights": [99.5, 100],
        "note": "late",
        "extras": {},
    }


def test_16_what_the_server_refuses_is_told_at_its_field(dashboard: Dashboard, page: Page, problems: Problems) -> None:
    problems.allow("status of 400")
    page.goto(f"{dashboard.url}workflows/order/start")
    page.get_by_role("tab", name="JSON").click()
    page.get_by_label("Input as JSON").fill('{"order_id": 1, "total": "much", "to": {"street": "x"}, "odd": [1.50]}')
    page.get_by_role("tab", name="Form").click()
    total = box(page, "total")
    expect(total).to_have_value('"much"')  # it does not fit, and is there all the same
    expect(box(page, "odd")).to_have_value("[1.50]")
    page.get_by_role("button", name="Start", exact=True).click()
    expect(page.get_by_text("must be a number")).to_be_visible()
    page.get_by_role("button", name="Start anyway").click()
    expect(page.locator(".field-error", has_text="expected number")).to_be_visible()
    expect(page.get_by_role("tab", name="Form")).to_be_visible()  # what was typed stays
    page.get_by_role("button", name="Reset total").click()
    box(page, "total").fill("9.50")
    page.get_by_role("button", name="Remove odd").click()
    page.get_by_role("button", name="Start", exact=True).click()
    assert dashboard.ended(run_shown(page))["output"] == 9.5


def test_a_start_that_is_clicked_twice_is_one_run(dashboard: Dashboard, page: Page) -> None:
    page.goto(f"{dashboard.url}workflows/hello/start")
    box(page, "input").fill("Ada")
    page.get_by_text("ID, labels, delay, version, priority").click()
    box(page, "Workflow id").fill("clicked-twice")
    page.get_by_role("button", name="Add a label").click()
    box(page, "Label").fill("team")
    box(page, "Value").fill("a")
    page.get_by_role("button", name="Start", exact=True).dblclick()
    run = dashboard.run(run_shown(page))
    assert run["workflow_id"] == "clicked-twice"
    assert run["labels"] == {"team": "a"}
    assert dashboard.ended(run["run_id"])["output"] == "Hello, Ada!"
    assert len(dashboard.get("/runs", id="clicked-twice")["rows"]) == 1


def test_types_are_listed_and_started_by_keys(dashboard: Dashboard, page: Page) -> None:
    dashboard.ended(dashboard.start("broken", "no money"))
    page.goto(f"{dashboard.url}workflows")
    row = page.get_by_role("row", name=re.compile("^broken"))
    expect(row.get_by_role("img")).to_have_attribute("aria-label", re.compile("started in 24 hours"))
    link = row.get_by_role("link", name="broken", exact=True)
    for _ in range(40):
        page.keyboard.press("j")
        if link.evaluate("link => link === document.activeElement"):
            break
    page.keyboard.press("s")
    page.wait_for_url("**/workflows/broken/start")
    page.go_back()
    page.goto(f"{dashboard.url}workflows/broken?tab=failures")
    failure = page.get_by_role("row", name=re.compile("NonRetryable"))
    expect(failure).to_contain_text("no money")


def test_a_type_is_paused_limited_and_resumed(dashboard: Dashboard, page: Page) -> None:
    page.goto(f"{dashboard.url}workflows/slow")
    page.get_by_role("button", name="Pause").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("New runs are accepted, but wait")
    page.keyboard.press("Escape")
    assert dashboard.get("/workflows/slow")["paused"] is False
    page.get_by_role("button", name="Pause").click()
    dialog.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
    assert dashboard.get("/workflows/slow")["paused"] is True
    page.get_by_role("button", name="Resume").click()
    dialog.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    page.get_by_role("button", name="Change").click()
    dialog.get_by_label("Concurrent runs", exact=True).fill("7")
    dialog.get_by_role("button", name="Save").click()
    expect(page.get_by_text("at most 7")).to_be_visible()
    assert dashboard.get("/workflows/slow")["max_running"] == 7


def test_nothing_scrolls_sideways_on_a_narrow_screen(dashboard: Dashboard, new_page: NewPage) -> None:
    page = new_page(viewport={"width": 320, "height": 640})
    page.goto(f"{dashboard.url}workflows/trip/start")
    expect(box(page, "guest_id")).to_be_visible()
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 320
    page.goto(f"{dashboard.url}workflows")
    expect(page.get_by_role("link", name="trip", exact=True)).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 320

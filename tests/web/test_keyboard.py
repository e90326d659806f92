"""The dashboard without a mouse."""

import pytest
from playwright.sync_api import Page, expect

from tests.web.dashboard import Dashboard

SECTIONS = {
    "r": "runs",
    "w": "workflows",
    "s": "schedules",
    "k": "workers",
    "i": "inbox",
    "o": "operations",
    ",": "settings",
}
FOCUS = """() => {
  const at = document.activeElement;
  if (!at || at === document.body) return null;
  const style = getComputedStyle(at);
  const box = at.getBoundingClientRect();
  return {
    name: at.tagName + "." + at.className + " " + (at.textContent || at.getAttribute("aria-label") || "").slice(0, 30),
    outlined: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1,
    size: Math.min(box.width, box.height),
    inline: style.display === "inline",
  };
}"""
MOST_STOPS = 40


def _at(page: Page, section: str) -> None:
    page.wait_for_url(f"**/{section}*")
    current = page.get_by_role("navigation", name="Pages").locator("[aria-current=page]")
    expect(current).to_contain_text(section.capitalize())


@pytest.fixture
def opened(dashboard: Dashboard, page: Page) -> Page:
    dashboard.ended(dashboard.start("hello", "keyboard"))
    page.goto(f"{dashboard.url}runs")
    expect(page.locator("main")).to_contain_text("hello")
    return page


def test_23_single_keys_open_every_page_and_can_be_switched_off(opened: Page) -> None:
    page = opened
    for key, section in SECTIONS.items():
        page.keyboard.type(f"g{key}")  # at once: the second key has 1.2 s to come
        _at(page, section)
    setting = page.get_by_role("checkbox", name="Single-key shortcuts")
    setting.focus()
    page.keyboard.press("Space")
    expect(setting).not_to_be_checked()
    page.locator("main").focus()
    page.keyboard.type("gr")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert "/settings" in page.url
    setting.focus()
    page.keyboard.press("Space")
    page.locator("main").focus()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_contain_text("Schedules")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_23_single_keys_do_nothing_while_somebody_types(opened: Page) -> None:
    page = opened
    page.keyboard.press("/")
    expect(page.locator("main input").first).to_be_focused()
    page.keyboard.type("gw?")
    assert page.url.split("?")[0].endswith("/runs")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_23_the_palette_finds_pages_types_and_runs(opened: Page, dashboard: Dashboard) -> None:
    page = opened
    run_id = dashboard.start("hello", "palette", workflow_id="palette-run")
    for text, target in (
        ("Schedules", "/schedules"),
        ("approval", "/workflows/approval"),
        ("palette-r", f"/runs/{run_id}"),
    ):
        page.keyboard.press("Control+k")
        field = page.get_by_role("dialog").get_by_role("combobox")
        expect(field).to_be_focused()
        page.keyboard.type(text)
        expect(page.get_by_role("listbox").get_by_role("option", selected=True)).to_contain_text(text)
        page.keyboard.press("Enter")
        page.wait_for_url(f"**{target}*")
        expect(page.get_by_role("dialog")).to_have_count(0)


def test_23_the_focus_is_always_visible(opened: Page, dashboard: Dashboard) -> None:
    page = opened
    for section in SECTIONS.values():
        page.goto(f"{dashboard.url}{section}")
        expect(page.locator("main :is(h1, h2, input, table)").first).to_be_visible()
        stops = 0
        for _ in range(MOST_STOPS):
            page.keyboard.press("Tab")
            focus = page.evaluate(FOCUS)
            if focus is None:
                break
            stops += 1
            assert focus["outlined"], f"{section}: {focus['name']} has the focus, and nothing shows it"
            assert focus["inline"] or focus["size"] >= 16, f"{section}: {focus['name']} is {focus['size']} px small"
        assert stops >= len(SECTIONS), f"{section}: the navigation alone has as many"


def test_23_a_dialog_is_opened_used_and_left_by_keyboard(opened: Page, dashboard: Dashboard) -> None:
    page = opened
    schedule = {"workflow": "hello", "cron": "0 6 * * *", "input": "you", "schedule": "by-keyboard"}
    assert dashboard.api.post("/schedules", json=schedule).status_code == 201
    page.goto(f"{dashboard.url}schedules/by-keyboard")
    pause = page.get_by_role("button", name="Pause…")
    pause.focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Pause by-keyboard?")
    expect(dialog).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(pause).to_be_focused()
    assert dashboard.get("/schedules/by-keyboard")["paused"] is False
    page.keyboard.press("Enter")
    dialog.get_by_label("Reason").focus()
    page.keyboard.type("holidays")
    page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    expect(page.locator("main")).to_contain_text("holidays")
    assert dashboard.get("/schedules/by-keyboard")["paused_reason"] == "holidays"

"""What can be seen: by contrast, with the colours of the system, enlarged, and on a narrow screen."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.web.conftest import NewPage
from tests.web.dashboard import Dashboard

TOKENS = Path(__file__).parents[2] / "web" / "src" / "styles" / "tokens.css"
GROUNDS = ("bg", "surface", "raised", "selected", "code")
STATES = (
    "pending",
    "running",
    "sleeping",
    "waiting",
    "retrying",
    "paused",
    "completed",
    "failed",
    "cancelled",
    "abandoned",
)
PATHS = ("runs", "workflows", "schedules", "workers", "inbox", "operations", "settings", "settings?tab=server", "login")
LIGHT, DARK_BY_SYSTEM, DARK_BY_CHOICE = 0, 1, 2


def _themes() -> list[dict[str, str]]:
    """The colours of each theme, in the order of the file."""
    blocks = re.findall(r"color-scheme: \w+;(.*?)\}", TOKENS.read_text(), re.DOTALL)
    return [dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block)) for block in blocks]


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(one: str, other: str) -> float:
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_25_dark_is_the_same_by_choice_and_by_the_system() -> None:
    themes = _themes()
    assert len(themes) == 3
    assert themes[DARK_BY_SYSTEM] == themes[DARK_BY_CHOICE]


@pytest.mark.parametrize(("theme", "on_tint", "primary"), [(LIGHT, 5.07, 6.28), (DARK_BY_CHOICE, 5.74, 8.43)])
def test_25_the_contrast_of_the_colours(theme: int, on_tint: float, primary: float) -> None:
    colours = _themes()[theme]

    def lowest(name: str, grounds: tuple[str, ...] = GROUNDS) -> float:
        return min(_contrast(colours[name], colours[ground]) for ground in grounds)

    assert lowest("text") >= 7
    assert lowest("text-dim") >= 5.5
    assert lowest("link") >= 4.5
    assert lowest("border-control", ("bg", "surface", "raised")) >= 3, "controls are on these"
    assert round(_contrast(colours["primary"], colours["on-primary"]), 2) >= primary
    for state in STATES:
        assert lowest(f"state-{state}") >= 4.5, state
        assert lowest(f"state-{state}-fill") >= 3, state
        assert round(_contrast(colours[f"state-{state}"], colours[f"state-{state}-tint"]), 2) >= on_tint, state


def _open(page: Page, dashboard: Dashboard, path: str) -> None:
    page.goto(f"{dashboard.url}{path}")
    expect(page.locator("main > :not(.skeleton)").first).to_be_visible()
    expect(page.locator("main .skeleton")).to_have_count(0)


@pytest.fixture
def full(dashboard: Dashboard) -> Dashboard:
    """With something to show."""
    dashboard.start("approval", 7)
    body = {"workflow": "hello", "cron": "0 6 * * *", "input": "x"}
    dashboard.api.put("/schedules/a-schedule-with-a-name-that-is-rather-long", json=body)
    return dashboard


@pytest.mark.parametrize("width", [320, 640], ids=["narrow", "enlarged"])
def test_25_nothing_scrolls_sideways(full: Dashboard, new_page: NewPage, width: int) -> None:
    """640 px are a screen of 1280 at 200 %."""
    page = new_page(viewport={"width": width, "height": 800})
    paths = (*PATHS, "schedules/a-schedule-with-a-name-that-is-rather-long")
    wide = {}
    for path in paths:
        _open(page, full, path)
        needed = page.evaluate("document.documentElement.scrollWidth")
        if needed > width:
            wide[path] = needed
    assert not wide


def test_25_the_colours_of_the_system_are_used(full: Dashboard, new_page: NewPage) -> None:
    page = new_page(forced_colors="active")
    for path in PATHS[:-1]:
        _open(page, full, path)
        current = page.get_by_role("navigation", name="Pages").locator("[aria-current=page]")
        assert current.evaluate("e => getComputedStyle(e).outlineStyle") == "solid", (
            "where one is, is not by colour alone"
        )
    page.goto(f"{full.url}runs")
    badge = page.locator("main .badge").first
    expect(badge).to_be_visible()
    assert badge.evaluate("e => getComputedStyle(e).borderTopStyle") == "solid"
    assert badge.locator("svg").evaluate("e => e.getBoundingClientRect().width") >= 10
    assert badge.inner_text().strip(), "a state has a word"

"""Values on the page of a run: as they are stored, also when they are edited; and two runs side by side."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.web.conftest import NewPage
from tests.web.dashboard import Dashboard
from tests.web.recorded import SECOND, Recorded, add
from tests.web.run_page import in_dialog, open_run, row
from tests.web.test_run_live import FLOWS

EXACT = '{"id": 1970670598291982290, "x": 0.2345678901234568, "a": 1, "a": 2}'


@pytest.fixture(scope="module")
def shop(dashboard: Dashboard) -> Iterator[Dashboard]:
    worker = dashboard.worker(flows=FLOWS)
    yield dashboard
    worker.close()


def test_15_a_value_keeps_every_byte(dashboard: Dashboard, new_page: NewPage) -> None:
    history = Recorded()
    history.step("read", 0, SECOND, output=EXACT)
    history.step("write", SECOND, 2 * SECOND)
    run_id = add(dashboard, history)
    page = new_page(permissions=["clipboard-read", "clipboard-write"])
    open_run(page, dashboard, run_id, "?step=read")
    shown = page.locator(".inspector .json")
    for text in ("1970670598291982290", "0.2345678901234568"):
        expect(shown).to_contain_text(text)
    assert shown.inner_text().count('"a"') == 2
    shown.get_by_role("button", name="Copy all").click()
    copied = page.evaluate("() => navigator.clipboard.readText()")
    assert copied == EXACT

    page.get_by_role("button", name="Edit output and fork…").click()
    editor = page.get_by_role("dialog").get_by_label("Output of read")
    expect(editor).to_have_value(EXACT)
    edited = EXACT.replace('"a": 2}', '"a": 3,  "big": 12345678901234567890.10}')
    editor.fill(edited)
    expect(page.get_by_role("dialog").locator(".diff-added")).not_to_have_count(0)
    in_dialog(page, "Fork")
    page.wait_for_url(re.compile(rf"/runs/(?!{run_id})"))
    forked = page.url.rpartition("/")[2]
    assert edited in dashboard.api.get(f"/runs/{forked}/step", params={"id": "read"}).text
    assert EXACT in dashboard.api.get(f"/runs/{run_id}/step", params={"id": "read"}).text


def test_15_what_is_not_json_is_not_sent(dashboard: Dashboard, page: Page) -> None:
    history = Recorded()
    history.step("read", 0, SECOND, output=EXACT)
    run_id = add(dashboard, history)
    open_run(page, dashboard, run_id, "?step=read")
    page.get_by_role("button", name="Edit output and fork…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Output of read").fill('{"a": 1,')
    expect(dialog.locator(".field-error").first).not_to_be_empty()
    expect(dialog.get_by_role("button", name="Fork", exact=True)).to_be_disabled()


def test_17_an_edited_output_is_kept_and_the_rest_runs_again(shop: Dashboard, page: Page) -> None:
    run_id = shop.start("priced", 7)
    shop.ended(run_id)
    open_run(page, shop, run_id, "?step=discount")
    page.get_by_role("button", name="Edit output and fork…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Output of discount").fill('{"percent": 20, "why": "summer"}')
    plan = dialog.locator(".fork-plan section")
    expect(plan.nth(0).locator("li")).to_have_text(["price", re.compile("discount.*edited")])
    expect(plan.nth(1).locator("li")).to_have_text(["total"])
    in_dialog(page, "Fork")
    page.wait_for_url(re.compile(rf"/runs/(?!{run_id})"))
    forked = page.url.rpartition("/")[2]
    shop.ended(forked)
    expect(row(page, "total")).to_have_attribute("data-state", "completed")
    old, new = (_steps_of(shop, each) for each in (run_id, forked))
    for kept in ("price", "discount"):
        assert new[kept]["finished_at"] == old[kept]["finished_at"]
    assert new["total"]["finished_at"] > old["total"]["finished_at"]
    expect(page.get_by_role("link", name=re.compile("^forked from"))).to_be_visible()
    page.get_by_role("link", name="compare with the original").click()
    expect(page.get_by_text("1 of 3 steps differ")).to_be_visible()
    expect(page.locator(".is-different")).to_have_attribute("data-step", "discount")
    page.get_by_role("button", name="discount").click()
    expect(page.locator(".diff-removed")).to_contain_text("10")
    expect(page.locator(".diff-added")).to_contain_text("20")


def test_a_run_shows_its_state_its_pause_and_its_build(shop: Dashboard, page: Page) -> None:
    run_id = shop.start("showing")
    shop.reached(run_id, {"awaits_signal": 1, "status": "sleeping"})
    open_run(page, shop, run_id)
    state = page.get_by_role("group", name="State", exact=True)
    expect(state).to_contain_text("tea")
    shop.signal(run_id, "more")
    expect(state).to_contain_text("cake")
    shop.reached(run_id, {"awaits_signal": 1, "status": "sleeping"})
    for verb, body in (("pause", {"reason": "look first"}), ("adopt", {"build_id": "repaired"})):
        assert shop.api.post(f"/runs/{run_id}/{verb}", json=body).status_code == 200
        if verb == "pause":
            expect(page.get_by_role("img", name="Paused: look first")).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("^Paused for .*: look first$"))).to_be_visible()
    expect(page.locator(".run-pinned")).to_have_text("pinned to build repaired")
    shop.api.post(f"/runs/{run_id}/terminate", json={})


def _steps_of(dashboard: Dashboard, run_id: str) -> dict[str, Any]:
    return {step["step_id"]: step for step in dashboard.get(f"/runs/{run_id}/timeline")["rows"]}

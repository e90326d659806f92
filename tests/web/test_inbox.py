"""The inbox: what waits for a person, answered in place."""

import time

from playwright.sync_api import Locator, Page, expect

from tests.web.conftest import NewPage
from tests.web.dashboard import Dashboard
from tests.web.measure import FULL

LOST_S = 2.0


def card(page: Page, run_id: str) -> Locator:
    return page.locator(f'[data-card^="{run_id} "]')


def focus_by_keys(page: Page, wanted: Locator) -> None:
    """Nothing but `j`, as many times as there are cards before it."""
    for _ in range(60):
        page.keyboard.press("j")
        if wanted.evaluate("card => card === document.activeElement"):
            return
    raise AssertionError("no key leads to the card")


def in_order(dashboard: Dashboard, workflow: str, *inputs: object) -> list[str]:
    """Runs of which each waits for longer than the next one: the inbox has them in this order."""
    run_ids: list[str] = []
    for each in inputs:
        run_ids.append(dashboard.start(workflow, each))
        dashboard.reached(run_ids[-1], {"awaits_signal": 1})
    return run_ids


def test_19_an_approval_is_answered_by_keyboard_and_others_lose_it(
    each_dashboard: Dashboard, new_page: NewPage
) -> None:
    run_id, other_id = in_order(each_dashboard, "approval", 250, 9)
    mine, theirs = new_page(), new_page()
    for page in (mine, theirs):
        page.goto(f"{each_dashboard.url}inbox")
        expect(card(page, run_id)).to_contain_text("waits for a person: 250 EUR")
        expect(card(page, run_id).get_by_role("button", name="Approve")).to_be_visible()
    focus_by_keys(mine, card(mine, run_id))
    mine.keyboard.press("a")
    answered = card(mine, run_id).filter(has_text="Answered: Approve")
    expect(answered.get_by_role("link", name="Open the run")).to_be_visible()  # one look: it stays for 5 s
    began = time.monotonic()
    expect(card(theirs, run_id)).to_have_count(0)
    lost_s = time.monotonic() - began
    assert not FULL or lost_s < LOST_S
    assert each_dashboard.ended(run_id)["output"] is True
    if FULL:
        expect(card(mine, run_id)).to_have_count(0)
    focus_by_keys(mine, card(mine, other_id))
    mine.keyboard.press("d")
    assert each_dashboard.ended(other_id)["output"] is False


def test_a_decision_with_more_to_say_is_two_buttons_below_the_rest(dashboard: Dashboard, page: Page) -> None:
    first, second = in_order(dashboard, "reviewed", None, None)
    page.goto(f"{dashboard.url}inbox?signal=review")
    expect(card(page, first).get_by_role("checkbox")).to_have_count(0)
    card(page, first).get_by_role("textbox", name="note").fill("too dear")
    card(page, first).get_by_role("button", name="Decline").click()
    expect(card(page, first)).to_contain_text("Answered: Decline")
    assert dashboard.ended(first)["output"] == {"approved": False, "note": "too dear"}
    focus_by_keys(page, card(page, second))
    page.keyboard.press("a")
    assert dashboard.ended(second)["output"] == {"approved": True, "note": ""}


def test_two_clicks_and_a_lost_answer_are_one_answer(dashboard: Dashboard, page: Page, problems: object) -> None:
    run_id = dashboard.start("approval", 77)
    dashboard.reached(run_id, {"awaits_signal": 1})
    page.goto(f"{dashboard.url}inbox")
    keys: list[str] = []
    page.on(
        "request", lambda request: keys.append(request.headers["idempotency-key"]) if request.method == "POST" else None
    )
    card(page, run_id).get_by_role("button", name="Approve").dblclick()
    expect(card(page, run_id)).to_contain_text("Answered: Approve")
    assert len(keys) == 1
    assert dashboard.ended(run_id)["output"] is True


def test_cards_are_chosen_by_signal_and_machines_are_muted(dashboard: Dashboard, page: Page) -> None:
    person, machine = dashboard.start("approval", 5), dashboard.start("waiting")
    for run_id in (person, machine):
        dashboard.reached(run_id, {"awaits_signal": 1})
    page.goto(f"{dashboard.url}inbox")
    expect(card(page, machine)).to_be_visible()
    chips = page.get_by_role("group", name="By signal")
    chips.get_by_role("button", name="go ").click()
    expect(card(page, person)).to_have_count(0)
    assert "signal=go" in page.url
    page.get_by_role("button", name="Mute go").click()
    expect(card(page, machine)).to_have_count(0)
    expect(card(page, person)).to_be_visible()
    page.reload()
    expect(card(page, person)).to_be_visible()
    expect(card(page, machine)).to_have_count(0)


def test_a_value_without_a_known_form_is_sent_as_it_is_typed(dashboard: Dashboard, page: Page) -> None:
    run_id = dashboard.start("waiting")
    dashboard.reached(run_id, {"awaits_signal": 1})
    page.goto(f"{dashboard.url}inbox")
    text = '{"id": 1970670598291982290, "a": 1, "a": 2}'
    card(page, run_id).get_by_role("textbox").fill(text)
    card(page, run_id).get_by_role("button", name="Send").click()
    expect(card(page, run_id)).to_contain_text("Answered")
    output = dashboard.api.get(f"/runs/{run_id}/step", params={"id": "go"}).text
    dashboard.ended(run_id)
    assert "1970670598291982290" in output

"""A server that goes away under a page, and comes back."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.support.timeouts import LOADED_MACHINE_S
from tests.web.conftest import NewPage, on_sqlite
from tests.web.dashboard import Dashboard, until
from tests.web.watching import Problems

STEPS = 4
TALL = {"width": 1280, "height": 2_000}
EVENTS = """(rows) => rows.map((row) => [...row.children].map((each) => each.textContent)).map(
    ([seq, , , kind, step]) => [Number(seq), kind, step])"""


def events_shown(page: Page) -> list[list[Any]]:
    """Number, kind and step of each event of the history, in the order of the page."""
    return page.locator(".virtual .history-row").evaluate_all(EVENTS)


def completed(events: list[list[Any]]) -> int:
    return [kind for _, kind, _ in events].count("step completed")


def events_stored(dashboard: Dashboard, run_id: str) -> list[list[Any]]:
    answer = dashboard.api.get(f"/runs/{run_id}/events", headers={"accept": "application/json"})
    assert answer.status_code == 200, answer.text
    events = answer.json()["events"]
    return [[event["seq"], event["kind"].replace("_", " "), event.get("step") or ""] for event in events]


def test_06_a_server_is_killed_and_restarted_under_a_run(
    bundle: None, tmp_path_factory: pytest.TempPathFactory, new_page: NewPage, problems: Problems
) -> None:
    problems.allow(
        "ERR_CONNECTION_REFUSED",
        "ERR_CONNECTION_RESET",
        "ERR_INCOMPLETE_CHUNKED_ENCODING",
        "ERR_EMPTY_RESPONSE",
        "ERR_SOCKET_NOT_CONNECTED",  # it was killed between the connection and the request
    )
    with on_sqlite(tmp_path_factory) as dashboard:
        run_id = dashboard.start("gated", STEPS)
        page = new_page()
        page.goto(f"{dashboard.url}runs/{run_id}")
        dashboard.signal(run_id, "go", 0)
        history = new_page(viewport=TALL)
        history.goto(f"{dashboard.url}runs/{run_id}?view=history")
        rows = page.get_by_role("treegrid").get_by_role("row")
        expect(rows.filter(has_text="part-0")).to_have_count(1)
        expect(history.get_by_text("step completed")).to_have_count(1)
        cancel = page.get_by_role("button", name="Cancel")
        expect(cancel).to_be_enabled()
        bar = page.get_by_text("The server is not responding.")
        expect(bar).to_have_count(0)

        dashboard.server.kill()
        expect(bar).to_be_visible()
        expect(history.get_by_text("The server is not responding.")).to_be_visible()
        expect(cancel).to_be_disabled()
        cancel.click(force=True)
        expect(page.get_by_role("dialog")).to_have_count(0)

        dashboard.restart()
        expect(bar).to_have_count(0)
        expect(cancel).to_be_enabled()
        for number in range(1, STEPS - 1):
            dashboard.signal(run_id, "go", number)
        # Before it ends: then the page reads everything anew.
        until(lambda: completed(events_stored(dashboard, run_id)), lambda count: count == STEPS - 1)
        dashboard.reached(run_id, {"status": "sleeping"})
        stored = events_stored(dashboard, run_id)
        assert until(lambda: events_shown(history), lambda events: len(events) >= len(stored)) == stored
        dashboard.signal(run_id, "go", STEPS - 1)
        dashboard.ended(run_id)
        for number in range(STEPS):
            expect(rows.filter(has_text=f"part-{number}")).to_have_count(1)
        names = until(
            lambda: [text for text in rows.all_inner_texts() if "part-" in text],
            lambda texts: len(texts) == STEPS,
            LOADED_MACHINE_S,
        )
        assert [name[name.index("part-") :][:6] for name in names] == [f"part-{number}" for number in range(STEPS)]
        expect(page.locator("main .badge").first).to_contain_text("completed")
        stored = events_stored(dashboard, run_id)
        assert until(lambda: events_shown(history), lambda events: len(events) >= len(stored)) == stored

"""The page of runs: finding them, and what happens to the list under somebody's hands."""

import random
import re
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.support.timeouts import LOADED_MACHINE_S
from tests.web.dashboard import Dashboard, until
from tests.web.measure import FULL
from tests.web.walk import LISTS, Requests, walk

CLICKS = 200 if FULL else 3
STARTS_PER_SECOND = 50
ROW_PX = 28
MANY_NEW = re.compile(r"^\d\d+ new")
SHOWN = re.compile(r"^\d[\d\u202f]*\+?$")


def namespace_of(dashboard: Dashboard, name: str) -> str:
    """One of its own, without a worker."""
    if dashboard.api.get(f"/namespaces/{name}").status_code == 404:
        answer = dashboard.api.post("/namespaces", json={"namespace": name})
        assert answer.status_code == 201, answer.text
    return name


def start_many(dashboard: Dashboard, namespace: str, starts: list[dict[str, Any]]) -> list[str]:
    answer = dashboard.api.post("/runs/batch", json={"starts": starts}, params={"namespace": namespace})
    assert answer.status_code == 200, answer.text
    return [item["started"]["run_id"] for item in answer.json()["items"]]


def row(page: Page, run_id: str) -> Locator:
    return page.locator(f'[data-run="{run_id}"]')


def shortcut(page: Page, name: str) -> Locator:
    return page.get_by_role("navigation", name="Lists").get_by_role("link", name=name)


def test_03_every_list_forth_and_back_costs_bounded_requests(dashboard: Dashboard, page: Page) -> None:
    """The cheap form of the check: tests/campaigns/test_million_web.py has a million runs, and times."""
    namespace = namespace_of(dashboard, "lists")
    start_many(dashboard, namespace, [{"workflow": "delivery", "labels": {"wave": str(n % 2)}} for n in range(120)])
    requests = Requests(page)
    walk(page, dashboard.url, requests, namespace=namespace, workflow="delivery", label="wave=1")
    assert {view.name for view in requests.views} >= set(LISTS)
    for view in requests.views:
        assert len(view.requests) <= 3, f"{view.name}: {view.requests}"
        for request in view.requests:
            assert request.rows is None or request.rows <= 51, f"{view.name}: {request}"


def test_11_a_run_whose_step_fails_is_found_under_failing(each_dashboard: Dashboard, page: Page) -> None:
    run_id = each_dashboard.start("retrying")
    healthy = each_dashboard.start("waiting")
    each_dashboard.reached(run_id, {"retrying_steps": 1, "status": "sleeping"})
    urls: list[str] = []
    page.on("request", lambda request: urls.append(request.url))
    page.goto(f"{each_dashboard.url}runs")
    failing = shortcut(page, "Failing")
    expect(failing.locator(".shortcut-count")).to_have_text(SHOWN)
    failing.click()
    expect(row(page, run_id)).to_contain_text("1 failing step")
    expect(row(page, run_id)).to_contain_text("next attempt in")
    expect(row(page, healthy)).to_have_count(0)
    assert not [url for url in urls if f"/runs/{run_id}" in url]


def test_the_box_and_the_chips_are_one_filter(dashboard: Dashboard, page: Page) -> None:
    namespace = namespace_of(dashboard, "filters")
    wanted, *_ = start_many(
        dashboard,
        namespace,
        [{"workflow": "delivery", "labels": {"to": "berlin"}}, {"workflow": "delivery"}, {"workflow": "letter"}],
    )
    page.goto(f"{dashboard.url}runs?namespace={namespace}")
    expect(page.locator("[data-run]")).to_have_count(3)
    box = page.get_by_role("combobox", name="Search runs")
    page.keyboard.press("/")
    page.keyboard.type("workflow:delivery label:to=berlin")
    page.keyboard.press("Enter")
    expect(page.locator("[data-run]")).to_have_count(1)
    expect(row(page, wanted)).to_be_visible()
    assert "workflow=delivery" in page.url
    assert f"namespace={namespace}" in page.url
    page.get_by_role("button", name="Remove to=berlin").click()
    expect(page.locator("[data-run]")).to_have_count(2)
    expect(box).to_have_value("workflow:delivery")
    page.go_back()
    expect(page.locator("[data-run]")).to_have_count(1)
    expect(box).to_have_value("workflow:delivery label:to=berlin")
    page.reload()
    expect(page.locator("[data-run]")).to_have_count(1)
    box.fill("stauts:failed ")
    expect(page.locator(".filter-bar .field-error")).to_contain_text("there is no filter named stauts")
    box.fill("status:paused label:to=berlin")
    expect(page.get_by_role("heading", name="No matching runs")).to_be_visible()
    page.get_by_role("button", name="Drop status paused").click()
    expect(row(page, wanted)).to_be_visible()


def test_an_empty_list_says_what_to_do(dashboard: Dashboard, page: Page) -> None:
    namespace = namespace_of(dashboard, "empty")
    page.goto(f"{dashboard.url}runs?namespace={namespace}")
    expect(page.get_by_text("kagzi dev app.py")).to_be_visible()
    answer = dashboard.api.patch("/workflows/delivery", json={"max_running": 5}, params={"namespace": namespace})
    assert answer.status_code == 200, answer.text
    expect(page.get_by_text(f"kagzi start delivery --namespace {namespace}")).to_be_visible()


def test_rows_are_patched_and_children_folded(each_dashboard: Dashboard, page: Page) -> None:
    run_id = each_dashboard.start("gated", 1, labels={"live": "1"})
    page.goto(f"{each_dashboard.url}runs?label=live%3D1")
    expect(row(page, run_id)).to_contain_text("waiting for a signal")
    page.evaluate('id => { window.before = document.querySelector(`[data-run="${id}"]`); }', run_id)
    each_dashboard.signal(run_id, "go")
    expect(row(page, run_id)).to_contain_text("completed")
    assert page.evaluate('id => window.before === document.querySelector(`[data-run="${id}"]`)', run_id)

    parent = each_dashboard.start("family", ["a", "b", "c"], labels={"live": "2"})
    each_dashboard.ended(parent)
    page.goto(f"{each_dashboard.url}runs?workflow=family&workflow=hello&since=1h")
    unfold = row(page, parent).get_by_role("button", name="Show 3 children")
    expect(unfold).to_be_visible()
    expect(page.locator('[data-level="1"]')).to_have_count(0)
    unfold.click()
    expect(page.locator('[data-level="1"]')).to_have_count(3)
    assert f"open={parent}" in page.url


def test_keys_select_runs_and_open_their_actions(dashboard: Dashboard, page: Page) -> None:
    namespace = namespace_of(dashboard, "keys")
    runs = start_many(dashboard, namespace, [{"workflow": "delivery"} for _ in range(4)])[::-1]
    page.goto(f"{dashboard.url}runs?namespace={namespace}")
    expect(page.locator("[data-run]")).to_have_count(4)
    for key in ("j", "j", "x", "j", "j", "X"):
        page.keyboard.press(key)
    expect(page.locator(".runs-chosen")).to_contain_text("3 selected")
    assert page.locator('[aria-selected="true"]').evaluate_all("rows => rows.map(row => row.dataset.run)") == runs[1:]
    page.reload()
    expect(page.locator(".runs-chosen")).to_contain_text("3 selected")
    page.keyboard.press("Escape")
    expect(page.locator(".runs-chosen")).not_to_contain_text("selected")
    page.keyboard.press("j")
    page.keyboard.press(".")
    expect(page.get_by_role("menuitem", name="Terminate…")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("k")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(rf"/runs/{runs[0]}|/runs/{runs[1]}"))


@contextmanager
def busy(dashboard: Dashboard, namespace: str) -> Generator[Callable[[], int]]:
    """Somebody starts runs all the time; how many, so far."""
    stop = threading.Event()
    started = 0

    def act() -> None:
        nonlocal started
        with httpx.Client(base_url=f"{dashboard.url}api/v1", timeout=LOADED_MACHINE_S) as client:
            while not stop.wait(1 / STARTS_PER_SECOND):
                client.post("/runs", json={"workflow": "delivery"}, params={"namespace": namespace})
                started += 1

    thread = threading.Thread(target=act, name="customers")
    thread.start()
    try:
        yield lambda: started
    finally:
        stop.set()
        thread.join()


def under(page: Page, x: float, y: float) -> str | None:
    return page.evaluate(
        "([x, y]) => document.elementFromPoint(x, y)?.closest('[data-run]')?.dataset.run ?? null", [x, y]
    )


@pytest.mark.timeout(300 + 5 * CLICKS)
def test_22_a_click_opens_the_run_that_was_under_the_pointer(dashboard: Dashboard, page: Page) -> None:
    namespace = namespace_of(dashboard, "busy")
    seed = random.Random(22)
    with busy(dashboard, namespace) as started:
        until(started, lambda count: count >= 30)
        page.goto(f"{dashboard.url}runs?namespace={namespace}")
        for _ in range(CLICKS):
            expect(page.locator("[data-run]").nth(20)).to_be_visible()
            # a place, not a row: rows move until the pointer is there
            rows = page.locator(".runs-table tbody").bounding_box()
            assert rows is not None
            x, y = rows["x"] + rows["width"] / 2, rows["y"] + ROW_PX * (seed.randint(1, 10) + 0.5)
            page.mouse.move(x, y)
            seen = under(page, x, y)
            assert seen is not None
            # what would have moved the list has come
            expect(page.locator(".runs-new").get_by_role("button")).to_have_text(MANY_NEW)
            page.mouse.down()
            page.mouse.up()
            page.wait_for_url(re.compile(r"/runs/[0-9a-f-]+"))
            assert f"/runs/{seen}" in page.url
            page.mouse.move(5, 5)
            page.go_back()


@pytest.mark.parametrize("key", [True, False], ids=["by key", "by leaving"])
def test_new_runs_join_when_they_are_asked_for_or_nothing_is_held(dashboard: Dashboard, page: Page, key: bool) -> None:
    namespace = namespace_of(dashboard, f"joining-{key}".lower())
    (first,) = start_many(dashboard, namespace, [{"workflow": "delivery"}])
    page.goto(f"{dashboard.url}runs?namespace={namespace}")
    row(page, first).hover()
    runs = start_many(dashboard, namespace, [{"workflow": "delivery"} for _ in range(3)])
    expect(page.get_by_role("button", name="3 new")).to_be_visible()
    expect(page.locator("[data-run]")).to_have_count(1)
    if key:
        page.keyboard.press("n")
    else:
        page.mouse.move(5, 5)
    expect(page.locator("[data-run]")).to_have_count(4)
    assert page.locator("[data-run]").first.get_attribute("data-run") == runs[-1]

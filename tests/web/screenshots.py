"""Pictures of every page, to be looked at: `make screenshots` leaves them in build/screenshots."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.web.conftest import NewPage, on_sqlite
from tests.web.dashboard import Dashboard
from tests.web.recorded import BEGAN, ERROR, HOUR, SECOND, Recorded, add

FOLDER = Path(__file__).resolve().parents[2] / "build" / "screenshots"
WIDTHS = (1280, 320)
THEMES = ("light", "dark")
# Name and path of every page. In it {run} is a run that completed, {failed}, {retrying}, {sleeping} and {waiting} are
# others in those states, {family} has children, {paused} was and is paused, {retried} was retried twice, {worker} is a
# worker.
PAGES = {
    "runs": "runs",
    "runs-failing": "runs?failing=true",
    "run": "runs/{run}",
    "run-failed": "runs/{failed}",
    "run-retrying": "runs/{retrying}",
    "run-sleeping": "runs/{sleeping}",
    "run-waiting": "runs/{waiting}",
    "run-family": "runs/{family}",
    "run-retried": "runs/{retried}",
    "run-paused": "runs/{paused}?step=charge&tab=attempts",
    "compare": "runs/{run}/compare/{failed}",
    "workflows": "workflows",
    "workflow": "workflows/order",
    "start": "workflows/order/start",
    "schedules": "schedules",
    "schedule": "schedules/nightly",
    "workers": "workers",
    "worker": "workers/{worker}",
    "inbox": "inbox",
    "operations": "operations",
    "settings": "settings",
    "login": "login",
}
ORDER = {"order_id": 7, "total": 9.5, "to": {"street": "Elm 1"}, "items": ["tea"]}


@pytest.fixture(scope="module", params=["empty", "full"])
def filled(
    request: pytest.FixtureRequest, bundle: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Dashboard, dict[str, str]]]:
    full = request.param == "full"
    with on_sqlite(tmp_path_factory, worker=full) as dashboard:
        yield request.param, dashboard, fill(dashboard) if full else {}


def fill(dashboard: Dashboard) -> dict[str, str]:
    """One of everything. The values of places in paths."""
    names = {
        "run": dashboard.start("order", ORDER, labels={"city": "berlin"}),
        "failed": dashboard.start("broken", "the card is stolen"),
        "retrying": dashboard.start("retrying"),
        "sleeping": dashboard.start("sleeping", "1d"),
        "waiting": dashboard.start("approval", 120),
        "family": dashboard.start("family", ["Ada", "Bob", "Cy"]),
    }
    names["paused"] = add(dashboard, paused_run())
    retried = dashboard.retried(2)
    latest, _ = dashboard.get(f"/runs/{retried}/timeline")["retries"]
    before = f"before:{latest['retry_seq']}"
    names["retried"] = f"{retried}?row={before}&in={before}&step=refund"
    for _ in range(3):
        dashboard.start("waiting")
    for number in range(30):
        dashboard.start("hello", f"number {number}")
    for name in ("run", "failed", "family"):
        dashboard.ended(names[name])
    dashboard.reached(names["retrying"], {"retrying_steps": 1})
    dashboard.reached(names["waiting"], {"awaits_signal": 1})
    schedule = {"schedule": "nightly", "workflow": "hello", "cron": "0 3 * * *", "input": "night"}
    assert dashboard.api.post("/schedules", json=schedule).status_code in (200, 201)
    assert dashboard.api.post("/schedules/nightly/trigger").is_success
    operation = {"action": "cancel", "filter": {"workflow": ["waiting"]}}
    planned = dashboard.api.post("/operations", json={**operation, "dry_run": True}).json()
    wanted = {**operation, "filter_digest": planned["filter_digest"]}
    assert dashboard.api.post("/operations", json=wanted).is_success
    worker = dashboard.get("/workers")["rows"][0]["worker_id"]
    return {**names, "worker": worker}


def paused_run() -> Recorded:
    """Was paused, moved to another worker, shows a state and is pinned."""
    state = {"json": {"basket": ["tea", "cake"], "total": 12.5, "open": {"shipping": True}}}
    open_fields = {"status": "paused", "finished_at": None, "output": None, "pause_reason": "the bank is down"}
    history = Recorded("charging", **open_fields, state=state, state_at=BEGAN + 5 * SECOND, pinned_build="repaired-2")
    history.step("price", 0, SECOND // 2, worker_id="worker-a")
    history.failed("charge", 1, SECOND, 2 * SECOND, 3 * SECOND, "worker-a")
    history.paused(2 * SECOND, 2 * SECOND + HOUR, "look at the first orders")
    failed = {"status": "failed", "error": ERROR | {"message": "no money there"}, "input": {"json": {"amount": 7}}}
    history.step("charge", 3 * SECOND + HOUR, 4 * SECOND + HOUR, attempt=2, worker_id="worker-b", **failed)
    history.step("ship", 4 * SECOND + HOUR, 6 * SECOND + HOUR, worker_id="worker-b")
    history.paused(6 * SECOND + HOUR, None, "the bank is down")
    return history


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_pictures(filled: tuple[str, Dashboard, dict[str, str]], new_page: NewPage, theme: str, width: int) -> None:
    state, dashboard, places = filled
    page = new_page(color_scheme=theme, viewport={"width": width, "height": 800})
    for name, path in PAGES.items():
        if "{" in path and not places:
            continue
        if not places and path.startswith(("workflows/", "schedules/")):
            continue  # an empty one has none
        page.goto(f"{dashboard.url}{path.format(**places)}")
        settle(page)
        folder = FOLDER / state / theme / str(width)
        folder.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=folder / f"{name}.png", full_page=True)


def settle(page: Page) -> None:
    expect(page.locator("main")).not_to_be_empty()
    expect(page.locator("main .skeleton")).to_have_count(0)

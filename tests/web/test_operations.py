"""Changes of many runs: what is done is what was shown, once."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from playwright.sync_api import Page, Route, expect

from tests.web.dashboard import Dashboard, until
from tests.web.measure import FULL
from tests.web.test_runs import namespace_of, row, start_many
from tests.web.watching import Problems

REGIONS = 10
RUNS = 10_000 if FULL else 1_050
BATCH = 1_000


def fill(dashboard: Dashboard, namespace: str) -> list[str]:
    """Runs in ten regions that nobody executes; those of the third one."""
    third: list[str] = []
    for begin in range(0, RUNS, BATCH):
        numbers = range(begin, min(begin + BATCH, RUNS))
        runs = start_many(
            dashboard, namespace, [{"workflow": "delivery", "labels": {"region": str(n % REGIONS)}} for n in numbers]
        )
        third += [run for n, run in zip(numbers, runs, strict=True) if n % REGIONS == 3]
    return third


def choose(page: Page, menu: str, item: str) -> None:
    page.get_by_role("button", name=menu).click()
    page.get_by_role("menuitem", name=item).click()


def test_20_a_bulk_cancel_touches_what_the_dialog_said(each_dashboard: Dashboard, page: Page) -> None:
    namespace = namespace_of(each_dashboard, "regions")
    third = fill(each_dashboard, namespace)
    runs = f"{each_dashboard.url}runs?namespace={namespace}"
    page.goto(runs)
    page.goto(f"{runs}&label=region%3D3")
    page.locator("[data-run]").first.wait_for()
    page.get_by_role("button", name="Remove region=3").click()  # a wider list, which must not be meant
    expect(page.get_by_role("button", name="Remove region=3")).to_have_count(0)
    page.go_back()
    page.go_back()
    page.go_forward()
    page.reload()
    expect(page.get_by_role("button", name="Remove region=3")).to_be_visible()
    choose(page, "Act on all matching", "Cancel all matching…")
    dialog = page.get_by_role("dialog")
    expect(dialog.locator(".bulk-count")).to_have_text(f"{len(third):,} runs".replace(",", "\u202f"))
    expect(dialog.locator(".bulk-filter")).to_contain_text("with label region=3")
    samples = dialog.locator("[data-run]").evaluate_all("rows => rows.map(row => row.dataset.run)")
    assert sorted(samples) == sorted(third[-5:])
    confirm = dialog.get_by_role("button", name="Cancel ")
    expect(confirm).to_be_disabled()
    dialog.get_by_label("Type").fill(str(len(third) - 1))
    expect(confirm).to_be_disabled()
    dialog.get_by_label("Type").fill(str(len(third)))
    confirm.click()
    page.get_by_role("link", name="Open").or_(page.locator(".notice a")).first.click()
    page.wait_for_url("**/operations/*")
    expect(page.locator(".page-head .badge")).to_have_text("finished")
    expect(page.locator(".operation-progress")).to_contain_text("0 failed")
    cancelled: list[str] = []
    token = ""
    while token is not None:
        listed = each_dashboard.get("/runs", namespace=namespace, status="cancelled", size=1_000, token=token)
        cancelled += [each["run_id"] for each in listed["rows"]]
        token = listed["next"]
    assert sorted(cancelled) == sorted(third)


class Destructive(NamedTuple):
    """`open`: opens the dialog, for a run of a namespace; `verb`: its button; `path`: where it sends to; `names`: what
    it says it touches; `done`: whether it has happened."""

    open: Callable[[Page, str, str, str], None]
    verb: str
    path: str
    names: str
    done: Callable[[Dashboard, str, str], bool]


def of_row(item: str) -> Callable[[Page, str, str, str], None]:
    def act(page: Page, url: str, namespace: str, run_id: str) -> None:
        page.goto(f"{url}runs?namespace={namespace}&label=which%3Done")
        row(page, run_id).get_by_role("button", name="Actions for").click()
        page.get_by_role("menuitem", name=item).click()

    return act


def of_list(item: str) -> Callable[[Page, str, str, str], None]:
    def act(page: Page, url: str, namespace: str, run_id: str) -> None:
        page.goto(f"{url}runs?namespace={namespace}&label=which%3Done")
        row(page, run_id).wait_for()
        choose(page, "Act on all matching", item)

    return act


def of_selected(item: str) -> Callable[[Page, str, str, str], None]:
    def act(page: Page, url: str, namespace: str, run_id: str) -> None:
        page.goto(f"{url}runs?namespace={namespace}")
        row(page, run_id).get_by_role("checkbox").check()
        choose(page, "Act on 1 selected", item)

    return act


def of_page(button: str) -> Callable[[Page, str, str, str], None]:
    def act(page: Page, url: str, namespace: str, run_id: str) -> None:
        page.goto(f"{url}runs/{run_id}?namespace={namespace}")
        page.get_by_role("button", name=button).click()

    return act


def is_cancelled(dashboard: Dashboard, namespace: str, run_id: str) -> bool:
    return dashboard.run(run_id, namespace=namespace)["status"] == "cancelled"


def is_deleted(dashboard: Dashboard, namespace: str, run_id: str) -> bool:
    return dashboard.api.get(f"/runs/{run_id}", params={"namespace": namespace}).status_code == 404


ACTIONS = {
    "cancel": Destructive(of_row("Cancel…"), "Cancel", "/cancel", "delivery-1", is_cancelled),
    "terminate": Destructive(of_row("Terminate…"), "Terminate", "/terminate", "delivery-1", is_cancelled),
    "cancel all": Destructive(
        of_list("Cancel all matching…"), "Cancel 1 run", "/operations", "which=one", is_cancelled
    ),
    "terminate selected": Destructive(
        of_selected("Terminate 1 selected…"), "Terminate 1 run", "/operations", "delivery-1", is_cancelled
    ),
    "delete all": Destructive(of_list("Delete all matching…"), "Delete 1 run", "/operations", "which=one", is_deleted),
    "cancel on its page": Destructive(of_page("Cancel…"), "Cancel the run", "/cancel", "delivery-1", is_cancelled),
    "terminate on its page": Destructive(of_page("Terminate…"), "Terminate", "/terminate", "delivery-1", is_cancelled),
}


@pytest.mark.parametrize("name", ACTIONS)
def test_21_what_destroys_is_asked_for_and_done_once(
    dashboard: Dashboard, page: Page, problems: Problems, name: str
) -> None:
    """The answer to the first attempt is lost on its way, and the second one is a double click."""
    action = ACTIONS[name]
    namespace = namespace_of(dashboard, name.replace(" ", "-"))
    run_id, other = start_many(
        dashboard,
        namespace,
        [
            {"workflow": "delivery", "workflow_id": "delivery-1", "labels": {"which": "one"}},
            {"workflow": "delivery", "workflow_id": "delivery-2"},
        ],
    )
    if name.startswith("delete"):
        dashboard.api.post(f"/runs/{run_id}/terminate", json={}, params={"namespace": namespace})
    sent: list[dict[str, Any]] = []

    def note(request: Any) -> None:
        body: Any = request.post_data_json or {} if request.method == "POST" else {"dry_run": True}
        if action.path in request.url and not body.get("dry_run"):
            sent.append({"key": request.headers["idempotency-key"], "body": body})

    page.on("request", note)
    action.open(page, dashboard.url, namespace, run_id)
    dialog = page.get_by_role("dialog")
    confirm = dialog.get_by_role("button", name=action.verb, exact=True)
    confirm.wait_for()
    expect(dialog).to_contain_text(action.names)
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    assert sent == []
    before = dashboard.get("/operations", namespace=namespace)["rows"]
    assert before == []

    action.open(page, dashboard.url, namespace, run_id)
    confirm.wait_for()
    problems.allow("Failed to load resource")

    lost: list[str] = []

    def drop(route: Route) -> None:
        body: Any = route.request.post_data_json or {} if route.request.method == "POST" else {"dry_run": True}
        if body.get("dry_run") or lost:
            route.continue_()
            return
        lost.append(route.request.url)
        route.fetch()
        route.abort("connectionreset")

    page.route("**/api/v1/**", drop)
    confirm.click()
    expect(dialog.get_by_role("alert")).to_be_visible()
    confirm.dblclick()
    expect(dialog).to_have_count(0)
    until(lambda: action.done(dashboard, namespace, run_id), bool)
    assert len(sent) == 2
    assert len({each["key"] for each in sent}) == 1
    assert sent[0]["body"] == sent[1]["body"]
    assert len(dashboard.get("/operations", namespace=namespace)["rows"]) == ("operations" in action.path)
    assert dashboard.run(other, namespace=namespace)["status"] == "pending"


def test_an_operation_is_shown_with_its_failures_and_its_filter(dashboard: Dashboard, page: Page) -> None:
    namespace = namespace_of(dashboard, "operations")
    page.goto(f"{dashboard.url}operations?namespace={namespace}")
    expect(page.get_by_role("heading", name="No operations yet")).to_be_visible()
    start_many(dashboard, namespace, [{"workflow": "delivery"} for _ in range(3)])
    request = {"action": "delete", "filter": {"workflow": ["delivery"]}, "reason": "spring cleaning"}
    preview = dashboard.api.post(
        "/operations", json={**request, "dry_run": True}, params={"namespace": namespace}
    ).json()
    request["filter_digest"] = preview["filter_digest"]
    begun = dashboard.api.post("/operations", json=request, params={"namespace": namespace}).json()
    expect(page.locator(f'[data-operation="{begun["operation_id"]}"]')).to_contain_text("finished, some failed")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Delete runs")).to_be_visible()
    expect(page.locator(".operation-progress")).to_contain_text("3 failed")
    expect(page.get_by_text("only runs that have ended can be deleted")).to_be_visible()
    expect(page.get_by_text("spring cleaning")).to_be_visible()
    page.get_by_role("link", name="show matching runs").click()
    expect(page.locator("[data-run]")).to_have_count(3)

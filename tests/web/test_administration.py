"""Schedules, workers and settings: what they show and change."""

import re

import pytest
from playwright.sync_api import Page, expect

from kagzi.store.sql_files import load_migrations
from tests.support.kagzi_process import kagzi
from tests.support.migrated import copy_migrated_sqlite
from tests.web.dashboard import Dashboard, until
from tests.web.watching import Problems


def test_a_secret_is_shown_once(dashboard: Dashboard, page: Page) -> None:
    page.goto(f"{dashboard.url}settings?tab=keys")
    page.get_by_role("button", name="New key").click()
    page.get_by_role("textbox", name="Name").fill("for-the-test")
    page.get_by_role("button", name="Create").click()
    secret = page.locator("[data-secret]").inner_text()
    assert secret.startswith("kgz_")
    page.get_by_role("button", name="I have saved it").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    row = page.get_by_role("row").filter(has_text="for-the-test")
    expect(row).to_contain_text("client")
    assert secret not in page.content()
    row.get_by_role("button", name="Actions for for-the-test").click()
    page.get_by_role("menuitem", name="Revoke…").click()
    page.get_by_role("button", name="Revoke", exact=True).click()
    expect(row).to_contain_text("revoked")


def test_a_schedule_is_previewed_made_and_triggered(dashboard: Dashboard, page: Page) -> None:
    page.goto(f"{dashboard.url}schedules")
    page.get_by_role("button", name="New schedule").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Id").fill("made-here")
    dialog.get_by_label("Workflow").fill("hello")
    dialog.get_by_label("Cron expression").fill("0 6 1 1 *")
    dialog.get_by_label("Time zone").fill("UTC")
    expect(dialog).to_contain_text("at 06:00, on the 1st, in January")
    expect(dialog.get_by_role("group", name="Next times").get_by_role("listitem")).to_have_count(5)
    dialog.get_by_label("Input").fill('"you"')
    dialog.get_by_role("button", name="Create").click()
    page.wait_for_url("**/schedules/made-here")
    page.get_by_role("button", name="Trigger…").click()
    page.get_by_role("button", name="Trigger", exact=True).click()
    page.get_by_role("status").get_by_role("link", name="Started").click()
    page.wait_for_url("**/runs/*")
    (run,) = dashboard.get("/runs", schedule="made-here")["rows"]
    assert page.url.endswith(run["run_id"])
    assert dashboard.ended(run["run_id"])["output"] == "Hello, you!"
    page.goto(f"{dashboard.url}schedules")
    row = page.get_by_role("row").filter(has_text="made-here")
    expect(row.locator(f".dots a[href*='{run['run_id']}']")).to_have_count(1)


def test_the_next_times_of_a_schedule_are_asked_for_once(dashboard: Dashboard, page: Page) -> None:
    schedule = {"workflow": "hello", "cron": "0 6 1 1 *", "input": "x"}
    assert dashboard.api.put("/schedules/asked-once", json=schedule).is_success
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(f"{dashboard.url}schedules/asked-once")
    expect(page.locator(".card time").first).to_be_visible()
    page.wait_for_load_state("networkidle")
    assert len([url for url in requests if "/schedules/asked-once/preview" in url]) == 1


def test_a_type_that_waits_without_a_worker_is_named_with_the_command(dashboard: Dashboard, page: Page) -> None:
    dashboard.start("nobody-serves-this", namespace="lonely")
    page.goto(f"{dashboard.url}workers?namespace=lonely")
    banner = page.locator(".banner")
    expect(banner).to_contain_text("1 run of nobody-serves-this is waiting, and no worker serves it")
    expect(banner).to_contain_text("kagzi worker app.py")
    expect(page.locator("main")).to_contain_text("No workers yet")


def test_who_has_not_logged_in_does_so_and_goes_on_where_they_wanted_to(
    bundle: None, tmp_path_factory: pytest.TempPathFactory, page: Page, problems: Problems
) -> None:
    problems.allow("status of 401")
    directory = tmp_path_factory.mktemp("keyed")
    copy_migrated_sqlite(directory / "kagzi.db")
    database = f"sqlite:///{directory}/kagzi.db"
    made = kagzi("keys", "create", "me", "--scope", "read", "--db", database)
    assert made.returncode == 0, made.stderr
    with Dashboard(database, directory, "--auth", "keys", worker=False) as dashboard:
        page.goto(f"{dashboard.url}schedules?workflow=hello")
        page.wait_for_url("**/login?next=*")
        page.get_by_label("API key").fill("kgz_wrong")
        page.get_by_role("button", name="Log in").click()
        expect(page.get_by_role("alert")).to_be_visible()
        page.get_by_label("API key").fill(made.stdout.strip())
        page.keyboard.press("Enter")
        page.wait_for_url("**/schedules?workflow=hello")
        expect(page.locator("main")).to_contain_text("No schedule starts hello")
        expect(page.get_by_role("button", name="New schedule")).to_have_count(0)
        page.get_by_role("button", name="me", exact=True).click()
        page.get_by_role("menuitem", name="Log out").click()
        page.wait_for_url("**/login")
        page.goto(f"{dashboard.url}workers")
        page.wait_for_url("**/login?next=*")
        page.goto("about:blank")  # it would miss the server


def test_the_settings_say_which_schema_the_server_has_and_how_late_it_is(each_dashboard: Dashboard, page: Page) -> None:
    package = "postgres" if each_dashboard.database.startswith("postgres") else "sqlite"
    latest = load_migrations(f"kagzi.store.{package}")[-1].version
    facts = until(lambda: each_dashboard.get("/server"), lambda facts: facts["store_lag_ms"] is not None)
    assert (facts["schema_version"], facts["store_lag_ms"] >= 0, facts["loop_lag_ms"] >= 0) == (latest, True, True)
    page.goto(f"{each_dashboard.url}settings?tab=server")
    shown = page.locator("dl.facts")
    expect(shown).to_contain_text(f"Schemaversion {latest}")
    lag = re.compile(r"Latencythe database answered its last poll in .+; the server's event loop was delayed by")
    expect(shown).to_contain_text(lag)


def test_the_runs_that_a_worker_holds_are_a_list_to_which_its_row_leads(each_dashboard: Dashboard, page: Page) -> None:
    running, parked = each_dashboard.start("slow", 3_600), each_dashboard.start("waiting")
    each_dashboard.reached(parked, {"status": "sleeping"})
    worker_id = each_dashboard.reached(running, {"status": "running"})["worker_id"]
    page.goto(f"{each_dashboard.url}workers")
    page.get_by_role("row").filter(has_text=worker_id[:8]).get_by_title("Its current runs").click()
    page.wait_for_url(f"**/runs?worker={worker_id}")
    expect(page.locator(f'main a[href*="{running}"]').first).to_be_visible()
    expect(page.locator(f'main a[href*="{parked}"]')).to_have_count(0)
    expect(page.get_by_label("Search runs")).to_have_value(f"worker:{worker_id}")
    page.goto(f"{each_dashboard.url}workers/{worker_id}")
    expect(page.locator(f'main a[href*="{running}"]').first).to_be_visible()
    assert each_dashboard.get("/runs", worker="nobody")["rows"] == []
    assert each_dashboard.get("/runs", worker=worker_id, order="ended")["rows"] == []
    each_dashboard.api.post(f"/runs/{running}/terminate", json={})
    each_dashboard.ended(running)
    assert running not in [run["run_id"] for run in each_dashboard.get("/runs", worker=worker_id)["rows"]]

"""The dashboard behind a proxy, below a path, with two servers of which one has another build of it."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

import kagzi
from tests.support.kagzi_process import RunningCommand
from tests.support.migrated import MigratedPostgres
from tests.web.dashboard import PORTS, Dashboard
from tests.web.proxy import proxy
from tests.web.watching import Problems

PATH = "/tools/kagzi"
OTHER_BUILD = "0" * 16


@pytest.fixture
def proxied(bundle: None, migrated_databases: MigratedPostgres, tmp_path: Path) -> Iterator[tuple[Dashboard, str]]:
    """A server and its worker; and the address of the proxy before that server and another one."""
    with migrated_databases.database() as url, Dashboard(url, tmp_path) as dashboard:
        command = (sys.executable, "-m", "kagzi")  # not forked: it imports what is in its own folder
        environment = {"PYTHONPATH": str(other_version(tmp_path))}
        other = RunningCommand("server", "--db", url, *PORTS, cwd=tmp_path, env=environment, program=tuple(command))
        try:
            other_url = other.says(r"kagzi server ready .*?http=(\S+)")[1]
            with proxy([dashboard.url, other_url], PATH, tmp_path) as address:
                yield dashboard, address
        finally:
            other.close()


def other_version(folder: Path) -> Path:
    """A copy of the package with another build of the dashboard."""
    source = Path(kagzi.__file__).parent
    copy = folder / "other" / "kagzi"
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__", "*.map*"))
    static = copy / "server" / "http" / "static"
    build = (static / "build.txt").read_text().strip()
    (static / "build.txt").write_text(OTHER_BUILD)
    (static / "app.js").write_text((static / "app.js").read_text().replace(build, OTHER_BUILD))
    for zipped in static.glob("*.gz"):
        zipped.unlink()
    return copy.parent


def test_29_behind_a_proxy_with_a_path_everything_works_and_stays_below_it(
    proxied: tuple[Dashboard, str], page: Page, problems: Problems
) -> None:
    dashboard, address = proxied
    problems.allow("status of 404")  # of the other build: asked again, another server answers
    outside: list[str] = []
    page.on("request", lambda each: None if urlsplit(each.url).path.startswith(PATH) else outside.append(each.url))
    page.goto(address)
    expect(page).to_have_url(f"{address}runs")
    run_id = dashboard.start("gated", 3, workflow_id="behind-a-proxy")
    row = page.locator(f'main a[href*="{run_id}"]').first
    expect(row).to_be_visible()  # by the stream: nothing was loaded anew
    row.click()
    expect(page).to_have_url(f"{address}runs/{run_id}")
    for number in range(3):
        dashboard.signal(run_id, "go")
        expect(page.get_by_text(f"part-{number}").first).to_be_visible()
    expect(page.get_by_text("completed").first).to_be_visible()
    links = page.locator("a[href^='/']").evaluate_all("all => all.map((each) => each.getAttribute('href'))")
    assert links
    assert [link for link in links if not link.startswith(f"{PATH}/")] == []
    page.reload()
    expect(page.get_by_text("part-2").first).to_be_visible()
    for name in ("Workflows", "Schedules", "Workers", "Inbox", "Operations", "Settings"):
        page.get_by_role("navigation", name="Pages").get_by_role("link", name=name).click()
        expect(page).to_have_url(f"{address}{name.lower()}")
        expect(page.locator("main")).not_to_be_empty()
    assert outside == []

"""`page`            a new page in a browser that is shared; whatever it does that a page may not fails the test
`problems`        what it did; `problems.allow("status of 404")` for a test that provokes it
`new_page`        makes more of them, each like a browser of its own
`dashboard`       a server and a worker on SQLite, shared by all tests here
`each_dashboard`  the same on each store
`keyed`           a server on SQLite that asks for keys, without a worker

Tests share the servers: whoever counts runs uses a namespace of its own, with a worker for it if they are to run.
"""

import asyncio
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.server.keys import first_key
from tests.support.migrated import MigratedPostgres, copy_migrated_sqlite
from tests.support.scripts import script
from tests.support.timeouts import LOADED_MACHINE_S
from tests.web.browser import BrowserAbsentError, find_chromium
from tests.web.dashboard import Dashboard, Keyed
from tests.web.watching import Problems

HERE = Path(__file__).parent
GROUP = "web"
WIDTH, HEIGHT = 1280, 800

# What went well is said for six seconds (SHOWN_MS in web/src/state/notices.ts): on a loaded machine a minute.
NOTICES_STAY = """
const later = window.setTimeout;
window.setTimeout = (act, ms, ...values) => later(act, ms === 6000 ? 60000 : ms, ...values);
"""

NewPage = Callable[..., Page]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One group: one browser and one of each server for all."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.xdist_group(GROUP))


# --- the browser ------------------------------------------------------------------------------------------------------
# Fixtures are of the package, not of the session: while the browser runs, no event loop can run in this process, which
# may have other tests to do afterwards.


@pytest.fixture(scope="package")
def bundle() -> None:
    """The dashboard of these sources."""
    web = script("web")
    try:
        web.build()
    except web.CannotBuild as problem:
        _absent(f"The dashboard could not be built, so it is NOT proven by this run: {problem}")


@pytest.fixture(scope="package")
def browser(bundle: None) -> Iterator[Browser]:
    try:
        chromium = find_chromium()
    except BrowserAbsentError as absent:
        _absent(str(absent))
    expect.set_options(timeout=LOADED_MACHINE_S * 1_000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium.path,
            args=["--no-sandbox", "--disable-gpu"],
            env={**os.environ, **chromium.environment},
        )
        yield browser
        browser.close()


def _absent(words: str) -> None:
    if os.environ.get("CI") == "true":
        pytest.fail(words, pytrace=False)
    pytest.skip(words)


@pytest.fixture
def problems() -> Problems:
    return Problems()


@pytest.fixture
def new_page(browser: Browser, problems: Problems) -> Iterator[NewPage]:
    """`options`: of the context, such as `color_scheme="dark"` or `viewport={...}`."""
    with ExitStack() as stack:

        def make(**options: Any) -> Page:
            viewport = {"width": WIDTH, "height": HEIGHT}
            context = browser.new_context(**{"viewport": viewport, "locale": "en-GB", **options})
            stack.callback(context.close)
            context.set_default_timeout(LOADED_MACHINE_S * 1_000)
            context.add_init_script(NOTICES_STAY)
            problems.watch(context)
            return context.new_page()

        yield make
    assert not problems.unexpected, "\n".join(problems.unexpected)


@pytest.fixture
def page(new_page: NewPage) -> Page:
    return new_page()


# --- servers ----------------------------------------------------------------------------------------------------------


@contextmanager
def on_sqlite(tmp_path_factory: pytest.TempPathFactory, *options: str, worker: bool = True) -> Iterator[Dashboard]:
    directory = tmp_path_factory.mktemp("dashboard")
    copy_migrated_sqlite(directory / "kagzi.db")
    with Dashboard(f"sqlite:///{directory}/kagzi.db", directory, *options, worker=worker) as dashboard:
        yield dashboard


@pytest.fixture(scope="package")
def dashboard(bundle: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    with on_sqlite(tmp_path_factory) as made:
        yield made


@pytest.fixture(scope="package")
def postgres_dashboard(
    bundle: None, migrated_databases: MigratedPostgres, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Dashboard]:
    directory = tmp_path_factory.mktemp("dashboard")
    with migrated_databases.database() as url, Dashboard(url, directory) as made:
        yield made


@pytest.fixture(params=["sqlite", "postgresql"])
def each_dashboard(request: pytest.FixtureRequest) -> Dashboard:
    return request.getfixturevalue("dashboard" if request.param == "sqlite" else "postgres_dashboard")


@pytest.fixture(scope="package")
def keyed(bundle: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keyed]:
    directory = tmp_path_factory.mktemp("keyed")
    copy_migrated_sqlite(directory / "kagzi.db")
    database = f"sqlite:///{directory}/kagzi.db"
    with ThreadPoolExecutor(max_workers=1) as aside:  # in this thread the loop of the browser may be running
        operator = aside.submit(lambda: asyncio.run(first_key(database))).result()
    with Dashboard(database, directory, "--auth", "keys", worker=False) as made:
        made.api.headers["authorization"] = f"Bearer {operator}"
        yield Keyed(made, operator)

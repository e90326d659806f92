"""Ten minutes at 50 events a second under a page of the dashboard: its heap grows by less than 10 MB, its main thread
is busy for less than 10 % of the time, and a viewer costs the server less than 1 % of a core. A page at which nothing
happens costs nothing.

`run`: one run, of 25 steps a second, which begin and end. `runs`: the list, to which 25 runs a second come, which end.
What a viewer costs is measured with many: the time of the server's processor with them, less that without.
KAGZI_CAMPAIGN_LIVE_SECONDS=60 is the short form.
"""

import re
import threading
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from playwright.sync_api import Page, expect, sync_playwright

from tests.support.migrated import copy_migrated_sqlite
from tests.support.scripts import script
from tests.support.timeouts import LOADED_MACHINE_S
from tests.web.browser import find_chromium
from tests.web.dashboard import Dashboard

from .figures import Figures, number
from .live_flows import STEPS_PER_SECOND

FLOWS = Path(__file__).parent / "live_flows.py"
SECONDS = number("LIVE_SECONDS", 600)
ALONE_S = max(SECONDS / 4, 15)
IDLE_S = 10
WARM_UP_S = 10
VIEWERS = 10
HEAP_MB, BUSY, IDLE, OF_A_CORE = 10, 0.10, 0.01, 0.01
EVENTS_PER_SECOND = 2 * STEPS_PER_SECOND
STREAM = {"accept": "text/event-stream"}


class Viewers:
    """Read a stream, and count its events."""

    def __init__(self, dashboard: Dashboard, path: str) -> None:
        self.events = 0
        self._dashboard, self._path = dashboard, path
        self._stop = threading.Event()

    def __enter__(self) -> "Viewers":
        self._threads = [threading.Thread(target=self._read, daemon=True) for _ in range(VIEWERS)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(LOADED_MACHINE_S)

    def _read(self) -> None:
        url = f"{self._dashboard.url}api/v1{self._path}"
        with httpx.stream("GET", url, headers=STREAM, timeout=LOADED_MACHINE_S) as answer:
            for line in answer.iter_lines():
                self.events += line.startswith("event:")
                if self._stop.is_set():
                    return


@contextmanager
def starting(dashboard: Dashboard) -> Generator[None]:
    """Runs, at a steady rate."""
    stop = threading.Event()

    def start() -> None:
        with httpx.Client(base_url=f"{dashboard.url}api/v1", timeout=LOADED_MACHINE_S) as client:
            began = time.monotonic()
            for count in range(10**9):
                client.post("/runs", json={"workflow": "brief"}).raise_for_status()
                if stop.wait(max(0.0, began + count / STEPS_PER_SECOND - time.monotonic())):
                    return

    thread = threading.Thread(target=start)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


class Measured:
    """Of a page: how its heap grows, and how busy its main thread is."""

    def __init__(self, page: Page) -> None:
        self._session: Any = page.context.new_cdp_session(page)
        self._session.send("Performance.enable")

    def heap_mb(self) -> float:
        self._session.send("HeapProfiler.collectGarbage")
        return float(self._session.send("Runtime.getHeapUsage")["usedSize"]) / 1e6

    def busy_s(self) -> float:
        """Of a processor: a thread that waits for one is not busy."""
        metrics = self._session.send("Performance.getMetrics")["metrics"]
        return next(float(each["value"]) for each in metrics if each["name"] == "ThreadTime")


def cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def rate(process: psutil.Process, seconds: float, page: Page) -> float:
    """How much of a core it uses meanwhile. The page is kept going."""
    before, began = cpu_s(process), time.monotonic()
    page.wait_for_timeout(seconds * 1_000)
    return (cpu_s(process) - before) / (time.monotonic() - began)


@pytest.mark.parametrize("which", ["run", "runs"])
@pytest.mark.timeout(SECONDS * 2 + 600)
def test_30_live_pages_stay_small_and_cheap(which: str, tmp_path: Path) -> None:
    script("web").build()
    copy_migrated_sqlite(tmp_path / "kagzi.db")
    expect.set_options(timeout=LOADED_MACHINE_S * 1_000)
    with ExitStack() as stack:
        dashboard = stack.enter_context(Dashboard(f"sqlite:///{tmp_path}/kagzi.db", tmp_path, worker=False))
        dashboard.worker(flows=FLOWS)
        server = psutil.Process(dashboard.server.process.pid)
        browser = stack.enter_context(sync_playwright()).chromium.launch(
            executable_path=find_chromium().path, args=["--no-sandbox", "--disable-gpu"]
        )
        stack.callback(browser.close)
        page = browser.new_page()
        measured = Measured(page)
        path, idle = _idle(dashboard, page, measured)
        if which == "run":
            run_id = dashboard.start("busy", SECONDS + ALONE_S + WARM_UP_S + LOADED_MACHINE_S)
            path, where = f"/runs/{run_id}/events", f"{dashboard.url}runs/{run_id}"
        else:
            stack.enter_context(starting(dashboard))
            where = f"{dashboard.url}runs"
        page.goto("about:blank")
        alone = rate(server, ALONE_S, page)
        viewers = stack.enter_context(Viewers(dashboard, path))
        page.goto(where)
        page.wait_for_timeout(WARM_UP_S * 1_000)
        rows = page.locator(".timeline-row, [data-run]").first
        expect(rows).to_be_visible()
        shown = page.locator("main").inner_text()
        heap, busy, seen, began = measured.heap_mb(), measured.busy_s(), viewers.events, time.monotonic()
        watched = rate(server, SECONDS, page)
        took = time.monotonic() - began
        busy = (measured.busy_s() - busy) / took
        assert page.locator("main").inner_text() != shown, "the page did not follow what happened"
        expect(rows).to_be_visible()
        figures = {
            "seconds": round(took),
            "events_a_second_and_viewer": round((viewers.events - seen) / VIEWERS / took, 1),
            "heap_grows_mb": round(measured.heap_mb() - heap, 2),
            "main_thread": round(busy, 4),
            "main_thread_idle": round(idle, 4),
            "server_alone": round(alone, 4),
            "server_a_viewer": round((watched - alone) / (VIEWERS + 1), 4),
        }
    Figures("live-web").put(which, figures)
    assert figures["events_a_second_and_viewer"] > 0, "nothing happened"
    assert figures["heap_grows_mb"] < HEAP_MB
    assert figures["main_thread"] < BUSY
    assert figures["main_thread_idle"] < IDLE
    assert figures["server_a_viewer"] < OF_A_CORE


def _idle(dashboard: Dashboard, page: Page, measured: Measured) -> tuple[str, float]:
    """The address of the stream that the list opens, and how busy the list is when nothing happens."""
    with page.expect_request(re.compile(r"/runs/events(\?|$)")) as opened:
        page.goto(f"{dashboard.url}runs")
    page.wait_for_timeout(WARM_UP_S * 1_000)
    before, began = measured.busy_s(), time.monotonic()
    page.wait_for_timeout(IDLE_S * 1_000)
    stream = opened.value.url.removeprefix(f"{dashboard.url}api/v1")
    return stream, (measured.busy_s() - before) / (time.monotonic() - began)

"""What a first visit costs, and what it shows."""

from statistics import median

from playwright.sync_api import Page, expect

from tests.web.conftest import NewPage
from tests.web.dashboard import Dashboard, until
from tests.web.measure import FULL

BUDGET = 60 * 1024
REQUESTS = 4
VISITS = 15 if FULL else 1
ROWS = 60
USABLE_MS = 300
FILES = ["/", "/static/style.css", "/static/app.js"]
NOTE_REQUESTS = """
  const asked = [];
  const { fetch, EventSource } = window;
  window.fetch = (what, ...rest) => (asked.push(String(what.url ?? what)), fetch(what, ...rest));
  window.EventSource = class extends EventSource {
    constructor(url, options) { super(url, options); asked.push(String(url)); }
  };
  // What waits for a moment waits for the list: on a busy machine the moment is over before that is there.
  const { setTimeout } = window;
  let held = [];
  window.setTimeout = (...timer) => (held !== null && timer[1] >= 200 ? held.push(timer) && 0 : setTimeout(...timer));
  new MutationObserver((_, observer) => {
    if (document.querySelector('main a[href*="/runs/"]') === null) return;
    observer.disconnect();
    window.askedBefore = [...asked];
    for (const timer of held.splice(0)) setTimeout(...timer);
    held = null;
  }).observe(document, { subtree: true, childList: true });
"""
NOTE_TIMES = """
  let asked = false;
  const { EventSource } = window;
  window.EventSource = class extends EventSource {
    constructor(url, options) { super(url, options); asked = true; }
  };
  new MutationObserver((_, observer) => {
    if (document.querySelector("main") !== null) window.askedWithTheFrame ??= asked;
    if (document.querySelector('main a[href*="/runs/"]') === null) return;
    observer.disconnect();
    // A task that comes after the list was painted.
    requestAnimationFrame(() => setTimeout(() => { window.usableMs = performance.now(); }));
  }).observe(document, { subtree: true, childList: true });
"""
TIMES = """() => {
  const [page] = performance.getEntriesByType("navigation");
  const [script] = performance.getEntriesByType("resource").filter((each) => each.name.endsWith("/app.js"));
  const [paint] = performance.getEntriesByType("paint");
  return {
    page: page.responseEnd, script: script.responseEnd, run: page.domContentLoadedEventEnd,
    paint: paint?.startTime ?? 0, usable: window.usableMs ?? 0,
  };
}"""
NO_POINTER = """
  // A browser may report that its pointer moves when a page comes up under it: that would be the first use.
  addEventListener("pointermove", (event) => event.stopImmediatePropagation(), { capture: true });
"""


def test_01_a_first_visit_is_four_requests_and_shows_the_runs(dashboard: Dashboard, page: Page) -> None:
    """Page, style, script and list; whatever else is asked for comes after the list is there."""
    run_id = dashboard.start("hello", "Ada")
    dashboard.ended(run_id)
    requests: list[str] = []
    page.on("request", lambda request: requests.append(f"{request.method} {request.url}"))
    page.add_init_script(NOTE_REQUESTS)
    page.add_init_script(NO_POINTER)
    page.goto(dashboard.url)
    link = page.locator(f'a[href*="{run_id}"]').first
    expect(link).to_be_visible()
    expect(page).to_have_url(f"{dashboard.url}runs")
    before = page.evaluate("window.askedBefore")
    assert len(before) == REQUESTS - len(FILES), "\n".join(before)
    files = [url.removeprefix(f"GET {dashboard.url}") for url in requests if "/api/" not in url]
    assert {f"/{path}" for path in files} - {"/static/icon.svg"} == set(FILES), "pages.js comes with the first use"
    link.click()
    expect(page).to_have_url(f"{dashboard.url}runs/{run_id}")
    expect(page.get_by_text("greet").first).to_be_visible()


def test_01_what_a_visit_loads_is_small(dashboard: Dashboard, page: Page) -> None:
    sizes: dict[str, int] = {}
    page.on("requestfinished", lambda request: sizes.setdefault(request.url, request.sizes()["responseBodySize"]))
    page.add_init_script(NO_POINTER)
    page.goto(f"{dashboard.url}runs")
    expect(page.get_by_role("link", name="Runs").first).to_be_visible()
    loaded = {url: size for url, size in sizes.items() if "/static/" in url}
    assert {url.rpartition("/")[2] for url in loaded} - {"icon.svg"} == {"app.js", "style.css"}
    assert 0 < sum(loaded.values()) <= BUDGET, loaded


def test_01_the_list_is_asked_for_before_the_frame_is_painted_and_is_soon_usable(
    dashboard: Dashboard, new_page: NewPage
) -> None:
    """A new browser each time, from the beginning of the navigation until the runs are on the screen. In the campaign,
    on a quiet machine, that is timed."""
    runs = [dashboard.start("hello", "Ada") for _ in range(ROWS if FULL else 1)]
    for run_id in runs:
        dashboard.ended(run_id)
    visits: list[dict[str, float]] = []
    for _ in range(VISITS):
        page = new_page()
        page.add_init_script(NOTE_TIMES)
        page.goto(dashboard.url)
        expect(page.locator(f'main a[href*="{runs[-1]}"]').first).to_be_visible()
        assert page.evaluate("window.askedWithTheFrame"), "the server could answer while the frame is painted"
        visits.append(until(lambda page=page: page.evaluate(TIMES), lambda times: times["usable"]))
        page.context.close()
    middle = {name: round(median(visit[name] for visit in visits)) for name in visits[0]}
    if FULL:
        print(f"\nms after the beginning of a first visit, the median of {VISITS}: {middle}")
        assert middle["usable"] < USABLE_MS, visits

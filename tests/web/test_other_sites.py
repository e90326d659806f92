"""What must not be possible: pages of other sites that act for somebody, requests that change something and should not,
and a key that may only read."""

import json
import re
import sqlite3
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import NamedTuple
from urllib.parse import urlencode

import httpx
import pytest
from playwright.sync_api import Page, Request, Route, expect

from kagzi.core.access import Scope
from kagzi.server.http.routes import routes
from tests.support.timeouts import LOADED_MACHINE_S
from tests.web.conftest import NewPage
from tests.web.dashboard import Dashboard, Keyed
from tests.web.proxy import serving
from tests.web.watching import Problems

TARGET = "attacked"
ATTACK = """<!doctype html><title>evil</title><body><script>
const target = new URLSearchParams(location.search).get("target");
const run = new URLSearchParams(location.search).get("run");
const where = "?namespace=attacked";
const start = JSON.stringify({ workflow: "hello", input: "evil" });
const seen = [];
function form(path, type, name, value) {
  const frame = document.body.appendChild(document.createElement("iframe"));
  frame.name = `f${document.forms.length}`;
  const form = document.body.appendChild(document.createElement("form"));
  Object.assign(form, { method: "POST", action: target + path, enctype: type, target: frame.name });
  const field = form.appendChild(document.createElement("input"));
  Object.assign(field, { name, value });
  // Problems are downloaded, and a frame says nothing of that.
  return new Promise((resolve) => { frame.onload = resolve; form.submit(); setTimeout(resolve, 1000); });
}
async function reads(path, options) {
  try {
    const answer = await fetch(target + path, { credentials: "include", ...options });
    seen.push(`${path} ${answer.type} ${answer.status} ${await answer.text()}`);
  } catch { seen.push(""); }
}
function streams(path) {
  return new Promise((resolve) => {
    const source = new EventSource(target + path, { withCredentials: true });
    const done = (what) => { seen.push(what); source.close(); resolve(); };
    for (const kind of ["rows", "row", "message", "stats"]) source.addEventListener(kind, (event) => done(event.data));
    source.onerror = () => done("");
  });
}
async function post() {
  const way = { method: "POST", mode: "no-cors" };
  await reads("api/v1/runs" + where, { ...way, body: start });
  await reads("api/v1/runs/" + run + "/cancel" + where, { ...way, body: "{}" });
}
async function attack() {
  const cancel = "api/v1/runs/" + run + "/cancel" + where;
  await Promise.all([
    form("api/v1/runs" + where, "text/plain", start.slice(0, -1) + ',"version":"', '"}'),
    form(cancel, "application/x-www-form-urlencoded", "reason", "evil"),
    form(cancel, "text/plain", '{"reason":"', '"}'),
  ]);
  const json = { "Content-Type": "application/json" };
  for (const mode of ["no-cors", "cors"]) {
    await reads("api/v1/runs" + where, { method: "POST", mode, body: start });
    await reads("api/v1/runs" + where, { method: "POST", mode, body: start, headers: mode === "cors" ? json : {} });
    await reads("api/v1/runs/" + run + "/cancel" + where, { method: "POST", mode, body: "{}" });
    await reads("api/v1/runs" + where, { mode });
  }
  await reads("api/v1/runs/" + run, { method: "DELETE" });
  await streams("api/v1/runs/events" + where);
  await streams("api/v1/runs/" + run + "/events" + where);
  const image = new Image();
  await new Promise((resolve) => {
    image.onload = image.onerror = resolve;
    image.src = target + "api/v1/runs/" + run + "/cancel" + where;
  });
  return seen.filter(Boolean);
}
</script>"""


class Evil(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(ATTACK.encode())

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def evil() -> Iterator[int]:
    with serving(Evil) as port:
        yield port


def open_other(page: Page, name: str, port: int, dashboard: Dashboard, run_id: str) -> None:
    """A page of another site, which knows whom to attack."""
    page.goto(f"http://{name}:{port}/?{urlencode({'target': dashboard.url, 'run': run_id})}")


def attacked_run(dashboard: Dashboard) -> str:
    existing = dashboard.get("/runs", namespace=TARGET)["rows"]
    return existing[0]["run_id"] if existing else dashboard.start("nobody-serves-it", namespace=TARGET)


def is_untouched(dashboard: Dashboard, run_id: str) -> None:
    runs = dashboard.get("/runs", namespace=TARGET)["rows"]
    assert [(run["run_id"], run["cancel_requested"]) for run in runs] == [(run_id, False)]
    assert len(dashboard.get(f"/runs/{run_id}/steps", namespace=TARGET)["rows"]) == 0


# "localhost" is another site than 127.0.0.1. Another port of that is another origin of the same site: cookies go along.
@pytest.mark.parametrize("name", ["localhost", "127.0.0.1"])
def test_27_pages_of_other_sites_change_and_read_nothing(
    page: Page, problems: Problems, evil: int, name: str, request: pytest.FixtureRequest
) -> None:
    problems.allow(".")  # they do all that a page may not
    keyed: Keyed = request.getfixturevalue("keyed")
    dashboard: Dashboard = request.getfixturevalue("dashboard")
    keyed.log_in(page, keyed.operator)
    for attacked in (keyed.dashboard, dashboard):
        run_id = attacked_run(attacked)
        open_other(page, name, evil, attacked, run_id)
        assert [each for each in page.evaluate("attack()") if "opaque" not in each] == []
        is_untouched(attacked, run_id)
    page.goto(f"{keyed.dashboard.url}runs")
    expect(page.get_by_role("link", name="Runs").first).to_be_visible()  # the session was there all the time


AS_OUR_PAGE = {"content-type": "application/json", "kagzi-request": "1"}
WHERE_FROM = ("origin", "referer", "sec-fetch-site", "sec-fetch-mode", "sec-fetch-dest")


class Barrier(NamedTuple):
    """What a request of another site looks like if this is all that is in its way. `server`: the fixture."""

    server: str
    sent: dict[str, str]
    left_out: tuple[str, ...]
    refusal: int


# What the browser says of the page, the media type, and that a session has to prove where it is used.
BARRIERS = {
    "another origin": Barrier("dashboard", AS_OUR_PAGE, (), 403),
    "not JSON": Barrier("dashboard", {}, WHERE_FROM, 415),
    "a session without an origin": Barrier("keyed", AS_OUR_PAGE, WHERE_FROM, 403),
}


@pytest.mark.parametrize("name", BARRIERS)
def test_27_each_barrier_alone_keeps_a_page_of_another_site_out(
    page: Page, problems: Problems, evil: int, request: pytest.FixtureRequest, name: str
) -> None:
    problems.allow(".")
    barrier = BARRIERS[name]
    attacked: Dashboard | Keyed = request.getfixturevalue(barrier.server)
    if isinstance(attacked, Keyed):
        attacked.log_in(page, attacked.operator)
        attacked = attacked.dashboard
    run_id = attacked_run(attacked)
    answers: list[int] = []

    def send(route: Route) -> None:
        headers = {name: value for name, value in route.request.all_headers().items() if name not in barrier.left_out}
        answer = route.fetch(headers={**headers, **barrier.sent})
        answers.append(answer.status)
        route.fulfill(response=answer)

    open_other(page, "127.0.0.1", evil, attacked, run_id)
    page.route(f"{attacked.url}api/**", send)
    page.evaluate("post()")
    assert answers == [barrier.refusal] * 2
    is_untouched(attacked, run_id)


def test_27_another_host_name_is_turned_away(dashboard: Dashboard, page: Page, problems: Problems) -> None:
    problems.allow("status of 421", "from a page of this machine")
    answer = page.goto(dashboard.url.replace("127.0.0.1", "evil.localhost"))
    assert answer is not None
    assert answer.status == 421
    assert page.locator("#app").count() == 0


def test_27_no_page_of_another_site_frames_the_dashboard(
    dashboard: Dashboard, evil: int, page: Page, problems: Problems
) -> None:
    problems.allow(".")
    page.goto(f"http://localhost:{evil}/")
    page.evaluate(
        "url => new Promise((done) => {"
        "  const frame = document.body.appendChild(document.createElement('iframe'));"
        "  frame.onload = done; frame.src = url; })",
        dashboard.url,
    )
    assert page.frames[-1].locator("#app").count() == 0


def rows_of(dashboard: Dashboard) -> dict[str, list[str]]:
    """What the database holds, without what time changes by itself."""
    path = dashboard.database.removeprefix("sqlite:///")
    left_out = {"api_keys", "browser_sessions", "chores", "run_stats", "run_stats_hours", "rolled_up"}
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
        tables = [name for (name,) in database.execute("select name from sqlite_master where type = 'table'")]
        rows = {name: sorted(map(repr, database.execute(f"select * from {name}"))) for name in tables}
    database.close()
    return {name: listed for name, listed in rows.items() if name not in left_out}


def test_27_no_get_changes_anything(keyed: Keyed) -> None:
    dashboard = keyed.dashboard
    run_id = dashboard.start("nobody-serves-it", namespace="looked-at")
    values = {"run": run_id, "namespace": "looked-at"}
    before = rows_of(dashboard)
    answered: set[int] = set()
    for route in routes():
        path = re.sub(r"\{(\w+)\}", lambda name: values.get(name[1], "some-thing"), route.path)
        query = {"namespace": "looked-at"} if route.namespaced else {}
        if route.stream or route.waits:
            continue
        for method in ("GET", "HEAD"):
            answered.add(dashboard.api.request(method, path, params=query).status_code)
    assert {200, 404, 405} <= answered
    assert rows_of(dashboard) == before


# --- a key that may only read -----------------------------------------------------------------------------------------

SCHEDULE = {"schedule": "nightly", "workflow": "hello", "cron": "0 3 * * *"}


@pytest.fixture
def shown(keyed: Keyed) -> list[str]:
    """Pages with something on them."""
    dashboard, query = keyed.dashboard, {"namespace": "read-only"}
    runs = dashboard.get("/runs", **query)["rows"]
    if not runs:
        dashboard.start("nobody-serves-it", namespace="read-only")
        answer = dashboard.api.post("/schedules", json=SCHEDULE, params=query)
        assert answer.status_code in (200, 201), answer.text
        runs = dashboard.get("/runs", **query)["rows"]
    run_id = runs[0]["run_id"]
    paths = (
        *("runs", f"runs/{run_id}", "workflows", "workflows/nobody-serves-it", "workflows/nobody-serves-it/start"),
        *("schedules", "schedules/nightly", "workers", "inbox", "operations", "settings"),
    )
    return [f"{path}?namespace=read-only" for path in paths]


def test_27_a_key_that_may_only_read_has_no_control_that_changes_anything(
    keyed: Keyed, new_page: NewPage, shown: list[str], problems: Problems
) -> None:
    problems.allow("status of 40[134]")
    reader, operator = new_page(), new_page()
    keyed.log_in(reader, keyed.key("read-only", "read"), shown[0])
    keyed.log_in(operator, keyed.operator, shown[0])
    changes: list[str] = []
    reader.on("request", lambda request: changes.append(_line(request)) if request.method != "GET" else None)
    before = rows_of(keyed.dashboard)
    for path in shown:
        reader.goto(f"{keyed.dashboard.url}{path}")
        expect(reader.locator("main")).not_to_be_empty()
        expect(reader.locator("main .skeleton")).to_have_count(0)
        press_everything(reader)
    assert changes == []
    assert rows_of(keyed.dashboard) == before
    run_page = f"{keyed.dashboard.url}{shown[1]}"
    operator.goto(run_page)
    expect(operator.get_by_role("button", name="Terminate")).to_be_visible()
    reader.goto(run_page)
    expect(reader.get_by_role("button", name="Copy link")).to_be_visible()
    assert reader.get_by_role("button", name="Terminate").count() == 0


def press_everything(page: Page) -> None:
    """Every button of the page, and of what they open."""
    page.evaluate(
        """async () => {
          const turn = () => new Promise((resolve) => setTimeout(resolve, 20));
          for (let round = 0; round < 2; round += 1) {
            for (const button of document.querySelectorAll("main button, dialog button, [role=menuitem]")) {
              if (!button.disabled) button.click();
              await turn();
            }
          }
        }"""
    )


def _line(request: Request) -> str:
    return f"{request.method} {request.url}"


def test_27_the_server_refuses_what_a_page_of_a_reader_sends_anyway(
    keyed: Keyed, page: Page, shown: list[str], problems: Problems
) -> None:
    problems.allow("status of 401")  # before the login
    keyed.log_in(page, keyed.key("read-only", "read"), shown[0])
    run_id = keyed.dashboard.get("/runs", namespace="read-only")["rows"][0]["run_id"]
    values = {"run": run_id, "namespace": "read-only", "schedule": "nightly", "type": "nobody-serves-it"}
    before = rows_of(keyed.dashboard)
    with httpx.Client(base_url=keyed.dashboard.url, timeout=LOADED_MACHINE_S) as client:
        client.cookies.update({each["name"]: each["value"] for each in page.context.cookies()})
        own = {"sec-fetch-site": "same-origin", "content-type": "application/json", "kagzi-request": "1"}
        statuses: dict[str, int] = {}
        for route in routes():
            if route.method == "GET" or route.public or route.any_key or route.scope is Scope.READ:
                continue
            path = re.sub(r"\{(\w+)\}", lambda name: values.get(name[1], "some-thing"), route.path)
            query = {"namespace": "read-only"} if route.namespaced else {}
            answer = client.request(route.method, f"api/v1{path}", params=query, headers=own, content=json.dumps({}))
            statuses[f"{route.method} {route.path}"] = answer.status_code
    assert {name: status for name, status in statuses.items() if status != 403} == {}
    assert len(statuses) > 20
    assert rows_of(keyed.dashboard) == before

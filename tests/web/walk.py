"""A walk over the lists of runs as a person takes it, and what it asks the server for."""

from typing import NamedTuple
from urllib.parse import parse_qs, quote, urlsplit

from playwright.sync_api import Page, Request, expect

LISTS = ("All runs", "In flight", "Failing", "Failed today", "Waiting for a person", "Paused")
FRAME = ("/session", "/server", "/server/health", "/namespaces")
"""What the frame around all pages asks for; so is the count of the inbox, of one row."""


class ApiRequest(NamedTuple):
    """A request. `rows`: at most so many it wants, if it says so."""

    path: str
    query: str
    rows: int | None


class View(NamedTuple):
    name: str
    requests: list[ApiRequest]


class Requests:
    """What a page asks for, view by view. Asking the same again is not counted: that is how a list stays up to date."""

    def __init__(self, page: Page) -> None:
        self.views: list[View] = []
        self._seen: set[str] = set()
        page.on("request", self._note)

    def begin(self, name: str) -> None:
        self.views.append(View(name, []))
        self._seen.clear()

    def _note(self, request: Request) -> None:
        url = urlsplit(request.url)
        path = url.path.partition("/api/v1")[2]
        query = parse_qs(url.query)
        if not path or path in FRAME or not self.views or (path == "/runs" and query.get("size") == ["1"]):
            return
        name = f"{path}?{'&'.join(f'{key}={query[key]}' for key in sorted(query) if key not in ('since', 'until'))}"
        if name not in self._seen:
            self._seen.add(name)
            rows = query.get("size")
            self.views[-1].requests.append(ApiRequest(path, url.query, int(rows[0]) if rows else None))


def walk(page: Page, url: str, requests: Requests, *, namespace: str, workflow: str, label: str) -> None:
    """Every list, every chip, and pages forth and back."""
    where = f"?namespace={namespace}" if namespace != "default" else ""
    requests.begin("first")
    page.goto(f"{url}runs{where}")
    settled(page)
    for name in LISTS:
        requests.begin(name)
        page.get_by_role("navigation", name="Lists").get_by_role("link", name=name).click()
        expect(page.get_by_role("navigation", name="Lists").locator('[aria-current="page"]')).to_contain_text(name)
        settled(page)
    chips = [f"workflow={quote(workflow)}", f"label={quote(label)}", "status=completed", "status=pending", "since=24h"]
    for chip in (*chips, f"workflow={quote(workflow)}&status=failed&ended_since=24h"):
        requests.begin(chip)
        page.goto(f"{url}runs{where}{'&' if where else '?'}{chip}")
        settled(page)
    requests.begin("All runs again")
    page.goto(f"{url}runs{where}")
    settled(page)
    first = shown(page)
    requests.begin("Older")
    page.get_by_role("button", name="Older").click()
    page.wait_for_url("**token=**")
    expect(page.locator(f'[data-run="{first}"]')).to_have_count(0)
    settled(page)
    requests.begin("Newer")
    page.get_by_role("button", name="Newer", exact=True).click()
    expect(page.locator(f'[data-run="{first}"]')).to_have_count(1)


def shown(page: Page) -> str:
    """The id of the first run of the list."""
    return page.locator("[data-run]").first.get_attribute("data-run") or ""


def settled(page: Page) -> None:
    """The list is that of the last question: with rows, or with what to do about it."""
    page.locator(".runs-scroll:not([data-stale]), .empty h2").first.wait_for()

"""What a page may not do: say errors on its console, break the policy it came with, or ask another server."""

import re
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, ConsoleMessage, Error, Request, WebError

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


class Problems:
    """Of all pages of a context. A test that provokes some allows them, by what they say."""

    def __init__(self) -> None:
        self._problems: list[str] = []
        self._allowed: list[re.Pattern[str]] = []

    def allow(self, *patterns: str) -> None:
        self._allowed.extend(map(re.compile, patterns))

    def watch(self, context: BrowserContext) -> None:
        context.on("console", self._on_console)
        context.on("weberror", self._on_error)
        context.on("request", self._on_request)

    @property
    def unexpected(self) -> list[str]:
        return [each for each in self._problems if not any(pattern.search(each) for pattern in self._allowed)]

    def _on_console(self, message: ConsoleMessage) -> None:
        """Policies, Trusted Types among them, are reported there, too."""
        if message.type in ("error", "warning"):
            self._problems.append(f"console {message.type}: {message.text} ({message.location.get('url')})")

    def _on_error(self, error: WebError) -> None:
        self._problems.append(f"error: {error.error}")

    def _on_request(self, request: Request) -> None:
        url = urlsplit(request.url)
        if url.scheme not in ("http", "https"):
            return
        origin = f"{url.scheme}://{url.netloc}"
        if request.is_navigation_request():
            here = origin if url.hostname in LOOPBACK else "this machine"
        else:
            here = _origin(request)
        if origin != here:
            self._problems.append(f"request to {request.url} from a page of {here}")


def _origin(request: Request) -> str:
    try:
        url = urlsplit(request.frame.url)
    except Error:  # of a worker, or of a page that is gone
        return "nowhere"
    return f"{url.scheme}://{url.netloc}"

"""The path prefix of the site, as browsers see it. Every link of a page begins with it.

It is configured (`--http-base-path`) or comes from a trusted proxy (`X-Forwarded-Prefix`). From anybody else it could
redirect the links of a page to another site.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import cast

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

_FORWARDED = "x-forwarded-prefix"
_KEY = "kagzi.base"
_FIT = re.compile(r"(/[A-Za-z0-9._~-]+)+")


class BasePath:
    """Strips the configured prefix from requests, if their proxy has not. `app` sees paths without a prefix, and gets
    it from `base_of`."""

    def __init__(self, app: ASGIApp, path: str, proxies: Iterable[str]) -> None:
        self._app = app
        self._path = path
        self._raw = path.encode()
        self._proxies = tuple(map(ip_network, proxies))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope[_KEY] = f"{self._forwarded(scope) or self._path}/"
            raw = cast("bytes", scope.get("raw_path") or b"")
            if self._path and (scope["path"] == self._path or scope["path"].startswith(f"{self._path}/")):
                scope["path"] = scope["path"].removeprefix(self._path) or "/"
                scope["raw_path"] = raw.removeprefix(self._raw) or b"/"
        await self._app(scope, receive, send)

    def _forwarded(self, scope: Scope) -> str:
        """The prefix from a trusted proxy; empty if there is none. Anything but a path is ignored."""
        prefix = Headers(scope=scope).get(_FORWARDED, "").rstrip("/")
        if not _FIT.fullmatch(prefix) or not self._is_trusted(scope.get("client")):
            return ""
        return prefix

    def _is_trusted(self, client: tuple[str, int] | None) -> bool:
        return client is not None and any(_address(client[0]) in network for network in self._proxies)


def base_of(scope: Scope) -> str:
    """The prefix; begins and ends with a slash."""
    return cast("str", scope[_KEY])


@lru_cache(maxsize=100)
def _address(text: str) -> IPv4Address | IPv6Address:
    return ip_address(text)

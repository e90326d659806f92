"""Identifies the caller of an HTTP request, a program with a key or a browser with a session, and checks the host name.

A browser attaches its cookie to requests that any page triggers. So a change with a cookie must prove that a page of
this site made it: by the origin that the browser reports, and by a header and a media type that a form or a link on
another site cannot send.
"""

from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

from ...core.access import Caller
from ...core.errors import PermissionDenied, Unauthenticated
from ...engine import CALLER
from ..access.access import Access

SECURE_COOKIE = "__Host-kagzi"
"""Browsers accept it over TLS only, and for this host alone."""
PLAIN_COOKIE = "kagzi"
"""On loopback without TLS, where browsers do not accept the secure one."""
OWN_HEADER = "kagzi-request"
_LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
_SAFE = ("GET", "HEAD")
_NO_KEY = (
    "this server requires an API key, and none was given. Send `Authorization: Bearer kgz_...`, or log in with "
    "POST /api/v1/session."
)


async def caller_of(access: Access, method: str, headers: Mapping[str, str]) -> Caller:
    """`headers`: names in lower case. From here on, this task acts for the caller. Raises Unauthenticated,
    PermissionDenied, Unavailable."""
    caller = await _caller(access, method, headers)
    CALLER.set(caller)
    return caller


async def _caller(access: Access, method: str, headers: Mapping[str, str]) -> Caller:
    authorization = headers.get("authorization")
    if authorization or not access.asks:
        return await access.caller_of(authorization)
    token = session_token(headers)
    if not token:
        raise Unauthenticated(_NO_KEY)
    if method not in _SAFE:
        check_own_page(headers)
    return await access.caller_of_session(token)


def check_own_page(headers: Mapping[str, str]) -> None:
    """Raises PermissionDenied unless a page of this site made the request."""
    fetched_from, origin = headers.get("sec-fetch-site"), headers.get("origin")
    same = (
        fetched_from == "same-origin"
        if fetched_from is not None
        else origin is not None and _host(origin) == headers.get("host")
    )
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    if not same or media_type != "application/json" or headers.get(OWN_HEADER) != "1":
        raise PermissionDenied(
            "changes by a browser's session must come from a page of this site, with `Content-Type: application/json` "
            "and `Kagzi-Request: 1`. Programs send a key instead: `Authorization: Bearer kgz_...`."
        )


def _host(origin: str) -> str:
    return origin.partition("://")[2]


# --- the cookie -------------------------------------------------------------------------------------------------------


def is_plain(headers: Mapping[str, str], listens_at: str) -> bool:
    """Whether the browser is on this machine without TLS, so that it would not keep a secure cookie."""
    return not listens_at.startswith("https:") and is_local(headers.get("host", ""))


def session_token(headers: Mapping[str, str]) -> str:
    """The token in the cookie; empty if there is none."""
    try:
        cookies = SimpleCookie(headers.get("cookie", ""))
    except CookieError:
        return ""
    names = (SECURE_COOKIE, PLAIN_COOKIE) if is_local(headers.get("host", "")) else (SECURE_COOKIE,)
    return next((cookies[name].value for name in names if name in cookies), "")


def set_cookie(token: str, seconds: int, *, plain: bool) -> str:
    """The value of Set-Cookie. 0 seconds delete the cookie."""
    name, secure = (PLAIN_COOKIE, "") if plain else (SECURE_COOKIE, "; Secure")
    return f"{name}={token}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"


# --- the host ---------------------------------------------------------------------------------------------------------


def is_local(host: str) -> bool:
    """Whether a Host header names this machine."""
    return _name(host) in _LOCAL_HOSTS


def is_allowed(host: str, *, local_only: bool, hosts: tuple[str, ...]) -> bool:
    """Whether a Host header is acceptable; otherwise a web page could reach this port by DNS rebinding. On loopback:
    loopback names, and names that are allowed for a proxy."""
    if not local_only and not hosts:
        return True
    name = _name(host)
    return name in _LOCAL_HOSTS or name in {allowed.strip("[]") for allowed in hosts}


def _name(host: str) -> str:
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""

"""Authorizes the requests of the HTTP API, for every route."""

from collections.abc import Mapping

from ...core.access import ANYONE, EVERY_NAMESPACE, Caller
from ...core.errors import PermissionDenied
from .guard import caller_of
from .page_data import PageData
from .route import Route

_SAME_ORIGIN = ("same-origin", "none")


async def admitted(data: PageData, route: Route, headers: Mapping[str, str], namespace: str) -> Caller:
    """Raises Unauthenticated without a valid key, PermissionDenied if the caller lacks the scope."""
    if route.method != "GET":
        _refuse_other_sites(headers)
    if route.public:
        return ANYONE
    caller = await caller_of(data.access, route.method, headers)
    if not route.any_key:
        data.access.require(caller, route.scope, EVERY_NAMESPACE if route.everywhere else namespace)
    return caller


def _refuse_other_sites(headers: Mapping[str, str]) -> None:
    """Refuses changes that a page of another site makes in a user's browser: browsers send the origin."""
    fetched_from, origin = headers.get("sec-fetch-site"), headers.get("origin")
    same = (
        fetched_from in _SAME_ORIGIN
        if fetched_from is not None
        else origin is None or _host(origin) == headers.get("host", "")
    )
    if not same:
        raise PermissionDenied("requests of web pages of other sites are refused. Call from a program or this site.")


def _host(origin: str) -> str:
    return origin.partition("://")[2]

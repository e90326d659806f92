"""/session: a browser logs in with a key, and out."""

from ....core.access import Scope
from ....core.error_details import ErrorCode
from ....core.errors import PreconditionFailed
from ....core.times import US_PER_S
from ..guard import is_plain, session_token, set_cookie
from ..route import Answer, ApiRequest, NoQuery, Route
from ..views.keys import LogIn, SessionView, session_view


async def get(request: ApiRequest[NoQuery, None]) -> SessionView:
    """Who the caller is, and what they may do."""
    return session_view(request.caller, auth=request.data.info.auth)


async def log_in(request: ApiRequest[NoQuery, LogIn]) -> Answer:
    """Sets a cookie that is valid for 12 hours, but not longer than the key."""
    access = request.data.access
    if not access.asks:
        raise PreconditionFailed("this server does not require keys (--auth off), so there is no need to log in.")
    token, expires_at, caller = await access.log_in(request.body.key)
    seconds = max((expires_at - request.data.clock.now()) // US_PER_S, 1)
    cookie = set_cookie(token, seconds, plain=is_plain(request.headers, request.data.info.listens_at))
    view = session_view(caller, auth=request.data.info.auth, expires_at=expires_at)
    return Answer(view, 201, {"set-cookie": cookie})


async def log_out(request: ApiRequest[NoQuery, None]) -> Answer:
    """Ends the session of the cookie. Its open streams end within seconds."""
    if token := session_token(request.headers):
        await request.data.access.log_out(token)
    cookie = set_cookie("", 0, plain=is_plain(request.headers, request.data.info.listens_at))
    return Answer(None, 204, {"set-cookie": cookie})


ROUTES = (
    Route(
        method="GET",
        path="/session",
        handler=get,
        scope=Scope.READ,
        summary="Show who is calling",
        answer=SessionView,
        everywhere=True,
        any_key=True,
    ),
    Route(
        method="POST",
        path="/session",
        handler=log_in,
        scope=Scope.READ,
        summary="Log a browser in with a key",
        body=LogIn,
        answer=SessionView,
        status=201,
        errors=(ErrorCode.PRECONDITION_FAILED,),
        everywhere=True,
        public=True,
    ),
    Route(
        method="DELETE",
        path="/session",
        handler=log_out,
        scope=Scope.READ,
        summary="Log out",
        everywhere=True,
        any_key=True,
    ),
)

"""/keys: API keys. `namespace=*` is every namespace."""

from ....core.access import Scope
from ....core.error_details import ErrorCode
from ..route import ApiRequest, NoQuery, Route
from ..views.common import Paged, PageQuery, microseconds, paged, timestamp
from ..views.keys import KeyView, MadeKey, NewKeyBody, Rotation, key_view, made_key


async def list_keys(request: ApiRequest[PageQuery, None]) -> Paged[KeyView]:
    """Newest first, including keys that are no longer valid. Secrets are never shown."""
    return paged(await request.data.engine.keys.list(request.namespace, request.query.page), key_view)


async def create(request: ApiRequest[NoQuery, NewKeyBody]) -> MadeKey:
    """The secret is shown once. Repeating the request with the same Idempotency-Key creates no second key; its response
    contains another secret, and both are valid."""
    body = request.body
    made = await request.data.engine.keys.create(
        request.namespace,
        body.name,
        body.scopes,
        expires_at=timestamp(body.expires_at, "expires_at"),
        request_id=request.request_id,
    )
    return made_key(made)


async def rotate(request: ApiRequest[NoQuery, Rotation]) -> MadeKey:
    """A new secret, shown once; older ones stay valid for the grace period."""
    made = await request.data.engine.keys.rotate(
        request.namespace,
        request.path["key_id"],
        grace_us=microseconds(request.body.grace, "grace") or 0,
        request_id=request.request_id,
    )
    return made_key(made)


async def revoke(request: ApiRequest[NoQuery, None]) -> KeyView:
    """Permanent. Takes effect on every server within 10 s, also for open streams."""
    return key_view(await request.data.engine.keys.revoke(request.namespace, request.path["key_id"]))


ROUTES = (
    Route(
        method="GET",
        path="/keys",
        handler=list_keys,
        scope=Scope.ADMIN,
        summary="List keys",
        query=PageQuery,
        answer=Paged[KeyView],
        large=True,
    ),
    Route(
        method="POST",
        path="/keys",
        handler=create,
        scope=Scope.ADMIN,
        summary="Create a key",
        body=NewKeyBody,
        answer=MadeKey,
        status=201,
        errors=(ErrorCode.CONFLICT, ErrorCode.PRECONDITION_FAILED),
    ),
    Route(
        method="POST",
        path="/keys/{key_id}/rotate",
        handler=rotate,
        scope=Scope.ADMIN,
        summary="Give a key a new secret",
        body=Rotation,
        answer=MadeKey,
        errors=(ErrorCode.NOT_FOUND, ErrorCode.PRECONDITION_FAILED),
    ),
    Route(
        method="DELETE",
        path="/keys/{key_id}",
        handler=revoke,
        scope=Scope.ADMIN,
        summary="Revoke a key",
        answer=KeyView,
        errors=(ErrorCode.NOT_FOUND,),
    ),
)

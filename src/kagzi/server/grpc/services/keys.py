"""KeyService: API keys and the audit log."""

from ....engine import Engine
from ....v1 import key_pb2 as pb
from ....wire.admin import write_audit, write_key
from ....wire.common import read_duration_us, read_time_if
from ..paging import read_page, write_page


class KeyService:
    def __init__(self, engine: Engine) -> None:
        self._keys = engine.keys
        self._audit = engine.audit

    async def CreateKey(self, request: pb.CreateKeyRequest) -> pb.CreateKeyResponse:
        made = await self._keys.create(
            request.namespace_id,
            request.name,
            request.scopes,
            expires_at=read_time_if(request, "expires_at"),
            request_id=request.request_id,
        )
        return pb.CreateKeyResponse(key=write_key(made.key), secret=made.text)

    async def ListKeys(self, request: pb.ListKeysRequest) -> pb.ListKeysResponse:
        page = await self._keys.list(request.namespace_id, read_page(request.page))
        return pb.ListKeysResponse(keys=[write_key(key) for key in page.rows], page=write_page(page))

    async def RotateKey(self, request: pb.RotateKeyRequest) -> pb.RotateKeyResponse:
        made = await self._keys.rotate(
            request.namespace_id,
            request.key_id,
            grace_us=read_duration_us(request.grace),
            request_id=request.request_id,
        )
        return pb.RotateKeyResponse(key=write_key(made.key), secret=made.text)

    async def RevokeKey(self, request: pb.RevokeKeyRequest) -> pb.RevokeKeyResponse:
        return pb.RevokeKeyResponse(key=write_key(await self._keys.revoke(request.namespace_id, request.key_id)))

    async def ListAudit(self, request: pb.ListAuditRequest) -> pb.ListAuditResponse:
        page = await self._audit.list(
            request.namespace_id,
            read_page(request.page),
            since=read_time_if(request, "since"),
            until=read_time_if(request, "until"),
        )
        return pb.ListAuditResponse(entries=[write_audit(entry) for entry in page.rows], page=write_page(page))

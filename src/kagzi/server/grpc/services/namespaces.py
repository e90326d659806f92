"""NamespaceService: tenants and their limits."""

import msgspec

from ....core.errors import InvalidArgument
from ....engine import Engine
from ....v1 import namespace_pb2 as pb
from ....wire.common import read_namespace
from ....wire.namespaces import read_namespace_fields, read_new_namespace, write_namespace
from ..paging import read_page, write_page


class NamespaceService:
    def __init__(self, engine: Engine) -> None:
        self._namespaces = engine.namespaces

    async def CreateNamespace(self, request: pb.CreateNamespaceRequest) -> pb.CreateNamespaceResponse:
        """A new namespace is always enabled; update it to change that."""
        record = read_new_namespace(request.namespace, request.namespace_id)
        _refuse_answers(request.namespace)
        created = await self._namespaces.create(msgspec.structs.replace(record, enabled=True))
        return pb.CreateNamespaceResponse(namespace=write_namespace(created))

    async def GetNamespace(self, request: pb.GetNamespaceRequest) -> pb.GetNamespaceResponse:
        record = await self._namespaces.get(read_namespace(request.namespace_id))
        return pb.GetNamespaceResponse(namespace=write_namespace(record))

    async def ListNamespaces(self, request: pb.ListNamespacesRequest) -> pb.ListNamespacesResponse:
        page = await self._namespaces.list(read_page(request.page))
        return pb.ListNamespacesResponse(
            namespaces=[write_namespace(record) for record in page.rows], page=write_page(page)
        )

    async def UpdateNamespace(self, request: pb.UpdateNamespaceRequest) -> pb.UpdateNamespaceResponse:
        _refuse_answers(request.namespace)
        record = read_new_namespace(request.namespace, request.namespace_id)
        updated = await self._namespaces.update(record, read_namespace_fields(request.fields))
        return pb.UpdateNamespaceResponse(namespace=write_namespace(updated))

    async def DeleteNamespace(self, request: pb.DeleteNamespaceRequest) -> pb.DeleteNamespaceResponse:
        await self._namespaces.delete(request.namespace_id, confirm=request.confirm)
        return pb.DeleteNamespaceResponse(deleted=True)


def _refuse_answers(message: pb.Namespace) -> None:
    """Raises InvalidArgument for fields that only the server sets."""
    for field in ("created_at", "stored_bytes", "stored_bytes_at"):
        if message.HasField(field):
            raise InvalidArgument(f"namespace.{field} cannot be set. Leave it out.", field=f"namespace.{field}")
    if message.deleting:
        raise InvalidArgument("namespace.deleting cannot be set. Use DeleteNamespace.", field="namespace.deleting")

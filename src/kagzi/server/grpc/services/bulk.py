"""The part of WorkflowService about operations on many runs."""

from ....engine import Bulk
from ....v1 import workflow_pb2 as pb
from ....wire.bulk import read_bulk_action, write_bulk
from ....wire.runs import read_where
from ..paging import read_page, write_page


class BulkService:
    _bulk: Bulk

    async def StartBulkOperation(self, request: pb.StartBulkOperationRequest) -> pb.BulkOperation:
        operation = await self._bulk.start(
            request.namespace_id,
            read_bulk_action(request.action),
            read_where(request.filter),
            reason=request.reason,
            request_id=request.request_id,
        )
        return write_bulk(operation)

    async def GetBulkOperation(self, request: pb.GetBulkOperationRequest) -> pb.BulkOperation:
        return write_bulk(await self._bulk.get(request.namespace_id, request.operation_id))

    async def StopBulkOperation(self, request: pb.StopBulkOperationRequest) -> pb.BulkOperation:
        return write_bulk(await self._bulk.stop(request.namespace_id, request.operation_id))

    async def ListBulkOperations(self, request: pb.ListBulkOperationsRequest) -> pb.ListBulkOperationsResponse:
        page = await self._bulk.list(request.namespace_id, read_page(request.page))
        return pb.ListBulkOperationsResponse(
            operations=[write_bulk(operation) for operation in page.rows], page=write_page(page)
        )

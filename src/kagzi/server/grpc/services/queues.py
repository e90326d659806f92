"""The part of AdminService about workflow types and their queues."""

from ....engine import LIMITS_WAIT, Engine, Named
from ....v1 import admin_pb2 as pb
from ....wire.common import read_namespace, read_type
from ....wire.queues import read_limits, write_standing, write_type
from ..interceptor import Context
from ..paging import read_page, write_page


class QueueAdmin:
    _engine: Engine

    async def ListWorkflowTypes(
        self, request: pb.ListWorkflowTypesRequest, context: Context
    ) -> pb.ListWorkflowTypesResponse:
        page = await self._engine.queues.list(
            read_namespace(request.namespace_id),
            read_page(request.page),
            workflow_type=read_type(request.workflow_type),
        )
        return pb.ListWorkflowTypesResponse(types=[write_type(record) for record in page.rows], page=write_page(page))

    async def UpdateWorkflowType(
        self, request: pb.UpdateWorkflowTypeRequest, context: Context
    ) -> pb.UpdateWorkflowTypeResponse:
        type_message = request.type
        record = await self._engine.queues.update(
            read_namespace(request.namespace_id),
            read_type(type_message.workflow_type),
            read_limits(type_message),
            request.fields,
        )
        named = Named(read_namespace(request.namespace_id), record.workflow_type)
        warning = await self._engine.served.warning(named, LIMITS_WAIT)
        return pb.UpdateWorkflowTypeResponse(type=write_type(record), warning=warning)

    async def PauseWorkflowType(
        self, request: pb.PauseWorkflowTypeRequest, context: Context
    ) -> pb.PauseWorkflowTypeResponse:
        record = await self._engine.queues.pause(read_namespace(request.namespace_id), read_type(request.workflow_type))
        return pb.PauseWorkflowTypeResponse(type=write_type(record))

    async def ResumeWorkflowType(
        self, request: pb.ResumeWorkflowTypeRequest, context: Context
    ) -> pb.ResumeWorkflowTypeResponse:
        record = await self._engine.queues.resume(
            read_namespace(request.namespace_id), read_type(request.workflow_type)
        )
        return pb.ResumeWorkflowTypeResponse(type=write_type(record))

    async def GetQueueDepth(self, request: pb.GetQueueDepthRequest, context: Context) -> pb.GetQueueDepthResponse:
        queues = await self._engine.queues.depths(
            read_namespace(request.namespace_id), read_type(request.workflow_type)
        )
        return pb.GetQueueDepthResponse(queues=[write_standing(each) for each in queues])

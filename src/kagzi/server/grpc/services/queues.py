"""The part of AdminService about workflow types and their queues."""

from ....engine import LIMITS_WAIT, Engine, Named
from ....v1 import admin_pb2 as pb
from ....wire.common import read_type
from ....wire.queues import read_limits, write_standing, write_type
from ....wire.schemas import write_schema
from ..paging import read_page, write_page


class QueueAdmin:
    _engine: Engine

    async def ListWorkflowTypes(self, request: pb.ListWorkflowTypesRequest) -> pb.ListWorkflowTypesResponse:
        page = await self._engine.queues.list(
            request.namespace_id,
            read_page(request.page),
            workflow_type=read_type(request.workflow_type),
        )
        return pb.ListWorkflowTypesResponse(types=[write_type(record) for record in page.rows], page=write_page(page))

    async def UpdateWorkflowType(self, request: pb.UpdateWorkflowTypeRequest) -> pb.UpdateWorkflowTypeResponse:
        type_message = request.type
        record = await self._engine.queues.update(
            request.namespace_id,
            read_type(type_message.workflow_type),
            read_limits(type_message),
            request.fields,
        )
        named = Named(request.namespace_id, record.workflow_type)
        warning = await self._engine.served.warning(named, LIMITS_WAIT)
        return pb.UpdateWorkflowTypeResponse(type=write_type(record), warning=warning)

    async def PauseWorkflowType(self, request: pb.PauseWorkflowTypeRequest) -> pb.PauseWorkflowTypeResponse:
        record = await self._engine.queues.pause(request.namespace_id, read_type(request.workflow_type))
        return pb.PauseWorkflowTypeResponse(type=write_type(record))

    async def ResumeWorkflowType(self, request: pb.ResumeWorkflowTypeRequest) -> pb.ResumeWorkflowTypeResponse:
        record = await self._engine.queues.resume(request.namespace_id, read_type(request.workflow_type))
        return pb.ResumeWorkflowTypeResponse(type=write_type(record))

    async def GetWorkflowSchema(self, request: pb.GetWorkflowSchemaRequest) -> pb.GetWorkflowSchemaResponse:
        workflow_type = read_type(request.workflow_type)
        record = await self._engine.schemas.get(request.namespace_id, workflow_type, request.version)
        return pb.GetWorkflowSchemaResponse(schema=write_schema(record))

    async def GetQueueDepth(self, request: pb.GetQueueDepthRequest) -> pb.GetQueueDepthResponse:
        queues = await self._engine.queues.depths(request.namespace_id, read_type(request.workflow_type))
        return pb.GetQueueDepthResponse(queues=[write_standing(each) for each in queues])

"""The part of AdminService about workers and the versions they serve."""

from ....engine import BY_OPERATOR, Engine
from ....v1 import admin_pb2 as pb
from ....wire.admin import write_version
from ....wire.common import read_type
from ....wire.workers import read_worker_status, write_worker, write_worker_event
from ..paging import read_page, write_page


class WorkerAdmin:
    def __init__(self, engine: Engine) -> None:
        self._workers = engine.workers
        self._versions = engine.versions

    async def ListWorkers(self, request: pb.ListWorkersRequest) -> pb.ListWorkersResponse:
        page = await self._workers.list(
            request.namespace_id,
            workflow_type=read_type(request.task_queue) or None,
            status=read_worker_status(request.status_filter) if request.status_filter else None,
            page=read_page(request.page),
        )
        return pb.ListWorkersResponse(workers=[write_worker(worker) for worker in page.rows], page=write_page(page))

    async def GetWorker(self, request: pb.GetWorkerRequest) -> pb.GetWorkerResponse:
        worker = await self._workers.get(request.namespace_id, request.worker_id)
        return pb.GetWorkerResponse(worker=write_worker(worker))

    async def DrainWorker(self, request: pb.DrainWorkerRequest) -> pb.DrainWorkerResponse:
        worker = await self._workers.drain(request.namespace_id, request.worker_id, BY_OPERATOR)
        return pb.DrainWorkerResponse(worker=write_worker(worker))

    async def ListWorkerEvents(self, request: pb.ListWorkerEventsRequest) -> pb.ListWorkerEventsResponse:
        page = await self._workers.events(request.namespace_id, request.worker_id, read_page(request.page))
        return pb.ListWorkerEventsResponse(
            events=[write_worker_event(event) for event in page.rows], page=write_page(page)
        )

    async def ListVersions(self, request: pb.ListVersionsRequest) -> pb.ListVersionsResponse:
        page = await self._versions.list(
            request.namespace_id, read_type(request.workflow_type), read_page(request.page)
        )
        return pb.ListVersionsResponse(versions=[write_version(record) for record in page.rows], page=write_page(page))

    async def SetDefaultVersion(self, request: pb.SetDefaultVersionRequest) -> pb.SetDefaultVersionResponse:
        record = await self._versions.set_default(
            request.namespace_id, read_type(request.workflow_type), request.version
        )
        return pb.SetDefaultVersionResponse(version=write_version(record))

    async def DeprecateVersion(self, request: pb.DeprecateVersionRequest) -> pb.DeprecateVersionResponse:
        record = await self._versions.deprecate(
            request.namespace_id, read_type(request.workflow_type), request.version, undo=request.undo
        )
        return pb.DeprecateVersionResponse(version=write_version(record))

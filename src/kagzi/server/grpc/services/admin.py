"""AdminService: the views for operators."""

from ....core.errors import InvalidArgument
from ....core.providers import Clock
from ....engine import Engine
from ....v1 import admin_pb2 as pb
from ....wire.admin import write_bucket
from ....wire.common import read_time_if, read_type, write_time
from ....wire.steps import write_step, write_step_log
from ....wire.timeline import read_timeline_query, write_timeline
from ...health import Health
from ...info import ServerInfo, write_info
from ..paging import read_page, write_page
from .queues import QueueAdmin
from .worker_admin import WorkerAdmin


class AdminService(WorkerAdmin, QueueAdmin):
    def __init__(self, engine: Engine, *, clock: Clock, health: Health, info: ServerInfo) -> None:
        super().__init__(engine)
        self._engine = engine
        self._clock = clock
        self._health = health
        self._info = info

    async def GetStep(self, request: pb.GetStepRequest) -> pb.GetStepResponse:
        namespace, run_id, step_id = request.namespace_id, request.run_id, request.step_id
        if not run_id:
            run_id, step_id = await self._engine.steps.find(namespace, step_id)
        step = await self._engine.steps.get(namespace, run_id, step_id, retry_seq=request.retry_seq)
        return pb.GetStepResponse(step=write_step(step))

    async def ListSteps(self, request: pb.ListStepsRequest) -> pb.ListStepsResponse:
        _require_run_id(request.run_id)
        page = await self._engine.steps.list(
            request.namespace_id,
            request.run_id,
            name=request.step_name or None,
            page=read_page(request.page),
            payloads=request.include_payloads,
            forgotten=request.forgotten,
        )
        return pb.ListStepsResponse(steps=[write_step(step) for step in page.rows], page=write_page(page))

    async def GetTimeline(self, request: pb.GetTimelineRequest) -> pb.GetTimelineResponse:
        _require_run_id(request.run_id)
        query = read_timeline_query(request)
        return write_timeline(await self._engine.steps.timeline(request.namespace_id, request.run_id, query))

    async def ListStepLogs(self, request: pb.ListStepLogsRequest) -> pb.ListStepLogsResponse:
        _require_run_id(request.run_id)
        page = await self._engine.workers.step_logs.list(
            request.namespace_id, request.run_id, step_id=request.step_id, page=read_page(request.page)
        )
        logs = [write_step_log(log, request.run_id) for log in page.rows]
        return pb.ListStepLogsResponse(logs=logs, page=write_page(page))

    async def GetStats(self, request: pb.GetStatsRequest) -> pb.GetStatsResponse:
        figures = await self._engine.stats.get(
            request.namespace_id,
            since=read_time_if(request, "since"),
            until=read_time_if(request, "until"),
            workflow_type=read_type(request.workflow_type),
            step=request.step,
        )
        return pb.GetStatsResponse(
            buckets=[write_bucket(bucket) for bucket in figures.buckets],
            open_by_status={status.value: count for status, count in figures.open_by_status.items()},
            open_is_capped=figures.open_is_capped,
            step=figures.step,
        )

    async def HealthCheck(self, request: pb.HealthCheckRequest) -> pb.HealthCheckResponse:
        problem = self._health.problem(request.service)
        serving = pb.HealthCheckResponse.SERVING if problem is None else pb.HealthCheckResponse.NOT_SERVING
        return pb.HealthCheckResponse(
            status=serving, message=problem or "serving", timestamp=write_time(self._clock.now())
        )

    async def GetServerInfo(self, request: pb.GetServerInfoRequest) -> pb.GetServerInfoResponse:
        response = write_info(self._info)
        response.now.CopyFrom(write_time(self._clock.now()))
        response.store_problem = self._engine.store_problem()
        return response


def _require_run_id(run_id: str) -> None:
    if not run_id:
        raise InvalidArgument("run_id is empty. Steps are named within a run.", field="run_id")

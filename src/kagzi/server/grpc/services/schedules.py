"""WorkflowScheduleService: runs started on a schedule."""

from ....core.errors import InvalidArgument
from ....core.schedules.changes import changed
from ....core.schedules.schedule import ScheduleRecord, ScheduleSpec
from ....engine import RUNS_WAIT, Named, Schedules, ServedTypes
from ....v1 import workflow_schedule_pb2 as pb
from ....wire.common import QUEUE_IGNORED, own_queue, read_duration_us, read_time_if, read_type, write_time
from ....wire.schedules import (
    read_changes,
    read_required_time,
    read_schedule_request,
    write_fire,
    write_schedule,
)
from ..paging import read_page, write_page


class WorkflowScheduleService:
    def __init__(self, schedules: Schedules, served: ServedTypes) -> None:
        self._schedules = schedules
        self._served = served

    async def CreateWorkflowSchedule(
        self, request: pb.CreateWorkflowScheduleRequest
    ) -> pb.CreateWorkflowScheduleResponse:
        schedule = read_schedule_request(request)
        record = await self._schedules.create(
            schedule.namespace,
            schedule.schedule_id,
            schedule.spec,
            enabled=schedule.enabled is not False,
            request_id=schedule.request_id,
        )
        warning = await self._warning(record, request.task_queue)
        return pb.CreateWorkflowScheduleResponse(schedule=write_schedule(record), warning=warning)

    async def UpsertWorkflowSchedule(
        self, request: pb.UpsertWorkflowScheduleRequest
    ) -> pb.UpsertWorkflowScheduleResponse:
        if not request.HasField("schedule"):
            raise InvalidArgument("schedule is missing. Say what it should be.", field="schedule")
        schedule = read_schedule_request(request.schedule, namespace_id=request.namespace_id)
        record, created = await self._schedules.upsert(
            schedule.namespace,
            schedule.schedule_id,
            schedule.spec,
            enabled=schedule.enabled,
            request_id=schedule.request_id,
        )
        warning = await self._warning(record, request.schedule.task_queue)
        return pb.UpsertWorkflowScheduleResponse(schedule=write_schedule(record), created=created, warning=warning)

    async def _warning(self, record: ScheduleRecord, task_queue: str) -> str:
        """The warning if no worker serves the workflow that the schedule starts, or a task queue has no effect."""
        named = Named(record.namespace, record.spec.workflow_type, record.spec.version)
        unserved = await self._served.warning(named, RUNS_WAIT)
        queue = QUEUE_IGNORED if own_queue(task_queue, record.spec.workflow_type) else ""
        return " ".join(filter(None, (queue, unserved)))

    async def GetWorkflowSchedule(self, request: pb.GetWorkflowScheduleRequest) -> pb.GetWorkflowScheduleResponse:
        record = await self._schedules.get(request.namespace_id, request.schedule_id)
        return pb.GetWorkflowScheduleResponse(schedule=write_schedule(record))

    async def ListWorkflowSchedules(self, request: pb.ListWorkflowSchedulesRequest) -> pb.ListWorkflowSchedulesResponse:
        page = await self._schedules.list(
            request.namespace_id, read_type(request.task_queue) or None, read_page(request.page)
        )
        return pb.ListWorkflowSchedulesResponse(
            schedules=[write_schedule(record, payloads=request.include_payloads) for record in page.rows],
            page=write_page(page),
        )

    async def UpdateWorkflowSchedule(
        self, request: pb.UpdateWorkflowScheduleRequest
    ) -> pb.UpdateWorkflowScheduleResponse:
        changes = read_changes(request)
        enabled = request.enabled if request.HasField("enabled") else None

        def alter(was: ScheduleRecord) -> ScheduleRecord:
            return changed(was, changes, enabled=enabled)

        record = await self._schedules.change(
            request.namespace_id,
            request.schedule_id,
            alter,
            next_fire_at=read_time_if(request, "next_fire_at"),
        )
        warning = await self._warning(record, request.task_queue)
        return pb.UpdateWorkflowScheduleResponse(schedule=write_schedule(record), warning=warning)

    async def DeleteWorkflowSchedule(
        self, request: pb.DeleteWorkflowScheduleRequest
    ) -> pb.DeleteWorkflowScheduleResponse:
        deleted = await self._schedules.delete(request.namespace_id, request.schedule_id)
        return pb.DeleteWorkflowScheduleResponse(deleted=deleted)

    async def PauseWorkflowSchedule(self, request: pb.PauseWorkflowScheduleRequest) -> pb.PauseWorkflowScheduleResponse:
        record = await self._schedules.pause(request.namespace_id, request.schedule_id, request.reason)
        return pb.PauseWorkflowScheduleResponse(schedule=write_schedule(record))

    async def ResumeWorkflowSchedule(
        self, request: pb.ResumeWorkflowScheduleRequest
    ) -> pb.ResumeWorkflowScheduleResponse:
        record = await self._schedules.resume(request.namespace_id, request.schedule_id)
        return pb.ResumeWorkflowScheduleResponse(schedule=write_schedule(record))

    async def TriggerWorkflowSchedule(
        self, request: pb.TriggerWorkflowScheduleRequest
    ) -> pb.TriggerWorkflowScheduleResponse:
        run_id, workflow_id = await self._schedules.trigger(
            request.namespace_id, request.schedule_id, request.request_id
        )
        return pb.TriggerWorkflowScheduleResponse(run_id=run_id, workflow_id=workflow_id)

    async def BackfillWorkflowSchedule(
        self, request: pb.BackfillWorkflowScheduleRequest
    ) -> pb.BackfillWorkflowScheduleResponse:
        """`request_id` is not stored: a scheduled time that has a run never gets another."""
        fires = await self._schedules.backfill(
            request.namespace_id,
            request.schedule_id,
            read_required_time(request, "from"),
            read_required_time(request, "to"),
        )
        return pb.BackfillWorkflowScheduleResponse(fires=[write_fire(fire) for fire in fires])

    async def PreviewWorkflowSchedule(
        self, request: pb.PreviewWorkflowScheduleRequest
    ) -> pb.PreviewWorkflowScheduleResponse:
        times = await self._schedules.preview(
            request.namespace_id,
            request.schedule_id,
            _unsaved(request),
            count=request.count,
            after=read_time_if(request, "after"),
        )
        return pb.PreviewWorkflowScheduleResponse(fires=[write_time(at) for at in times])

    async def ListWorkflowScheduleRuns(
        self, request: pb.ListWorkflowScheduleRunsRequest
    ) -> pb.ListWorkflowScheduleRunsResponse:
        page = await self._schedules.fires(request.namespace_id, request.schedule_id, read_page(request.page))
        return pb.ListWorkflowScheduleRunsResponse(
            fires=[write_fire(fire) for fire in page.rows], page=write_page(page)
        )


def _unsaved(request: pb.PreviewWorkflowScheduleRequest) -> ScheduleSpec | None:
    """The unsaved schedule to preview, if the request contains one."""
    if not (request.cron_expr or request.timezone or request.HasField("interval")):
        return None
    return ScheduleSpec(
        workflow_type="-",
        cron_expr=request.cron_expr,
        timezone=request.timezone,
        interval_us=read_duration_us(request.interval) if request.HasField("interval") else None,
    )

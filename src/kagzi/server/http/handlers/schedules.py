"""/schedules: runs started on a schedule."""

from typing import Any

from ....core.access import Scope
from ....core.error_details import ErrorCode
from ....core.records import RunKey
from ....core.schedules.changes import changed
from ....core.schedules.schedule import ScheduleRecord
from ....core.times import from_datetime
from ....core.workflow_types.names import canonical_type
from ....engine import RUNS_WAIT, Named
from ..route import ApiRequest, NoQuery, Route
from ..views.common import Paged, PageQuery, paged, timestamp, whole
from ..views.schedules import (
    BackfillIn,
    DeletedSchedule,
    FireView,
    NewSchedule,
    PauseIn,
    PreviewIn,
    PreviewQuery,
    SavedSchedule,
    ScheduleChanges,
    ScheduleListQuery,
    ScheduleView,
    TimeView,
    TriggeredView,
    UpsertIn,
    changes_of,
    fire_view,
    saved_view,
    schedule_view,
    spec_of,
    time_view,
    unsaved_spec,
)

# --- creating and changing --------------------------------------------------------------------------------------------


async def create(request: ApiRequest[NoQuery, NewSchedule]) -> SavedSchedule:
    body = request.body
    record = await request.data.engine.schedules.create(
        request.namespace,
        body.schedule or "",
        spec_of(body),
        enabled=body.enabled is not False,
        request_id=request.request_id,
    )
    return await _saved(request, record, created=True)


async def upsert(request: ApiRequest[NoQuery, UpsertIn]) -> SavedSchedule:
    record, created = await request.data.engine.schedules.upsert(
        request.namespace,
        request.path["schedule"],
        spec_of(request.body),
        enabled=request.body.enabled,
        request_id=request.request_id,
    )
    return await _saved(request, record, created=created)


async def change(request: ApiRequest[NoQuery, ScheduleChanges]) -> SavedSchedule:
    body, changes = request.body, changes_of(request.body)
    record = await request.data.engine.schedules.change(
        request.namespace,
        request.path["schedule"],
        lambda was: changed(was, changes, enabled=body.enabled),
        next_fire_at=body.next_fire_at,
    )
    return await _saved(request, record, created=False)


async def _saved(request: ApiRequest[Any, Any], record: ScheduleRecord, *, created: bool) -> SavedSchedule:
    named = Named(record.namespace, record.spec.workflow_type, record.spec.version)
    return saved_view(record, created=created, warning=await request.data.engine.served.warning(named, RUNS_WAIT))


async def pause(request: ApiRequest[NoQuery, PauseIn]) -> ScheduleView:
    reason = request.body.reason
    return schedule_view(await request.data.engine.schedules.pause(request.namespace, request.path["schedule"], reason))


async def resume(request: ApiRequest[NoQuery, None]) -> ScheduleView:
    return schedule_view(await request.data.engine.schedules.resume(request.namespace, request.path["schedule"]))


async def delete(request: ApiRequest[NoQuery, None]) -> DeletedSchedule:
    schedule_id = request.path["schedule"]
    deleted = await request.data.engine.schedules.delete(request.namespace, schedule_id)
    return DeletedSchedule(schedule=schedule_id, deleted=deleted)


# --- reading ----------------------------------------------------------------------------------------------------------


async def list_schedules(request: ApiRequest[ScheduleListQuery, None]) -> Paged[ScheduleView]:
    query = request.query
    page = await request.data.engine.schedules.list(
        request.namespace, canonical_type(query.workflow or "") or None, query.page
    )
    return paged(page, lambda record: schedule_view(record, payloads=query.payloads))


async def get(request: ApiRequest[NoQuery, None]) -> ScheduleView:
    return schedule_view(await request.data.engine.schedules.get(request.namespace, request.path["schedule"]))


async def list_fires(request: ApiRequest[PageQuery, None]) -> Paged[FireView]:
    page = await request.data.engine.schedules.fires(request.namespace, request.path["schedule"], request.query.page)
    return paged(page, fire_view)


async def preview(request: ApiRequest[PreviewQuery, None]) -> Paged[TimeView]:
    query, schedules = request.query, request.data.engine.schedules
    record = await schedules.get(request.namespace, request.path["schedule"])
    after = timestamp(query.after, "after")
    times = await schedules.preview(request.namespace, record.schedule_id, None, count=query.count, after=after)
    return whole(times, time_view(record.spec.timezone))


async def preview_unsaved(request: ApiRequest[NoQuery, PreviewIn]) -> Paged[TimeView]:
    body = request.body
    spec, after = unsaved_spec(body), timestamp(body.after, "after")
    times = await request.data.engine.schedules.preview(request.namespace, "", spec, count=body.count, after=after)
    return whole(times, time_view(spec.timezone))


# --- outside of its times ---------------------------------------------------------------------------------------------


async def trigger(request: ApiRequest[NoQuery, None]) -> TriggeredView:
    run_id, workflow_id = await request.data.engine.schedules.trigger(
        request.namespace, request.path["schedule"], request.request_id
    )
    url = request.data.info.url_of(RunKey(request.namespace, run_id))
    return TriggeredView(run_id=run_id, workflow_id=workflow_id, url=url or None)


async def backfill(request: ApiRequest[NoQuery, BackfillIn]) -> Paged[FireView]:
    begin, end = from_datetime(request.body.begin, what="from"), from_datetime(request.body.end, what="to")
    fires = await request.data.engine.schedules.backfill(request.namespace, request.path["schedule"], begin, end)
    return whole(fires, fire_view)


_LIMITED = (ErrorCode.RESOURCE_EXHAUSTED,)
_ONE = (ErrorCode.NOT_FOUND,)

ROUTES = (
    Route(
        method="GET",
        path="/schedules",
        handler=list_schedules,
        scope=Scope.READ,
        summary="List schedules, newest first",
        query=ScheduleListQuery,
        answer=Paged[ScheduleView],
        large=True,
    ),
    Route(
        method="POST",
        path="/schedules",
        handler=create,
        scope=Scope.CLIENT,
        summary="Create a schedule",
        body=NewSchedule,
        answer=SavedSchedule,
        status=201,
        errors=(ErrorCode.CONFLICT, *_LIMITED),
        large=True,
    ),
    Route(
        method="POST",
        path="/schedules/preview",
        handler=preview_unsaved,
        scope=Scope.READ,
        summary="Get the next times of an expression that is not saved",
        body=PreviewIn,
        answer=Paged[TimeView],
    ),
    Route(
        method="GET",
        path="/schedules/{schedule}",
        handler=get,
        scope=Scope.READ,
        summary="Get a schedule",
        answer=ScheduleView,
        errors=_ONE,
        large=True,
    ),
    Route(
        method="PUT",
        path="/schedules/{schedule}",
        handler=upsert,
        scope=Scope.CLIENT,
        summary="Create a schedule, or change it to be as given; one that says the same already is left alone",
        body=UpsertIn,
        answer=SavedSchedule,
        errors=_LIMITED,
        large=True,
    ),
    Route(
        method="PATCH",
        path="/schedules/{schedule}",
        handler=change,
        scope=Scope.CLIENT,
        summary="Change the given fields of a schedule; its times are computed again from now on",
        body=ScheduleChanges,
        answer=SavedSchedule,
        errors=_ONE,
        large=True,
    ),
    Route(
        method="DELETE",
        path="/schedules/{schedule}",
        handler=delete,
        scope=Scope.CLIENT,
        summary="Delete a schedule; its runs stay",
        answer=DeletedSchedule,
        errors=_ONE,
    ),
    Route(
        method="POST",
        path="/schedules/{schedule}/pause",
        handler=pause,
        scope=Scope.CLIENT,
        summary="Pause a schedule; times that pass while it is paused are not caught up with",
        body=PauseIn,
        answer=ScheduleView,
        errors=_ONE,
        large=True,
    ),
    Route(
        method="POST",
        path="/schedules/{schedule}/resume",
        handler=resume,
        scope=Scope.CLIENT,
        summary="Resume a paused schedule at its next time",
        answer=ScheduleView,
        errors=_ONE,
        large=True,
    ),
    Route(
        method="POST",
        path="/schedules/{schedule}/trigger",
        handler=trigger,
        scope=Scope.CLIENT,
        summary="Start a run of a schedule now, even if it is paused",
        answer=TriggeredView,
        errors=(*_ONE, ErrorCode.PRECONDITION_FAILED, *_LIMITED),
    ),
    Route(
        method="POST",
        path="/schedules/{schedule}/backfill",
        handler=backfill,
        scope=Scope.CLIENT,
        summary="Start runs for past times of a schedule that have none",
        body=BackfillIn,
        answer=Paged[FireView],
        errors=(*_ONE, *_LIMITED),
        large=True,
    ),
    Route(
        method="GET",
        path="/schedules/{schedule}/fires",
        handler=list_fires,
        scope=Scope.READ,
        summary="List what became of the past times of a schedule, newest first",
        query=PageQuery,
        answer=Paged[FireView],
        errors=_ONE,
        large=True,
    ),
    Route(
        method="GET",
        path="/schedules/{schedule}/preview",
        handler=preview,
        scope=Scope.READ,
        summary="Get the next times of a schedule, paused or not",
        query=PreviewQuery,
        answer=Paged[TimeView],
        errors=_ONE,
    ),
)

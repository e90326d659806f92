"""Applies the schedules that a program declares, and handles those that it no longer declares."""

import logging
from collections.abc import AsyncIterator, Iterable
from typing import Any, cast, get_args

import msgspec

from ....core.errors import InvalidArgument, PreconditionFailed
from ....core.limits import NAME_BYTES
from ....system import SystemIds
from ....v1 import workflow_schedule_pb2 as pb
from ....wire.requests import write_schedule_request
from ...transport.connection import Connection
from ...workflow.codec import ANY
from ...workflow.workflow import Workflow
from ..backend import PAGE_ROWS
from ..unserved import UNSERVED
from .schedule_options import DeclaredSchedule, ScheduleOptions, checked_schedules, schedule_request
from .schedule_records import Prune, Schedule, SyncedSchedules, read_schedule

logger = logging.getLogger("kagzi.client")

_PRUNES: tuple[str, ...] = get_args(Prune)


async def apply_schedules(
    connection: Connection, namespace: str, declared: Iterable[DeclaredSchedule], owner: str = ""
) -> None:
    """Create or change these schedules as declared; with an owner, see `Schedules.sync`."""
    if owner:
        await sync_schedules(connection, namespace, declared, owner, "report")
        return
    for each in declared:
        await upsert(connection, namespace, each.options, SystemIds().token())


async def upsert(connection: Connection, namespace: str, options: ScheduleOptions, request_id: str) -> Schedule:
    wanted = schedule_request(options, namespace=namespace, request_id=request_id)
    request = pb.UpsertWorkflowScheduleRequest(schedule=write_schedule_request(wanted), namespace_id=wanted.namespace)
    response = await connection.call(lambda link: link.schedules.UpsertWorkflowSchedule, request)
    UNSERVED.warn(wanted.namespace, wanted.spec.workflow_type, response.warning)
    workflow = options.workflow
    typed = isinstance(workflow, Workflow) and workflow.has_input
    codec = cast("Workflow[Any, Any]", workflow).input_codec if typed else ANY
    return read_schedule(response.schedule, codec)


async def sync_schedules(
    connection: Connection, namespace: str, declared: Iterable[DeclaredSchedule], owner: str, prune: Prune
) -> SyncedSchedules:
    """See `Schedules.sync`."""
    wanted = checked_schedules(declared)
    _check_owner(owner)
    if prune not in _PRUNES:
        raise InvalidArgument(f"prune={prune!r} must be one of {', '.join(map(repr, _PRUNES))}.", field="prune")
    present = {schedule.id: schedule async for schedule in _all(connection, namespace)}
    for each in wanted:
        whose = present[each.id].owner if each.id in present else ""
        if whose not in ("", owner):
            raise PreconditionFailed(
                f"schedule {each.id!r} belongs to owner {whose!r}, and {owner!r} declares it, too. Give one of them "
                f"another id, or give it away: client.schedules.update({each.id!r}, owner={owner!r}).",
                subject="schedule",
                subject_id=each.id,
            )
    made: list[Schedule] = []
    for each in wanted:
        options = msgspec.structs.replace(each.options, owner=owner)
        made.append(await upsert(connection, namespace, options, SystemIds().token()))
    ids = {each.id for each in wanted}
    removed = [schedule for schedule in present.values() if schedule.owner == owner and schedule.id not in ids]
    pruned = [await _prune(connection, namespace, schedule, owner, prune) for schedule in removed]
    return SyncedSchedules(tuple(made), tuple(pruned), prune)


def _check_owner(owner: object) -> None:
    if not isinstance(owner, str) or not 0 < len(owner.encode("utf-8", "replace")) <= NAME_BYTES:
        raise InvalidArgument(f"owner={owner!r} must be a string of 1 to {NAME_BYTES} bytes.", field="owner")


async def _all(connection: Connection, namespace: str) -> AsyncIterator[Schedule]:
    request = pb.ListWorkflowSchedulesRequest(namespace_id=namespace)
    request.page.page_size = PAGE_ROWS
    while True:
        response = await connection.call(lambda link: link.schedules.ListWorkflowSchedules, request)
        for row in response.schedules:
            yield read_schedule(row)
        request.page.page_token = response.page.next_page_token
        if not (response.page.has_more and request.page.page_token):
            return


async def _prune(connection: Connection, namespace: str, schedule: Schedule, owner: str, prune: Prune) -> Schedule:
    """Returns the schedule afterwards; a deleted one, as it was before."""
    name = schedule.id
    if prune == "delete":
        delete = pb.DeleteWorkflowScheduleRequest(namespace_id=namespace, schedule_id=name)
        await connection.call(lambda link: link.schedules.DeleteWorkflowSchedule, delete)
        logger.warning("schedule %r is no longer declared by %r: it is deleted", name, owner)
    elif prune == "pause":
        pause = pb.PauseWorkflowScheduleRequest(
            namespace_id=namespace, schedule_id=name, reason=f"no longer declared by {owner}"
        )
        response = await connection.call(lambda link: link.schedules.PauseWorkflowSchedule, pause)
        if not schedule.paused:
            logger.warning("schedule %r is no longer declared by %r: it is paused", name, owner)
        return read_schedule(response.schedule)
    elif not schedule.paused:
        logger.warning(
            "schedule %r is no longer declared by %r, and still starts runs. Delete it with kagzi schedule delete %s, "
            'or let client.schedules.sync(..., prune="delete") do so',
            name,
            owner,
            name,
        )
    return schedule

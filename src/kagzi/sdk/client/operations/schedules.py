"""`client.schedules`, and the builder of `client.schedule(id)`."""

from collections.abc import AsyncIterator, Callable, Generator, Iterable, Mapping
from datetime import datetime
from typing import Any, Self, TypeVar, Unpack

import msgspec

from ....core.checks.attributes import checked_labels, checked_priority
from ....core.duration import Duration
from ....core.errors import InvalidArgument
from ....core.public import exported
from ....core.schedules.schedule import Overlap
from ....core.times import from_datetime, to_datetime
from ....system import SystemIds
from ....v1 import common_pb2
from ....v1 import workflow_schedule_pb2 as pb
from ....wire.common import read_time, write_duration, write_payload, write_time, write_time_if
from ....wire.requests import OVERLAP_TO_WIRE, write_schedule_request
from ...workflow.codec import write_context
from ...workflow.workflow import Workflow
from ..builder import Builder
from ..filters import check_keywords
from ..run import Run
from ..start import ABSENT, as_moment, checked_workflow_name, input_payload
from ..unserved import UNSERVED
from . import Operations
from .schedule_options import (
    DeclaredSchedule,
    ScheduleKeywords,
    ScheduleOptions,
    checked_catchup,
    checked_interval,
    checked_overlap,
    duration_us,
    schedule_request,
)
from .schedule_records import Prune, Schedule, ScheduleFire, SyncedSchedules, read_schedule, read_schedule_fire
from .schedule_sync import sync_schedules, upsert

Value = TypeVar("Value")
Result = TypeVar("Result")


class Schedules(Operations):
    """`client.schedules`. Every method raises NotFound for an unknown schedule. All methods can be repeated."""

    async def get(self, id: str) -> Schedule:
        """The current state of the schedule with this `id`."""
        request = pb.GetWorkflowScheduleRequest(namespace_id=self._namespace, schedule_id=_checked_id(id))
        response = await self._backend.call(lambda link: link.schedules.GetWorkflowSchedule, request)
        return read_schedule(response.schedule)

    async def list(
        self, *, workflow: Workflow[Any, Any] | str | None = None, limit: int | None = None
    ) -> AsyncIterator[Schedule]:
        """Schedules, newest first, at most `limit`: those of one `workflow`, or all."""
        request = pb.ListWorkflowSchedulesRequest(
            namespace_id=self._namespace, task_queue=_type_of(workflow), include_payloads=True
        )
        async for schedule in self._backend.rows(
            lambda link: link.schedules.ListWorkflowSchedules, request, lambda page: page.schedules, limit
        ):
            yield read_schedule(schedule)

    async def runs(self, id: str, *, limit: int | None = None) -> AsyncIterator[ScheduleFire]:
        """The results of the times of schedule `id`, newest first, at most `limit`: runs, and skips with the reason."""
        request = pb.ListWorkflowScheduleRunsRequest(namespace_id=self._namespace, schedule_id=_checked_id(id))
        async for fire in self._backend.rows(
            lambda link: link.schedules.ListWorkflowScheduleRuns, request, lambda page: page.fires, limit
        ):
            yield read_schedule_fire(fire)

    async def pause(self, id: str, reason: str = "") -> Schedule:
        """Pause the schedule `id` for a `reason`. Times that pass while it is paused are not caught up."""
        request = pb.PauseWorkflowScheduleRequest(
            namespace_id=self._namespace, schedule_id=_checked_id(id), reason=reason
        )
        response = await self._backend.call(lambda link: link.schedules.PauseWorkflowSchedule, request)
        return read_schedule(response.schedule)

    async def resume(self, id: str) -> Schedule:
        """Resume the paused schedule `id`, from its next time on."""
        request = pb.ResumeWorkflowScheduleRequest(namespace_id=self._namespace, schedule_id=_checked_id(id))
        response = await self._backend.call(lambda link: link.schedules.ResumeWorkflowSchedule, request)
        return read_schedule(response.schedule)

    async def trigger(self, id: str) -> Run[Any]:
        """Start a run of schedule `id` now, even if it is paused. Raises PreconditionFailed if a run is open and
        overlap is "skip"."""
        request = pb.TriggerWorkflowScheduleRequest(
            namespace_id=self._namespace, schedule_id=_checked_id(id), request_id=self._backend.new_id()
        )
        response = await self._backend.call(lambda link: link.schedules.TriggerWorkflowSchedule, request)
        return Run(
            self._backend,
            self._namespace,
            run_id=response.run_id,
            workflow_id=response.workflow_id,
            created=True,
        )

    async def backfill(self, id: str, start: datetime, end: datetime) -> tuple[ScheduleFire, ...]:
        """Start runs for past times without a run, at most 1,000. Returns the result of each time in the range.

        Args:
            id: The schedule.
            start: The first time of the range.
            end: The end of the range, exclusive.
        """
        request = pb.BackfillWorkflowScheduleRequest(
            namespace_id=self._namespace, schedule_id=_checked_id(id), request_id=self._backend.new_id()
        )
        getattr(request, "from").CopyFrom(write_time(from_datetime(start, what="start")))
        request.to.CopyFrom(write_time(from_datetime(end, what="end")))
        response = await self._backend.call(lambda link: link.schedules.BackfillWorkflowSchedule, request)
        return tuple(map(read_schedule_fire, response.fires))

    async def preview(
        self,
        id: str | None = None,
        *,
        cron: str | None = None,
        timezone: str | None = None,
        every: Duration | None = None,
        count: int = 10,
        after: datetime | None = None,
    ) -> tuple[datetime, ...]:
        """The next times, in UTC, of a schedule or of an expression that is not saved.

        Args:
            id: The schedule; else give `cron` or `every`.
            cron: A cron expression.
            timezone: The time zone of the expression. Default: UTC.
            every: An interval.
            count: How many times, at most 1,000.
            after: Only times later than this. Default: now.
        """
        interval_us = checked_interval(every)
        since = as_moment(after, "after")
        request = pb.PreviewWorkflowScheduleRequest(
            namespace_id=self._namespace,
            schedule_id=id or "",
            cron_expr=cron or "",
            timezone=timezone or "",
            interval=_unless_none(interval_us, write_duration),
            count=count,
            after=write_time_if(since),
        )
        response = await self._backend.call(lambda link: link.schedules.PreviewWorkflowSchedule, request)
        return tuple(to_datetime(read_time(at)) for at in response.fires)

    async def update(
        self,
        id: str,
        *,
        workflow: Workflow[Any, Any] | str | None = None,
        next_at: datetime | None = None,
        owner: str | None = None,
        **changes: Unpack[ScheduleKeywords],
    ) -> Schedule:
        """Change the given options of the schedule `id`; its times are recomputed from now on.

        Args:
            workflow: The workflow to start, or its name.
            next_at: Continue with the first time at or after this; earlier times are recorded as skipped.
            owner: The program that declares it from now on; "" for none.
            changes: See [ScheduleKeywords](#schedulekeywords). Labels replace all previous labels.
        """
        check_keywords(changes, ScheduleKeywords)
        version, labels = changes.get("version"), changes.get("labels")
        request = pb.UpdateWorkflowScheduleRequest(
            namespace_id=self._namespace,
            schedule_id=_checked_id(id),
            workflow_type=_type_of(workflow),
            cron_expr=changes.get("cron"),
            timezone=changes.get("timezone"),
            interval=_unless_none(checked_interval(changes.get("every")), write_duration),
            max_catchup=_unless_none(changes.get("catchup"), checked_catchup),
            catchup_window=_unless_none(duration_us(changes.get("catchup_window"), "catchup_window"), write_duration),
            overlap=_unless_none(changes.get("overlap"), lambda word: OVERLAP_TO_WIRE[checked_overlap(word)]),
            jitter=_unless_none(duration_us(changes.get("jitter"), "jitter"), write_duration),
            priority=_unless_none(changes.get("priority"), checked_priority),
            version=None if version is None else str(version),
            start_at=write_time_if(as_moment(changes.get("start_at"), "start_at")),
            end_at=write_time_if(as_moment(changes.get("end_at"), "end_at")),
            next_fire_at=write_time_if(as_moment(next_at, "next_fire_at")),
            owner=owner,
            set_labels=labels is not None,
            labels=checked_labels(labels),
        )
        value = changes.get("input", ABSENT)
        if value is not ABSENT:  # encoded by the workflow's codec if it is given, else as plain JSON
            payload = input_payload(workflow if workflow is not None else (await self.get(id)).workflow, value)
            request.input.CopyFrom(common_pb2.Payload() if payload is None else write_payload(payload))
        if (context := write_context(changes.get("context"))) is not None:
            request.context.CopyFrom(write_payload(context))
        response = await self._backend.call(lambda link: link.schedules.UpdateWorkflowSchedule, request)
        UNSERVED.warn(self._namespace, response.schedule.workflow_type, response.warning)
        return read_schedule(response.schedule)

    async def delete(self, id: str) -> bool:
        """Delete the schedule `id`. Returns whether it existed. Its runs stay."""
        request = pb.DeleteWorkflowScheduleRequest(namespace_id=self._namespace, schedule_id=_checked_id(id))
        response = await self._backend.call(lambda link: link.schedules.DeleteWorkflowSchedule, request)
        return response.deleted

    async def apply(self, declared: DeclaredSchedule) -> Schedule:
        """Create or change a schedule as `declared` with `kagzi.schedule(...)`. Has no effect if nothing differs."""
        return await self.upsert(declared.options, self._backend.new_id())

    async def sync(
        self, declared: Iterable[DeclaredSchedule], *, owner: str, prune: Prune = "report"
    ) -> SyncedSchedules:
        """Apply all schedules that a program declares, and find those that it no longer declares.

        Args:
            declared: All schedules of this owner, made with `kagzi.schedule(...)`.
            owner: The name of the program, or of a part of it. It is stored with each schedule.
            prune: What to do with schedules of the same owner that are no longer declared: `"report"` (the default)
                only returns and logs them; `"pause"` pauses, `"delete"` deletes them. Their runs stay.

        Raises PreconditionFailed, and changes nothing, if a schedule belongs to another owner.
        """
        return await sync_schedules(self._backend.connection, self._namespace, declared, owner, prune)

    async def create(self, options: ScheduleOptions, request_id: str) -> Schedule:
        """Create a schedule from `options`. Raises AlreadyExists, unless the same `request_id` created it."""
        created = schedule_request(options, namespace=self._namespace, request_id=request_id)
        request = write_schedule_request(created)
        response = await self._backend.call(lambda link: link.schedules.CreateWorkflowSchedule, request)
        UNSERVED.warn(created.namespace, created.spec.workflow_type, response.warning)
        return read_schedule(response.schedule)

    async def upsert(self, options: ScheduleOptions, request_id: str) -> Schedule:
        """Create a schedule from `options`, or change it; the same `request_id` again changes nothing."""
        return await upsert(self._backend.connection, self._namespace, options, request_id)


@exported
class ScheduleBuilder(Builder):
    """A schedule to describe and await: `await client.schedule("daily").workflow(report).cron("0 6 * * *")`.

    Every method returns a new one. Awaiting it creates the schedule, or changes it if it differs. A paused schedule
    stays paused unless `paused` is called. Raises InvalidArgument, ResourceExhausted, Unavailable.
    """

    _consequence = "nothing was scheduled"

    def __init__(self, schedules: Schedules, id: str, options: ScheduleOptions | None = None) -> None:
        self._schedules = schedules
        self._options = options or ScheduleOptions(id=id)
        self._request_id = SystemIds().token()
        self._is_settled = False

    def __repr__(self) -> str:
        return f"<ScheduleBuilder of {self._options.id!r}>"

    def _call(self) -> str:
        return f"client.schedule({self._options.id!r})"

    def __await__(self) -> Generator[Any, None, Schedule]:
        """Create the schedule, or change it if it differs. A paused one stays paused unless `paused` was called. Raises
        InvalidArgument, ResourceExhausted, Unavailable."""
        self._is_settled = True
        return self._schedules.upsert(self._options, self._request_id).__await__()

    def _with(self, **changes: Any) -> Self:
        self._is_settled = True
        return type(self)(self._schedules, self._options.id, msgspec.structs.replace(self._options, **changes))

    def namespace(self, namespace: str) -> Self:
        """Use this `namespace` instead of the client's."""
        return self._with(namespace=namespace)

    def workflow(self, workflow: Workflow[Any, Any] | str) -> Self:
        """The `workflow` to start, or its name."""
        return self._with(workflow=workflow)

    def cron(self, expr: str, *, timezone: str = "UTC") -> Self:
        """A cron expression `expr` of 5 fields, or 6 with seconds first, in a `timezone`."""
        return self._with(cron=expr, timezone=timezone)

    def every(self, interval: Duration) -> Self:
        """An `interval` of at least 1s, counted from `start_at`, or from the creation of the schedule."""
        return self._with(every=interval)

    def input(self, input: Any) -> Self:
        """The `input` of each run."""
        return self._with(input=input)

    def context(self, context: Mapping[str, Any]) -> Self:
        """The `context` of each run, a JSON object."""
        return self._with(context=context)

    def catchup(self, n: int) -> Self:
        """Catch up at most `n` missed times, the most recent ones; 0 to 1,000. Default: 100."""
        return self._with(catchup=n)

    def catchup_window(self, window: Duration) -> Self:
        """Catch up a missed time only if it is not older than `window`. Default: 24h."""
        return self._with(catchup_window=window)

    def overlap(self, overlap: Overlap) -> Self:
        """What happens if a run is still open at a scheduled time: `overlap` is "allow" (the default), "skip",
        "buffer_one" or "cancel_other"."""
        return self._with(overlap=overlap)

    def jitter(self, most: Duration) -> Self:
        """Delay each run by a random time of up to `most`, fixed per scheduled time."""
        return self._with(jitter=most)

    def labels(self, labels: Mapping[str, str]) -> Self:
        """Add `labels` to each run."""
        return self._with(labels={**(self._options.labels or {}), **labels})

    def label(self, key: str, value: str) -> Self:
        """Add a label to each run: `key` and `value`."""
        return self.labels({key: value})

    def priority(self, priority: int) -> Self:
        """The `priority` of each run, -100 to 100. Default: 0."""
        return self._with(priority=priority)

    def version(self, version: int | str) -> Self:
        """The `version` of the workflow. Default: the default version at that time."""
        return self._with(version=version)

    def start_at(self, moment: datetime) -> Self:
        """No runs before this `moment`; an interval counts from here."""
        return self._with(start_at=moment)

    def end_at(self, moment: datetime) -> Self:
        """No runs at or after this `moment`."""
        return self._with(end_at=moment)

    def paused(self, paused: bool = True) -> Self:
        """Pause the schedule; with False for `paused`, let it run."""
        return self._with(paused=paused)


def _type_of(workflow: Workflow[Any, Any] | str | None) -> str | None:
    return None if workflow is None else checked_workflow_name(workflow)


def _unless_none(value: Value | None, convert: Callable[[Value], Result]) -> Result | None:
    return None if value is None else convert(value)


def _checked_id(id: object) -> str:
    if isinstance(id, str) and id:
        return id
    raise InvalidArgument(f"id={id!r} must be the id of a schedule.", field="id")

"""Schedules for clients: create, change, read, pause, trigger, backfill."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice, takewhile
from typing import TYPE_CHECKING

import msgspec

from ...core import limits
from ...core.checks.refused_requests import error_of
from ...core.errors import (
    AlreadyExists,
    InvalidArgument,
    NotFound,
    PreconditionFailed,
    ServerUnavailable,
    limit_reached,
    not_found,
)
from ...core.limits import Settings
from ...core.pages.counting import Counted
from ...core.pages.cursor import Cursor
from ...core.providers import Clock, Ids
from ...core.records import Payload
from ...core.run.outcomes import Refused
from ...core.schedules.nominal_times import nominal_times
from ...core.schedules.schedule import Fire, ScheduleRecord, ScheduleSpec
from ...core.text.storable import is_storable
from ...core.times import US_PER_S, Timestamp
from ...store.protocol import Store, TypeKey
from ..checks import requests as checks
from ..checks.schedules import check_id, check_spec
from ..checks.schemas import Schemas
from ..timing.firing_plan import MOST_RUNS, ahead_of, skipped_range, times_of
from ..timing.schedule_clock import ScheduleClock
from .namespaces import Namespaces
from .paging import Page, PageAsk, page_cursor, page_of, page_size, with_total

if TYPE_CHECKING:
    from ...core.schedules.cron import Times

_TRIES = 5
_FIRES_AT_ONCE = 2_000

Alter = Callable[[ScheduleRecord], ScheduleRecord]


class Schedules:
    """All methods raise NotFound for an unknown schedule and InvalidArgument for invalid input; all can be repeated."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock,
        ids: Ids,
        settings: Settings,
        namespaces: Namespaces,
        schedule_clock: ScheduleClock,
        schemas: Schemas,
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._payload_bytes = settings.payload_bytes
        self._retention_us = settings.retention_ms * 1_000
        self._namespaces = namespaces
        self._firing = schedule_clock
        self._schemas = schemas

    # --- creating and changing ----------------------------------------------------------------------------------------

    async def create(
        self, namespace: str, schedule_id: str, spec: ScheduleSpec, *, enabled: bool = True, request_id: str = ""
    ) -> ScheduleRecord:
        """Raises AlreadyExists unless the same request created it, ResourceExhausted."""
        await self._namespaces.check(namespace)
        checks.optional_name(request_id, "request_id")
        schedule_id = schedule_id or self._ids.token()
        check_id(schedule_id)
        check_spec(spec, self._payload_bytes)
        await self._check_input(namespace, spec)
        now = self._clock.now()
        record = ScheduleRecord(
            namespace=namespace,
            schedule_id=schedule_id,
            spec=spec,
            enabled=enabled,
            created_at=now,
            updated_at=now,
            revision=now,  # differs if it is created again under the same id
            request_id=request_id,
        )
        created = await self._store.create_schedule(ahead_of(record, now), now)
        if isinstance(created, Refused):
            raise error_of(created.error)
        self._firing.add_due(created.due_at)
        return created

    async def upsert(
        self,
        namespace: str,
        schedule_id: str,
        spec: ScheduleSpec,
        *,
        enabled: bool | None = None,
        request_id: str = "",
    ) -> tuple[ScheduleRecord, bool]:
        """Returns the schedule, and whether it is new. An equal one is left unchanged, including its next time; it is
        paused or resumed only if `enabled` says so. An empty owner keeps the earlier one."""
        await self._namespaces.check(namespace)
        check_id(schedule_id)
        check_spec(spec, self._payload_bytes)
        for _ in range(_TRIES):
            if await self._store.get_schedule(namespace, schedule_id) is None:
                try:
                    record = await self.create(
                        namespace, schedule_id, spec, enabled=enabled is not False, request_id=request_id
                    )
                except AlreadyExists:
                    continue  # another request created it first
                return record, True
            try:
                return await self.change(namespace, schedule_id, lambda was: _as_requested(was, spec, enabled)), False
            except NotFound:
                continue  # it was deleted meanwhile
        raise _contended(schedule_id)

    async def change(
        self, namespace: str, schedule_id: str, alter: Alter, *, next_fire_at: Timestamp | None = None
    ) -> ScheduleRecord:
        """First fires what is due; then changes the schedule and computes its times from now on. With `next_fire_at`,
        times before that are skipped."""
        for _ in range(_TRIES):
            was = await self.get(namespace, schedule_id)
            now = self._clock.now()
            if was.next_at is not None and was.next_at <= now:
                await self._firing.settle(was, now)
                was = await self.get(namespace, schedule_id)
            altered = alter(was)
            if altered == was and next_fire_at is None:
                return was
            check_spec(altered.spec, self._payload_bytes)
            if _started(altered.spec) != _started(was.spec):
                await self._check_input(namespace, altered.spec)
            record = ahead_of(msgspec.structs.replace(altered, updated_at=now), now)
            skips: tuple[Fire, ...] = ()
            if next_fire_at is not None:
                record, skips = _from(record, next_fire_at, now)
            put = await self._store.put_schedule(record, was=was, skips=skips)
            if put is not None:
                self._firing.add_due(put.due_at)
                return put
        raise _contended(schedule_id)

    async def _check_input(self, namespace: str, spec: ScheduleSpec) -> None:
        """Checks against the version that its runs would get now. Raises InvalidArgument."""
        key = TypeKey(namespace, spec.workflow_type)
        try:
            version = await self._schemas.versions.pin(key, spec.version)
        except PreconditionFailed:
            return  # deprecated: checked again when its runs are due
        await self._schemas.check_input(key, version, spec.input)

    async def pause(self, namespace: str, schedule_id: str, reason: str = "") -> ScheduleRecord:
        """Times that pass while it is paused do not count as missed."""
        checks.reason(reason)
        return await self.change(namespace, schedule_id, lambda was: _paused(was, reason))

    async def resume(self, namespace: str, schedule_id: str) -> ScheduleRecord:
        return await self.change(namespace, schedule_id, _resumed)

    async def delete(self, namespace: str, schedule_id: str) -> bool:
        """Its runs are kept."""
        _key(namespace, schedule_id)
        existed, more = await self._store.delete_schedule(namespace, schedule_id, _FIRES_AT_ONCE)
        while more:
            _, more = await self._store.delete_schedule(namespace, schedule_id, _FIRES_AT_ONCE)
        return existed

    # --- reading ------------------------------------------------------------------------------------------------------

    async def get(self, namespace: str, schedule_id: str) -> ScheduleRecord:
        _key(namespace, schedule_id)
        record = await self._store.get_schedule(namespace, schedule_id)
        if record is None:
            raise not_found("schedule", schedule_id)
        return record

    async def list(self, namespace: str, workflow_type: str | None, page: PageAsk) -> Page[ScheduleRecord]:
        """Newest first."""
        checks.name(namespace, "namespace")
        checks.optional_name(workflow_type or "", "task_queue")
        bound_to = msgspec.json.encode(("schedules", namespace, workflow_type)).decode()
        cursor = page_cursor(page, bound_to)
        rows = await self._store.list_schedules(
            namespace, workflow_type=workflow_type or None, cursor=cursor, limit=page_size(page)
        )
        result = page_of(rows, cursor, bound_to, lambda record: Cursor(record.created_at, record.schedule_id))
        what = Counted(rows="schedules", namespace=namespace, key=workflow_type or "")
        return await with_total(result, page, self._store, what)

    async def fires(self, namespace: str, schedule_id: str, page: PageAsk) -> Page[Fire]:
        """The results of its times, newest first."""
        await self.get(namespace, schedule_id)
        bound_to = msgspec.json.encode(("fires", namespace, schedule_id)).decode()
        cursor = page_cursor(page, bound_to)
        rows = await self._store.list_fires(namespace, schedule_id, cursor, page_size(page))
        result = page_of(rows, cursor, bound_to, lambda fire: Cursor(fire.nominal_at, "1" if fire.skipped else "0"))
        what = Counted(rows="schedule_fires", namespace=namespace, key=schedule_id)
        return await with_total(result, page, self._store, what)

    async def preview(
        self, namespace: str, schedule_id: str, spec: ScheduleSpec | None, *, count: int, after: Timestamp | None
    ) -> Sequence[Timestamp]:
        """The next times of a stored schedule, paused or not, or of a given spec."""
        checks.name(namespace, "namespace")
        checks.timestamp(after, "after")
        checks.duration(None if spec is None else spec.interval_us, "interval")
        checks.within(count, 0, limits.SCHEDULE_PREVIEW, "count")
        since = self._clock.now() if after is None else after
        if bool(schedule_id) == (spec is not None):
            raise InvalidArgument(
                "schedule_id, or cron_expr or interval: give one of them, not both.", field="schedule_id"
            )
        times = times_of(await self.get(namespace, schedule_id)) if spec is None else nominal_times(spec, since)
        wanted = count or 10
        upcoming = list(islice(_searched(times, since), wanted))
        if len(upcoming) < wanted and times.steps > limits.SCHEDULE_SEARCH_STEPS:
            raise InvalidArgument(
                f"count={wanted}: only {len(upcoming)} times were found within "
                f"{limits.SCHEDULE_SEARCH_STEPS} search steps. "
                f"Ask for {len(upcoming)}, then continue after the last one.",
                field="count",
                metadata=limit_reached("schedule_search_steps", limits.SCHEDULE_SEARCH_STEPS),
            )
        return upcoming

    # --- starts beside its times --------------------------------------------------------------------------------------

    async def trigger(self, namespace: str, schedule_id: str, request_id: str = "") -> tuple[str, str]:
        """Starts a run now, paused or not; returns its run id and workflow_id. Raises PreconditionFailed if overlap
        does not permit it."""
        checks.optional_name(request_id, "request_id")
        record = await self.get(namespace, schedule_id)
        now = self._clock.now()
        nominal = now + 1 if now % US_PER_S == 0 else now  # never equal to a scheduled time
        version = await self._firing.version_of(record)
        request = f"trigger\0{request_id or self._ids.token()}"
        scheduled_start = self._firing.scheduled_start(record, version, nominal, "trigger", now=now, request=request)
        fired = await self._firing.fire_now(record, [scheduled_start], record.spec.overlap)
        if fired is None:
            raise not_found("schedule", schedule_id)
        [fire] = fired.fires
        if fire.run_id is None:
            refusal = fired.refused.get(nominal)
            if refusal is not None:
                raise error_of(refusal.error)
            raise PreconditionFailed(
                f"{fire.reason}. Wait for it, or cancel it.", subject="schedule", subject_id=schedule_id
            )
        if fired.started:
            return fire.run_id, scheduled_start.start.workflow_id
        run = await self._store.get_run(namespace, run_id=fire.run_id)
        return fire.run_id, "" if run is None else run.workflow_id

    async def backfill(self, namespace: str, schedule_id: str, begin: Timestamp, end: Timestamp) -> Sequence[Fire]:
        """Starts runs for its times from `begin` on and before `end` that have none; returns the results of all."""
        record = await self.get(namespace, schedule_id)
        now = self._clock.now()
        _check_range(begin, end)
        times = times_of(record)
        within = takewhile(lambda nominal: nominal < end, _searched(times, begin - 1))
        nominals = list(islice(within, limits.SCHEDULE_BACKFILL + 1))
        if times.steps > limits.SCHEDULE_SEARCH_STEPS:
            raise InvalidArgument(
                f"from..to takes more than {limits.SCHEDULE_SEARCH_STEPS} steps to search. "
                "Take a shorter range, then the next one.",
                field="to",
                metadata=limit_reached("schedule_search_steps", limits.SCHEDULE_SEARCH_STEPS),
            )
        if len(nominals) > limits.SCHEDULE_BACKFILL:
            raise InvalidArgument(
                f"from..to holds more than {limits.SCHEDULE_BACKFILL} times, the limit of one backfill. "
                "Take a shorter range, then the next one.",
                field="to",
                metadata=limit_reached("schedule_backfill", limits.SCHEDULE_BACKFILL),
            )
        if nominals and nominals[-1] > now:
            raise InvalidArgument("from..to contains future times. Backfill only past times.", field="to")
        version = await self._firing.version_of(record)
        fires: list[Fire] = []
        for start in range(0, len(nominals), MOST_RUNS):
            part = nominals[start : start + MOST_RUNS]
            scheduled_starts = [
                self._firing.scheduled_start(record, version, nominal, "backfill", now=now) for nominal in part
            ]
            fired = await self._firing.fire_now(record, scheduled_starts, "allow")
            if fired is None:
                raise not_found("schedule", schedule_id)
            fires += fired.fires
        return fires

    async def forget_old_fires(self, now: Timestamp) -> bool:
        """A chore: fires have the same retention as runs."""
        return await self._store.forget_fires(now - self._retention_us, _FIRES_AT_ONCE)


def _searched(times: "Times", after: Timestamp) -> Iterator[Timestamp]:
    """Times in order, until there are no more or the search becomes too expensive: it blocks others."""
    for at in times.after(after):
        yield at
        if times.steps > limits.SCHEDULE_SEARCH_STEPS:
            return


def _key(namespace: str, schedule_id: str) -> None:
    checks.name(namespace, "namespace")
    if not schedule_id:
        raise InvalidArgument("schedule_id is empty. Name the schedule.", field="schedule_id")
    if len(schedule_id) > limits.NAME_BYTES or not is_storable(schedule_id):
        raise not_found("schedule", schedule_id[: limits.NAME_BYTES] + "...")


def _check_range(begin: Timestamp, end: Timestamp) -> None:
    checks.timestamp(begin, "from")
    checks.timestamp(end, "to")
    if begin >= end:
        raise InvalidArgument("from is not before to. Give a range of times that have passed.", field="from")


def _as_requested(was: ScheduleRecord, spec: ScheduleSpec, enabled: bool | None) -> ScheduleRecord:
    spec = msgspec.structs.replace(spec, owner=spec.owner or was.spec.owner)
    record = msgspec.structs.replace(was, spec=spec)
    if enabled is None or enabled == was.enabled:
        return record
    return _resumed(record) if enabled else _paused(record, "")


def _paused(was: ScheduleRecord, reason: str) -> ScheduleRecord:
    if not was.enabled:
        return was
    return msgspec.structs.replace(was, enabled=False, paused_reason=reason)


def _resumed(was: ScheduleRecord) -> ScheduleRecord:
    return was if was.enabled else msgspec.structs.replace(was, enabled=True, paused_reason="")


def _from(record: ScheduleRecord, at: Timestamp, now: Timestamp) -> tuple[ScheduleRecord, tuple[Fire, ...]]:
    """Continues with the first time at or after `at`; earlier times are recorded as skipped."""
    checks.timestamp(at, "next_fire_at")
    if at <= now:
        raise InvalidArgument(
            "next_fire_at has passed. Give a later time, or trigger or backfill the schedule.", field="next_fire_at"
        )
    if not record.enabled:
        raise InvalidArgument("next_fire_at of a paused schedule cannot be set. Resume it first.", field="next_fire_at")
    if record.next_at is None or record.next_at >= at:
        return record, ()
    times = times_of(record)
    until = times.latest(at - 1)
    assert until is not None  # next_at is such a time
    skip = skipped_range(
        times, record.next_at, until, now=now, cause="clock", reason="next_fire_at was set to a later time"
    )
    return ahead_of(record, at - 1), (skip,)


def _contended(schedule_id: str) -> ServerUnavailable:
    return ServerUnavailable(f"schedule {schedule_id} is being changed by another request. Try again.")


def _started(spec: ScheduleSpec) -> tuple[str, str, Payload | None]:
    """The type, version and input of its runs."""
    return spec.workflow_type, spec.version, spec.input

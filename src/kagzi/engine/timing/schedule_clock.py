"""Fires schedules when they are due: once, on whichever server, and without delaying other schedules.

The nearest due time is known from local changes and from each poll of the timers, so that an idle server needs no reads
of its own.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from ...core.errors import RequestError, StatementFailed, StoreBroken, Unavailable
from ...core.limits import Settings
from ...core.providers import Clock, Ids
from ...core.records import RunKey
from ...core.run.commands import StartRun
from ...core.schedules.firing import FiredSchedule, Firing, ScheduledStart
from ...core.schedules.schedule import Cause, Fire, Overlap, ScheduleRecord, refusal_reason, request_of, run_name
from ...core.schedules.scheduled_time import with_scheduled_time
from ...core.times import US_PER_MS, US_PER_S, Timestamp
from ...store.protocol import Store, TypeKey
from ..checks.refusals import refused
from ..commit.dispatcher import Dispatcher
from ..commit.outages import Outages, backoff_s
from ..services.versions import Versions
from .firing_plan import Decided, decide
from .store_clock import StoreClock

logger = logging.getLogger("kagzi.engine")

DUE_SCHEDULES = 100  # read together
_RUNS_AT_ONCE = 400  # in one transaction
_CALL_TIMEOUT_S = 30.0
_LEAST_WAIT_S = 0.0005
_FIRST_PAUSE_US = US_PER_S
_LONGEST_PAUSE_US = 60 * US_PER_S
_REMEMBERED = 10_000


class _Retry(NamedTuple):
    at: Timestamp
    failures: int


class ScheduleClock:
    def __init__(
        self,
        store: Store,
        *,
        clock: Clock,
        store_clock: StoreClock,
        ids: Ids,
        settings: Settings,
        versions: Versions,
        dispatcher: Dispatcher,
        outages: Outages,
    ) -> None:
        self._measurements = dispatcher.measurements
        self._store = store
        self._clock = clock
        self._store_clock = store_clock
        self._ids = ids
        self._late_us = settings.schedule_late_ms * US_PER_MS
        self._cleanup_us = settings.cleanup_ms * US_PER_MS
        self._versions = versions
        self._dispatcher = dispatcher
        self._outages = outages
        self._next: Timestamp | None = None
        self._retries: dict[tuple[str, str], _Retry] = {}  # for schedules that could not fire
        self._changed = asyncio.Event()

    def add_due(self, due_at: Timestamp | None) -> None:
        """A schedule is due at this time."""
        if due_at is not None and (self._next is None or due_at < self._next):
            self._next = due_at
            self._changed.set()

    def clock_stepped(self) -> None:
        self._changed.set()

    async def run(self) -> None:
        failures = 0
        while True:
            now = self._clock.now()
            if self._next is None or self._next > now:
                await self._wait(now)
                continue
            try:
                await self._store_clock.confirm()
                now = self._clock.now()
                if self._next > now:
                    continue
                self._next = None
                await self._tick(now)
            except (Unavailable, TimeoutError) as error:
                self._outages.seen(error)
                self.add_due(now)
                failures += 1
                await asyncio.sleep(backoff_s(failures))
            except BaseException:
                self.add_due(now)  # still to be done
                raise
            else:
                failures = 0

    async def _wait(self, now: Timestamp) -> None:
        rest_s = None if self._next is None else max((self._next - now) / US_PER_S, _LEAST_WAIT_S)
        try:
            async with asyncio.timeout(rest_s):  # None if no schedule is due: wait for a change
                await self._changed.wait()
        except TimeoutError:
            pass
        self._changed.clear()

    async def _tick(self, now: Timestamp) -> None:
        async with asyncio.timeout(_CALL_TIMEOUT_S):
            due = await self._store.due_schedules(now, DUE_SCHEDULES)
        self.add_due(due.next_due_at)
        firings: list[Firing] = []
        for record in due.schedules:
            firing = None if self._waits_for_another_try(record, now) else await self._planned(record, now)
            if firing is not None:
                firings.append(firing)
        if due.more:
            self.add_due(now if firings else now + _FIRST_PAUSE_US)
        for batch in _batches(firings):
            await self._fire_batch(batch)

    async def _planned(self, record: ScheduleRecord, now: Timestamp) -> Firing | None:
        """None: it cannot be decided now."""
        try:
            return await self.plan(record, decide(record, now, self._late_us), now)
        except Exception as error:  # noqa: BLE001  any error concerns this schedule only
            await self._stumbled(record, error)
            return None

    async def _fire_batch(self, firings: Sequence[Firing]) -> None:
        try:
            await self.fire(firings)
        except Exception as error:
            if len(firings) == 1:
                await self._stumbled(firings[0].schedule, error)
                return
            if _is_outage(error):
                raise
            for firing in firings:
                await self._fire_batch((firing,))
        else:
            for firing in firings:
                self._retries.pop(_key(firing.schedule), None)

    async def _stumbled(self, record: ScheduleRecord, error: Exception) -> None:
        """Pauses a schedule that is itself at fault; otherwise retries with a growing delay. Raises an outage of the
        store, which does not concern this schedule."""
        if _is_outage(error):
            raise error
        self._measurements.schedule_fires["failed"] += 1
        if isinstance(error, RequestError):
            logger.error("schedule %r of namespace %r is paused: %s", record.schedule_id, record.namespace, error)
            await self._pause(record, error)
            return
        failures = self._retries[_key(record)].failures + 1 if _key(record) in self._retries else 1
        pause_us = min(_FIRST_PAUSE_US << min(failures - 1, 20), _LONGEST_PAUSE_US)
        retry_at = self._clock.now() + pause_us
        logger.error(
            "schedule %r of namespace %r could not fire (%d times) and is tried again in %d s",
            record.schedule_id,
            record.namespace,
            failures,
            pause_us // US_PER_S,
            exc_info=error,
        )
        if len(self._retries) >= _REMEMBERED:
            self._retries.clear()
        self._retries[_key(record)] = _Retry(retry_at, failures)
        self.add_due(retry_at)
        await self._postpone(record, retry_at)

    def _waits_for_another_try(self, record: ScheduleRecord, now: Timestamp) -> bool:
        retry = self._retries.get(_key(record))
        return retry is not None and now < retry.at

    async def _postpone(self, record: ScheduleRecord, until: Timestamp) -> None:
        """Also in the store, if possible: schedules that cannot fire must not block those that can."""
        try:
            await self._store.put_schedule(msgspec.structs.replace(record, due_at=until), was=record, skips=())
        except (StoreBroken, StatementFailed) as error:
            logger.warning("schedule %r could not be postponed: %s", record.schedule_id, error)

    async def _pause(self, record: ScheduleRecord, error: RequestError) -> None:
        """So that it does no harm, with the reason."""
        paused = msgspec.structs.replace(
            record,
            enabled=False,
            paused_reason=f"paused by the server: {error.message}"[:1_000],
            next_at=None,
            due_at=None,
            updated_at=self._clock.now(),
        )
        await self._store.put_schedule(paused, was=record, skips=())

    # --- also for triggers, backfills and changes ---------------------------------------------------------------------

    async def settle(self, record: ScheduleRecord, now: Timestamp) -> None:
        """Starts or skips what is due before the schedule is changed: nothing is lost between two revisions."""
        await self.fire([await self.plan(record, decide(record, now, self._late_us, at_once=True), now)])

    async def plan(self, record: ScheduleRecord, decided: Decided, now: Timestamp) -> Firing:
        """Converts the decision to starts. A start whose version is deprecated becomes a skip."""
        skips = list(decided.skips)
        scheduled_starts: tuple[ScheduledStart, ...] = ()
        if decided.runs:
            try:
                version = await self.version_of(record)
            except RequestError as error:
                reason = refusal_reason(refused(error).error)
                skips += [
                    Fire(nominal_at=nominal, at=now, cause=cause, reason=reason, count=1)
                    for nominal, cause in decided.runs
                ]
            else:
                scheduled_starts = tuple(self.scheduled_start(record, version, *run, now=now) for run in decided.runs)
        return Firing(
            schedule=record,
            overlap=record.spec.overlap,
            scheduled_starts=scheduled_starts,
            skips=tuple(skips),
            next_at=decided.next_at,
            due_at=decided.due_at,
        )

    async def version_of(self, record: ScheduleRecord) -> str:
        key = TypeKey(record.namespace, record.spec.workflow_type)
        return await self._versions.pin(key, record.spec.version)

    def scheduled_start(
        self,
        record: ScheduleRecord,
        version: str,
        nominal: Timestamp,
        cause: Cause,
        *,
        now: Timestamp,
        request: str = "",
    ) -> ScheduledStart:
        spec = record.spec
        start = StartRun(
            run=RunKey(record.namespace, self._ids.run_id(now, record.namespace)),
            workflow_id=run_name(record.schedule_id, nominal),
            workflow_type=spec.workflow_type,
            request_id=request_of(record.schedule_id, request or str(nominal)),
            input=spec.input,
            context=with_scheduled_time(spec.context, nominal),
            version=version or None,
            labels=spec.labels,
            priority=spec.priority,
            deadline_at=None if spec.timeout_us is None else now + spec.timeout_us,
            on_conflict="fail",
            schedule_id=record.schedule_id,
        )
        return ScheduledStart(nominal, cause, start)

    async def fire_now(
        self, record: ScheduleRecord, scheduled_starts: Sequence[ScheduledStart], overlap: Overlap
    ) -> FiredSchedule | None:
        """Starts runs beside its own times. None: the schedule was deleted."""
        [fired] = await self.fire(
            [Firing(schedule=record, overlap=overlap, scheduled_starts=tuple(scheduled_starts), moves=False)]
        )
        return fired

    async def fire(self, firings: Sequence[Firing]) -> Sequence[FiredSchedule | None]:
        now = self._clock.now()
        async with asyncio.timeout(_CALL_TIMEOUT_S):
            answers, effects = await self._store.fire_schedules(firings, now, now + self._cleanup_us)
        for firing, fired in zip(firings, answers, strict=True):
            if fired is not None:
                self._count(firing, fired, now)
                if firing.moves:
                    self.add_due(firing.due_at)
        self._dispatcher.dispatch(effects)
        return answers

    def _count(self, firing: Firing, fired: FiredSchedule, now: Timestamp) -> None:
        record, count = firing.schedule, self._measurements
        if fired.started:
            count.started(record.namespace, record.spec.workflow_type, "schedule", len(fired.started))
            count.schedule_fires["started"] += len(fired.started)
        skipped = sum(fire.count for fire in (*fired.fires, *firing.skips) if not fire.run_id)
        if skipped:
            count.schedule_fires["skipped"] += skipped
        if firing.moves and record.due_at is not None and record.due_at <= now:
            count.timer_fired("schedule", self._clock.now() - record.due_at)


def _is_outage(error: Exception) -> bool:
    """Whether the store as a whole is unavailable, rather than failing on a single schedule."""
    return isinstance(error, (Unavailable, TimeoutError)) and not isinstance(error, StoreBroken)


def _key(record: ScheduleRecord) -> tuple[str, str]:
    return record.namespace, record.schedule_id


def _batches(firings: Sequence[Firing]) -> list[list[Firing]]:
    batches: list[list[Firing]] = []
    runs = 0
    for firing in firings:
        if not batches or runs + len(firing.scheduled_starts) > _RUNS_AT_ONCE:
            batches.append([])
            runs = 0
        batches[-1].append(firing)
        runs += len(firing.scheduled_starts)
    return batches

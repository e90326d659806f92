"""Firing schedules when they are due: once, whichever server does it, and none at the cost of the others.

The nearest due time is known from what happens here and from each look of the timers, so that an idle server asks nothing.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence

import msgspec

from ..core.commands import Command, StartRun
from ..core.errors import KagziError, Unavailable
from ..core.limits import Settings
from ..core.outcomes import Outcome
from ..core.records import RunKey
from ..core.schedules import Cause, Fire, Overlap, ScheduleRecord, refusal_reason, request_of, run_name
from ..core.seams import Clock, Ids
from ..core.times import US_PER_MS, US_PER_S, Timestamp
from ..store.protocol import FiredSchedule, Firing, Occasion, Store, TypeKey
from .news import News
from .occasions import Decided, decide
from .outages import Outages, backoff_s
from .refusals import refused
from .versions import Versions

logger = logging.getLogger("kagzi.engine")

DUE_SCHEDULES = 100  # looked at together
_RUNS_AT_ONCE = 400  # in one transaction
_CALL_TIMEOUT_S = 30.0
_LEAST_WAIT_S = 0.0005

Apply = Callable[[Sequence[Command], Sequence[Outcome]], None]


class ScheduleClock:
    """`apply` does what follows from starts, as after any commit."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock,
        ids: Ids,
        settings: Settings,
        versions: Versions,
        news: News,
        outages: Outages,
        apply: Apply,
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._late_us = settings.schedule_late_ms * US_PER_MS
        self._cleanup_us = settings.cleanup_ms * US_PER_MS
        self._versions = versions
        self._news = news
        self._outages = outages
        self._apply = apply
        self._next: Timestamp | None = None
        self._changed = asyncio.Event()

    def hear(self, due_at: Timestamp | None) -> None:
        """A schedule is due then."""
        if due_at is not None and (self._next is None or due_at < self._next):
            self._next = due_at
            self._changed.set()

    async def run(self) -> None:
        failures = 0
        while True:
            now = self._clock.now()
            if self._next is None or self._next > now:
                await self._wait(now)
                continue
            self._next = None
            try:
                await self._tick(now)
            except (Unavailable, TimeoutError) as error:
                self._outages.seen(error)
                self.hear(now)
                failures += 1
                await asyncio.sleep(backoff_s(failures))
            else:
                failures = 0

    async def _wait(self, now: Timestamp) -> None:
        rest_s = None if self._next is None else max((self._next - now) / US_PER_S, _LEAST_WAIT_S)
        try:
            async with asyncio.timeout(rest_s):  # for as long as no schedule is due there is nothing to wait for
                await self._changed.wait()
        except TimeoutError:
            pass
        self._changed.clear()

    async def _tick(self, now: Timestamp) -> None:
        async with asyncio.timeout(_CALL_TIMEOUT_S):
            due = await self._store.due_schedules(now, DUE_SCHEDULES)
        self.hear(due.next_due_at)
        if due.more:
            self.hear(now)
        firings: list[Firing] = []
        for record in due.schedules:
            firing = await self._planned(record, now)
            if firing is not None:
                firings.append(firing)
        for batch in _batches(firings):
            await self._fire_batch(batch)

    async def _planned(self, record: ScheduleRecord, now: Timestamp) -> Firing | None:
        """None: it cannot be decided about, and was paused."""
        try:
            return await self.plan(record, decide(record, now, self._late_us), now)
        except (Unavailable, TimeoutError):
            raise
        except Exception as error:
            logger.exception(
                "schedule %r of namespace %r cannot be decided about", record.schedule_id, record.namespace
            )
            await self._give_up(record, error)
            return None

    async def _fire_batch(self, firings: Sequence[Firing]) -> None:
        try:
            await self.fire(firings)
        except (Unavailable, TimeoutError):
            raise
        except Exception as error:
            if len(firings) > 1:
                for firing in firings:
                    await self._fire_batch((firing,))
                return
            record = firings[0].schedule
            logger.exception("schedule %r of namespace %r cannot fire", record.schedule_id, record.namespace)
            await self._give_up(record, error)

    async def _give_up(self, record: ScheduleRecord, error: Exception) -> None:
        """Paused, so that it harms nobody, and says why."""
        paused = msgspec.structs.replace(
            record,
            enabled=False,
            paused_reason=f"paused by the server: {type(error).__name__}: {error}"[:1_000],
            next_at=None,
            due_at=None,
            updated_at=self._clock.now(),
        )
        await self._store.put_schedule(paused, was=record, skips=())

    # --- also for triggers, backfills and changes -----------------------------------------------------------------------

    async def settle(self, record: ScheduleRecord, now: Timestamp) -> None:
        """What of it is due becomes a run or a skip now, before it is changed: nothing is lost between two revisions."""
        await self.fire([await self.plan(record, decide(record, now, self._late_us, at_once=True), now)])

    async def plan(self, record: ScheduleRecord, decided: Decided, now: Timestamp) -> Firing:
        """As starts. One that is refused already, because its version is deprecated, is a skip."""
        skips = list(decided.skips)
        occasions: tuple[Occasion, ...] = ()
        if decided.runs:
            try:
                version = await self.version_of(record)
            except Unavailable:
                raise
            except KagziError as error:
                reason = refusal_reason(refused(error).error)
                skips += [
                    Fire(nominal_at=nominal, at=now, cause=cause, reason=reason, count=1)
                    for nominal, cause in decided.runs
                ]
            else:
                occasions = tuple(self.occasion(record, version, *run, now=now) for run in decided.runs)
        return Firing(
            schedule=record,
            overlap=record.spec.overlap,
            occasions=occasions,
            skips=tuple(skips),
            next_at=decided.next_at,
            due_at=decided.due_at,
        )

    async def version_of(self, record: ScheduleRecord) -> str:
        key = TypeKey(record.namespace, record.spec.workflow_type)
        return await self._versions.pin(key, record.spec.version)

    def occasion(
        self,
        record: ScheduleRecord,
        version: str,
        nominal: Timestamp,
        cause: Cause,
        *,
        now: Timestamp,
        request: str = "",
    ) -> Occasion:
        spec = record.spec
        start = StartRun(
            run=RunKey(record.namespace, self._ids.run_id(now)),
            workflow_id=run_name(record.schedule_id, nominal),
            workflow_type=spec.workflow_type,
            request_id=request_of(record.schedule_id, request or str(nominal)),
            input=spec.input,
            context=spec.context,
            version=version or None,
            labels=spec.labels,
            priority=spec.priority,
            deadline_at=None if spec.timeout_us is None else now + spec.timeout_us,
            on_conflict="fail",
            schedule_id=record.schedule_id,
        )
        return Occasion(nominal, cause, start)

    async def fire_now(
        self, record: ScheduleRecord, occasions: Sequence[Occasion], overlap: Overlap
    ) -> FiredSchedule | None:
        """Beside its own times. None: the schedule is gone."""
        [fired] = await self.fire([Firing(schedule=record, overlap=overlap, occasions=tuple(occasions), moves=False)])
        return fired

    async def fire(self, firings: Sequence[Firing]) -> Sequence[FiredSchedule | None]:
        now = self._clock.now()
        cancel_by = now + self._cleanup_us
        async with asyncio.timeout(_CALL_TIMEOUT_S):
            answers = await self._store.fire_schedules(firings, now, cancel_by)
        for firing, fired in zip(firings, answers, strict=True):
            if fired is None:
                continue
            if firing.moves:
                self.hear(firing.due_at)
            if fired.started:
                self._apply([start for start, _ in fired.started], [started for _, started in fired.started])
            for cancelled in fired.cancelled:
                if cancelled.run is not None:
                    self._news.cancelled(cancelled.run, cancelled, cancelled.reason, cancel_by)
        return answers


def _batches(firings: Sequence[Firing]) -> list[list[Firing]]:
    batches: list[list[Firing]] = []
    runs = 0
    for firing in firings:
        if not batches or runs + len(firing.occasions) > _RUNS_AT_ONCE:
            batches.append([])
            runs = 0
        batches[-1].append(firing)
        runs += len(firing.occasions)
    return batches

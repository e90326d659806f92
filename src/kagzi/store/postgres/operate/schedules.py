"""Fires schedules. The other verbs about them are shared: `store/operate/schedules`."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import asyncpg

from ....core.effects import Effects
from ....core.errors import InternalError, Unavailable
from ....core.records import RunKey
from ....core.run.commands import StartRun
from ....core.run.outcomes import Busy, Outcome
from ....core.schedules.firing import FiredSchedule, Firing
from ....core.times import Timestamp
from ...operate.schedule_firing import FIRING_TERMS, fire_schedules
from ...operate.schedules import Schedules
from ..connection.connection import Session
from ..connection.connections import Connections
from ..connection.failures import CONTENTION
from ..run.control import cancel_locked
from ..write.batch import Group, Outcomes, Writing
from ..write.endings import MovedError, lock_family
from ..write.starts import start_runs

_TRIES = 3


class PostgresSchedules(Schedules, Connections):
    """Implements `store.protocol.ScheduleVerbs`."""

    async def fire_schedules(
        self, firings: Sequence[Firing], now: Timestamp, cancel_by: Timestamp
    ) -> tuple[Sequence[FiredSchedule | None], Effects]:
        async with self._questions.use() as session:
            runs = _ScheduledRuns(session, now, cancel_by)
            for _ in range(_TRIES):
                try:
                    async with session.transaction():
                        return await fire_schedules(session, runs, firings, now)
                except (*CONTENTION, asyncpg.InFailedSQLTransactionError, MovedError, _BusyError):
                    continue  # a statement that fails inside a start fails the whole transaction
        raise Unavailable("runs that the schedules start are locked by another transaction. Try again.")


class _BusyError(Exception):
    """A start found a locked row: roll back and begin again."""


class _NoRng:
    """Starts use no random numbers."""

    def fraction(self) -> float:
        return 0.0


class _ScheduledRuns(NamedTuple):
    """Implements `ScheduledRuns`."""

    session: Session
    now: Timestamp
    cancel_by: Timestamp

    async def cancel(self, runs: Sequence[RunKey], reason: str) -> Iterable[tuple[RunKey, Effects]]:
        run_ids = [run.run_id for run in runs]
        rows = await lock_family(self.session, run_ids, run_ids)
        return [
            (run, (await cancel_locked(self.session, rows[run.run_id], reason, self.now, self.cancel_by))[1])
            for run in runs
            if run.run_id in rows
        ]

    async def start(self, starts: Sequence[StartRun]) -> tuple[Sequence[Outcome], Sequence[Effects]]:
        outcomes: Outcomes = [None] * len(starts)
        groups: list[Group[StartRun]] = [(start.run, [(index, start)]) for index, start in enumerate(starts)]
        writing = Writing(self.session, self.now, FIRING_TERMS, _NoRng(), outcomes, [])
        await start_runs(writing, groups)
        decided: list[Outcome] = []
        for outcome in outcomes:
            if isinstance(outcome, Busy):
                raise _BusyError
            if outcome is None:
                raise InternalError("a start was left undecided")
            decided.append(outcome)
        return decided, writing.effects

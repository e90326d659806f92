"""Fires schedules. The other verbs about them are shared: `store/operate/schedules`."""

from collections.abc import Iterable, Sequence

from ....core.effects import Effects
from ....core.records import RunKey
from ....core.run.commands import StartRun
from ....core.run.outcomes import Outcome
from ....core.schedules.firing import FiredSchedule, Firing
from ....core.times import Timestamp
from ...operate.schedule_firing import FIRING_TERMS, fire_schedules
from ...operate.schedules import Schedules
from ..connection.connections import Connections
from ..run.control import cancel_run
from ..write.fast_path import WritePlan, Writer
from ..write.starts import start_one


class SqliteSchedules(Schedules, Connections):
    """Implements `store.protocol.ScheduleVerbs`."""

    async def fire_schedules(
        self, firings: Sequence[Firing], now: Timestamp, cancel_by: Timestamp
    ) -> tuple[Sequence[FiredSchedule | None], Effects]:
        return await self._write_with(
            lambda session: fire_schedules(session, _ScheduledRuns(session.writer, now, cancel_by), firings, now)
        )


class _ScheduledRuns:
    """Implements `ScheduledRuns`."""

    def __init__(self, writer: Writer, now: Timestamp, cancel_by: Timestamp) -> None:
        self._writer = writer
        self._batch = WritePlan(writer, now, FIRING_TERMS)
        self._now = now
        self._cancel_by = cancel_by

    async def cancel(self, runs: Sequence[RunKey], reason: str) -> Iterable[tuple[RunKey, Effects]]:
        outcomes = [(run, cancel_run(self._writer, run, reason, self._now, self._cancel_by)) for run in runs]
        return [(run, effects) for run, (status, effects) in outcomes if status is not None]

    async def start(self, starts: Sequence[StartRun]) -> tuple[Sequence[Outcome], Sequence[Effects]]:
        outcomes = [start_one(self._batch, start) for start in starts]
        effects, self._batch.effects = self._batch.effects, []
        return outcomes, effects

"""The firing plan of a schedule: which runs to start for its nominal times, and the result of each."""

from collections.abc import Mapping, Sequence

import msgspec

from ..effects import Effects
from ..errors import InternalError
from ..run.commands import StartRun
from ..run.control import start_effects
from ..run.outcomes import Existing, Outcome, Refused, Started
from ..times import Timestamp
from .schedule import AllowedStart, Cause, Fire, OpenRun, Overlap, ScheduleRecord, overlapped, refusal_reason


class ScheduledStart(msgspec.Struct, frozen=True):
    """A nominal time for which a run is started."""

    nominal_at: Timestamp
    cause: Cause
    start: StartRun


class Firing(msgspec.Struct, frozen=True, kw_only=True):
    """What to do for some nominal times of a schedule, decided from the schedule as it was read.

    `moves`: the schedule's next time becomes `next_at`; the current one must still be the one that was read. Otherwise
    (triggers, backfills) the schedule only has to exist.
    """

    schedule: ScheduleRecord
    overlap: Overlap
    scheduled_starts: tuple[ScheduledStart, ...]
    skips: tuple[Fire, ...] = ()
    moves: bool = True
    next_at: Timestamp | None = None
    due_at: Timestamp | None = None


class FiredSchedule(msgspec.Struct, frozen=True, kw_only=True):
    """The result of each scheduled start, in order. Earlier results are returned as recorded.

    `started`: ids of the new runs. `refused`: why a start was refused, by nominal time.
    """

    fires: tuple[Fire, ...]
    started: tuple[str, ...] = ()
    refused: dict[Timestamp, Refused] = {}


class FiringPlan:
    """The scheduled starts of one firing, and their results. `to_record` are new fires; others were recorded before."""

    def __init__(
        self,
        firing: Firing,
        now: Timestamp,
        *,
        fired: Mapping[Timestamp, Fire],
        runs: Mapping[str, str],
        open_runs: Sequence[OpenRun],
    ) -> None:
        """`fired`: recorded fires of these nominal times; `runs`: ids by request id; `open_runs`: oldest first."""
        self.firing = firing
        self._now = now
        self._fired = fired
        self._runs = runs
        self._open = list(open_runs)
        self._remaining = list(reversed(firing.scheduled_starts))
        self._fires: list[Fire] = []
        self._started: list[str] = []
        self.effects: list[Effects] = []
        self._refused: dict[Timestamp, Refused] = {}
        self.to_record: list[Fire] = list(firing.skips)

    @property
    def cancel_reason(self) -> str:
        return f"schedule {self.firing.schedule.schedule_id!r} starts its next run, and overlap is cancel_other"

    @property
    def has_fired(self) -> bool:
        return bool(self._started)

    def outcome(self) -> FiredSchedule:
        return FiredSchedule(
            fires=tuple(self._fires),
            started=tuple(self._started),
            refused=self._refused,
        )

    def next_starts(self) -> list[tuple[ScheduledStart, AllowedStart]]:
        """The starts to make now; empty when all are done. All of them if runs may overlap, otherwise one at a time."""
        starts: list[tuple[ScheduledStart, AllowedStart]] = []
        while self._remaining and (not starts or self.firing.overlap == "allow"):
            scheduled = self._remaining.pop()
            decided = self._consider(scheduled)
            if decided is not None:
                starts.append((scheduled, decided))
        return starts

    def _consider(self, scheduled: ScheduledStart) -> AllowedStart | None:
        before = self._fired.get(scheduled.nominal_at)
        if before is not None:
            self._fires.append(before)
            return None
        run_id = self._runs.get(scheduled.start.request_id)
        if run_id is not None:
            self._note_run(scheduled, run_id)
            return None
        decided = overlapped(scheduled.start, self.firing.overlap, self._open)
        if isinstance(decided, str):
            self._note_skip(scheduled, decided)
            return None
        return decided

    def note_cancelled(self, run_id: str, effects: Effects) -> None:
        self.effects.append(effects)
        self._open = [each for each in self._open if each.run_id != run_id]

    def note_outcome(self, scheduled: ScheduledStart, start: StartRun, outcome: Outcome) -> None:
        match outcome:
            case Started():
                self._started.append(outcome.run_id)
                self.effects.append(start_effects(start, outcome.status))
                self._open.append(OpenRun(outcome.run_id, waits=bool(start.blocked_by)))
                self._note_run(scheduled, outcome.run_id)
            case Existing():
                self._note_run(scheduled, outcome.run_id)
            case Refused():
                self._refused[scheduled.nominal_at] = outcome
                self._note_skip(scheduled, refusal_reason(outcome.error))
            case _:
                raise InternalError(f"the start of a schedule cannot have the outcome {type(outcome).__name__}")

    def _note_run(self, scheduled: ScheduledStart, run_id: str) -> None:
        fire = Fire(nominal_at=scheduled.nominal_at, at=self._now, cause=scheduled.cause, run_id=run_id)
        self._fires.append(fire)
        repeated = scheduled.cause == "trigger" and run_id not in self._started
        if not repeated:
            self.to_record.append(fire)

    def _note_skip(self, scheduled: ScheduledStart, reason: str) -> None:
        """The reason goes to the caller who triggered the schedule; it is not part of the schedule's history."""
        fire = Fire(nominal_at=scheduled.nominal_at, at=self._now, cause=scheduled.cause, reason=reason, count=1)
        self._fires.append(fire)
        if scheduled.cause != "trigger":
            self.to_record.append(fire)

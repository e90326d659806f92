"""What both stores do alike when a schedule fires: occasion by occasion, under the lock of the schedule."""

from collections.abc import Mapping, Sequence

import msgspec

from ..core.effects import Effects
from ..core.errors import InternalError
from ..core.run.commands import StartRun
from ..core.run.control import start_effects
from ..core.run.outcomes import Existing, Outcome, Refused, Started
from ..core.schedules.schedule import Fire, Go, OpenRun, ScheduleSpec, overlapped, refusal_reason
from ..core.times import Timestamp
from .protocol import FiredSchedule, Firing, LeaseTerms, Occasion

FIRING_TERMS = LeaseTerms(0, 0)  # no lease is touched by a start that is assigned to nobody

_spec_encoder = msgspec.json.Encoder(order="deterministic")
_spec_decoder = msgspec.json.Decoder(ScheduleSpec)


def write_spec(spec: ScheduleSpec) -> str:
    return _spec_encoder.encode(spec).decode()


def read_spec(text: str) -> ScheduleSpec:
    return _spec_decoder.decode(text)


class Book:
    """The occasions of one firing, and what became of them. `to_record` is new; other fires were recorded before."""

    def __init__(
        self,
        firing: Firing,
        now: Timestamp,
        *,
        fired: Mapping[Timestamp, Fire],
        runs: Mapping[str, str],
        open_runs: Sequence[OpenRun],
    ) -> None:
        """`fired`: what was recorded of these nominal times; `runs`: ids by request id; `open_runs`: oldest first."""
        self.firing = firing
        self._now = now
        self._fired = fired
        self._runs = runs
        self._open = list(open_runs)
        self._left = list(reversed(firing.occasions))
        self._fires: list[Fire] = []
        self._started: list[str] = []
        self.effects: list[Effects] = []
        self._refused: dict[Timestamp, Refused] = {}
        self.to_record: list[Fire] = list(firing.skips)

    @property
    def cancel_reason(self) -> str:
        return f"schedule {self.firing.schedule.schedule_id!r} starts its next run and overlap is cancel_other"

    @property
    def has_fired(self) -> bool:
        return bool(self._started)

    def answer(self) -> FiredSchedule:
        return FiredSchedule(
            fires=tuple(self._fires),
            started=tuple(self._started),
            refused=self._refused,
        )

    def next_starts(self) -> list[tuple[Occasion, Go]]:
        """The starts to make now; none when all is done. Where runs may overlap that is all of them, otherwise one at a time."""
        starts: list[tuple[Occasion, Go]] = []
        while self._left and (not starts or self.firing.overlap == "allow"):
            occasion = self._left.pop()
            go = self._consider(occasion)
            if go is not None:
                starts.append((occasion, go))
        return starts

    def _consider(self, occasion: Occasion) -> Go | None:
        before = self._fired.get(occasion.nominal_at)
        if before is not None:
            self._fires.append(before)
            return None
        run_id = self._runs.get(occasion.start.request_id)
        if run_id is not None:
            self._note_run(occasion, run_id)
            return None
        go = overlapped(occasion.start, self.firing.overlap, self._open)
        if isinstance(go, str):
            self._note_skip(occasion, go)
            return None
        return go

    def cancelled(self, run_id: str, effects: Effects) -> None:
        self.effects.append(effects)
        self._open = [each for each in self._open if each.run_id != run_id]

    def came_to(self, occasion: Occasion, start: StartRun, outcome: Outcome) -> None:
        match outcome:
            case Started():
                self._started.append(outcome.run_id)
                self.effects.append(start_effects(start, outcome.status))
                self._open.append(OpenRun(outcome.run_id, waits=bool(start.blocked_by)))
                self._note_run(occasion, outcome.run_id)
            case Existing():
                self._note_run(occasion, outcome.run_id)
            case Refused():
                self._refused[occasion.nominal_at] = outcome
                self._note_skip(occasion, refusal_reason(outcome.error))
            case _:
                raise InternalError(f"the start of a schedule cannot come to {type(outcome).__name__}")

    def _note_run(self, occasion: Occasion, run_id: str) -> None:
        fire = Fire(nominal_at=occasion.nominal_at, at=self._now, cause=occasion.cause, run_id=run_id)
        self._fires.append(fire)
        repeated = occasion.cause == "trigger" and run_id not in self._started
        if not repeated:
            self.to_record.append(fire)

    def _note_skip(self, occasion: Occasion, reason: str) -> None:
        """Somebody who triggers a schedule is told why not: that is not the history of the schedule."""
        fire = Fire(nominal_at=occasion.nominal_at, at=self._now, cause=occasion.cause, reason=reason, count=1)
        self._fires.append(fire)
        if occasion.cause != "trigger":
            self.to_record.append(fire)

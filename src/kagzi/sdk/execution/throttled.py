"""What is said for people to see and is no result: a run's status text, the heartbeats of long steps. The last value wins.

At most one write per 500 ms and subject; a value that came too early is written a little later, if it is still the last.
"""

import asyncio
from typing import TYPE_CHECKING, Any

from ...core import limits
from ...core.errors import InvalidArgument
from ...core.refusals import status_too_long
from ..worker.ports import Answer
from ..workflow.codec import ANY, write_payload
from .state import State

if TYPE_CHECKING:
    from .run_execution import Run

INTERVAL_S = 0.5


class Status:
    """Text and progress of a run."""

    __slots__ = ("_not_before", "_run", "_sent", "_timer", "_waiting")

    def __init__(self, run: "Run") -> None:
        self._run = run
        self._waiting: tuple[str, float | None] | None = None
        self._sent: tuple[str, float | None] | None = None
        self._not_before = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def set(self, text: str, progress: float | None) -> None:
        size = len(text.encode("utf-8", "replace"))
        if size > limits.STATUS_TEXT_BYTES:
            error = status_too_long(size).error
            raise InvalidArgument(error.message, field=error.subject_id, metadata=error.metadata)
        if progress is not None and not 0.0 <= progress <= 1.0:
            raise InvalidArgument(f"progress={progress!r} must be between 0 and 1.", field="progress")
        run = self._run
        if run.replaying or run.state is not State.RUNNING:
            return
        self._waiting = (text, progress)
        rest_s = self._not_before - run.loop.time()
        if rest_s <= 0:
            self.flush()
        elif self._timer is None:
            self._timer = run.loop.call_later(rest_s, self.flush)

    def flush(self) -> None:
        """Say it now: with the run's next operation."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        said, self._waiting = self._waiting, None
        run = self._run
        if said is None or said == self._sent or run.state not in (State.RUNNING, State.PARKING):
            return
        self._sent = said
        self._not_before = run.loop.time() + INTERVAL_S
        letter = run.port.announce().set_status
        letter.text = said[0]
        if said[1] is not None:
            letter.progress = said[1]


class Beats:
    """Heartbeats of the steps of a run, by step id."""

    def __init__(self, run: "Run") -> None:
        self._run = run
        self._last: dict[str, Any] = {}  # what a next try of the step may go on from
        self._waiting: dict[str, tuple[int, Any]] = {}
        self._not_before: dict[str, float] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def beat_from_anywhere(self, step_id: str, attempt: int, details: Any) -> None:
        """From the body of a step, which may run in a thread. Raises InvalidArgument for what has no JSON form."""
        ANY.encode(details, what=f"heartbeat of step {step_id!r}")
        loop = self._run.loop
        try:
            here = asyncio.get_running_loop()
        except RuntimeError:
            here = None
        if here is loop:
            self._beat(step_id, attempt, details)
        elif not loop.is_closed():
            loop.call_soon_threadsafe(self._beat, step_id, attempt, details)

    def recall(self, step_id: str, details: Any) -> None:
        """What an earlier worker said about the step."""
        self._last[step_id] = details

    def last(self, step_id: str) -> Any:
        """What was said last about this step, by whatever attempt; None if nothing was."""
        return self._last.get(step_id)

    def ended(self, step_id: str) -> None:
        """The attempt is over: nothing more is said about it."""
        timer = self._timers.pop(step_id, None)
        if timer is not None:
            timer.cancel()
        self._waiting.pop(step_id, None)
        self._not_before.pop(step_id, None)

    def _beat(self, step_id: str, attempt: int, details: Any) -> None:
        run = self._run
        if run.state not in (State.RUNNING, State.PARKING) or step_id in run.closed_steps:
            return
        run.has_beats = True
        self._last[step_id] = details
        self._waiting[step_id] = (attempt, details)
        rest_s = self._not_before.get(step_id, 0.0) - run.loop.time()
        if rest_s <= 0:
            self._say(step_id)
        elif step_id not in self._timers:
            self._timers[step_id] = run.loop.call_later(rest_s, self._say, step_id)

    def _say(self, step_id: str) -> None:
        self._timers.pop(step_id, None)
        run = self._run
        said = self._waiting.pop(step_id, None)
        if said is None or run.state not in (State.RUNNING, State.PARKING):
            return
        self._not_before[step_id] = run.loop.time() + INTERVAL_S
        payload = write_payload(ANY, said[1], what=f"heartbeat of step {step_id!r}", hook=run.services.hook)
        letter = run.port.send(_ignore).step_heartbeat
        letter.step_id = step_id
        letter.attempt = said[0]
        letter.details.data = payload.data
        if payload.metadata:
            letter.details.metadata.update(payload.metadata)


def _ignore(_: Answer) -> None: ...

"""Throttled updates that people see and no code depends on: a run's status text, the heartbeats of long steps. The last
value wins.

At most one write per 500 ms and subject; a value that came too early is written a little later, if it is still the
last.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from ...core import limits
from ...core.errors import InvalidArgument
from ...core.run.refusals import status_too_long
from ..workflow.codec import ANY, PayloadHook, write_payload
from .claim import Claim
from .ledger import Ledger
from .ports import Answer, RunControl
from .state import RunState

INTERVAL_S = 0.5


@dataclass(slots=True, eq=False)
class Status:
    """Text and progress of a run."""

    _run: RunControl
    _claim: Claim
    _ledger: Ledger
    _next: tuple[str, float | None] | None = field(init=False, default=None)
    _sent: tuple[str, float | None] | None = field(init=False, default=None)
    _not_before: float = field(init=False, default=0.0)
    _timer: asyncio.TimerHandle | None = field(init=False, default=None)

    def set(self, text: str, progress: float | None) -> None:
        size = len(text.encode("utf-8", "replace"))
        if size > limits.STATUS_TEXT_BYTES:
            error = status_too_long(size).error
            raise InvalidArgument(error.message, field=error.subject_id, metadata=error.metadata)
        if progress is not None and not 0.0 <= progress <= 1.0:
            raise InvalidArgument(f"progress={progress!r} must be between 0 and 1.", field="progress")
        if self._ledger.replaying or self._run.state is not RunState.RUNNING:
            return
        self._next = (text, progress)
        loop = self._claim.loop
        rest_s = self._not_before - loop.time()
        if rest_s <= 0:
            self.flush()
        elif self._timer is None:
            self._timer = loop.call_later(rest_s, self.flush)

    def flush(self) -> None:
        """Write it now: with the run's next operation."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        status, self._next = self._next, None
        if status is None or status == self._sent or not self._run.live:
            return
        self._sent = status
        self._not_before = self._claim.loop.time() + INTERVAL_S
        operation = self._claim.port.announce().set_status
        operation.text = status[0]
        if status[1] is not None:
            operation.progress = status[1]


@dataclass(slots=True, eq=False)
class Heartbeats:
    """Heartbeats of the steps of a run, by step id."""

    _run: RunControl
    _claim: Claim
    _ledger: Ledger
    _hook: PayloadHook | None
    _last: dict[str, Any] = field(init=False, default_factory=dict[str, Any])  # what a next attempt may go on from
    _next: dict[str, tuple[int, Any]] = field(init=False, default_factory=dict[str, Any])
    _not_before: dict[str, float] = field(init=False, default_factory=dict[str, float])
    _timers: dict[str, asyncio.TimerHandle] = field(init=False, default_factory=dict[str, asyncio.TimerHandle])

    def beat_from_anywhere(self, step_id: str, attempt: int, details: Any) -> None:
        """From the body of a step, which may run in a thread. Raises InvalidArgument for what has no JSON form."""
        ANY.encode(details, what=f"heartbeat of step {step_id!r}")
        loop = self._claim.loop
        try:
            here = asyncio.get_running_loop()
        except RuntimeError:
            here = None
        if here is loop:
            self._beat(step_id, attempt, details)
        elif not loop.is_closed():
            loop.call_soon_threadsafe(self._beat, step_id, attempt, details)

    def recall(self, step_id: str, details: Any) -> None:
        """The details that an earlier worker sent for the step."""
        self._last[step_id] = details

    def last(self, step_id: str) -> Any:
        """The last details of this step, of whatever attempt; None if there are none."""
        return self._last.get(step_id)

    def ended(self, step_id: str) -> None:
        """The attempt is over: nothing more is written about it."""
        timer = self._timers.pop(step_id, None)
        if timer is not None:
            timer.cancel()
        self._next.pop(step_id, None)
        self._not_before.pop(step_id, None)

    def _beat(self, step_id: str, attempt: int, details: Any) -> None:
        if not self._run.live or step_id in self._ledger.closed:
            return
        self._last[step_id] = details
        self._next[step_id] = (attempt, details)
        loop = self._claim.loop
        rest_s = self._not_before.get(step_id, 0.0) - loop.time()
        if rest_s <= 0:
            self._send(step_id)
        elif step_id not in self._timers:
            self._timers[step_id] = loop.call_later(rest_s, self._send, step_id)

    def _send(self, step_id: str) -> None:
        self._timers.pop(step_id, None)
        heartbeat = self._next.pop(step_id, None)
        if heartbeat is None or not self._run.live:
            return
        self._not_before[step_id] = self._claim.loop.time() + INTERVAL_S
        payload = write_payload(ANY, heartbeat[1], what=f"heartbeat of step {step_id!r}", hook=self._hook)
        operation = self._claim.port.send(_ignore).step_heartbeat
        operation.step_id = step_id
        operation.attempt = heartbeat[0]
        operation.details.data = payload.data
        if payload.metadata:
            operation.details.metadata.update(payload.metadata)


def _ignore(_: Answer) -> None: ...

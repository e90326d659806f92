"""Throttled updates, which others see and the run does not depend on: a run's status text and state, and the heartbeats
of long steps. The last value wins.

At most one write per 500 ms and subject. A value that comes too early is written a little later, if it is still the
last one.
"""

import asyncio
import logging
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ...core import limits
from ...core.checks.refused_requests import error_of
from ...core.checks.values import lines
from ...core.errors import InvalidArgument
from ...core.records import Payload
from ...core.run.refusals import state_too_large, status_too_long
from ...v1 import common_pb2 as common
from ..worker.log_context import fields_of, name_of
from ..workflow.codec import ANY, write_payload
from .claim import Claim
from .ledger import Ledger
from .ports import GONE, Answer, RunControl
from .state import RunState

logger = logging.getLogger("kagzi.worker")

INTERVAL_S = 0.5


@dataclass(slots=True, eq=False)
class State:
    """The state that a run publishes: any JSON value.

    Unlike a status, it is also set while the run is replayed, and written when that is over: a lost worker may not have
    written the last one, and a fork has none.
    """

    _run: RunControl
    _claim: Claim
    _ledger: Ledger
    _next: Payload | None = field(init=False, default=None)
    _sent: Payload | None = field(init=False, default=None)
    _not_before: float = field(init=False, default=0.0)
    _timer: asyncio.TimerHandle | None = field(init=False, default=None)

    def set(self, value: Any) -> None:
        payload = write_payload(ANY, value, what="state")
        if len(payload.data) > limits.STATE_BYTES:
            raise error_of(state_too_large(len(payload.data), limits.STATE_BYTES).error)
        if self._run.state is RunState.RUNNING:
            self._next = payload
            self._flush_in(INTERVAL_S if self._ledger.replaying else self._not_before - self._claim.loop.time())

    def _flush_in(self, delay_s: float) -> None:
        if delay_s <= 0:
            self.flush()
        elif self._timer is None:
            self._timer = self._claim.loop.call_later(delay_s, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        if self._ledger.replaying and self._run.live:
            self._flush_in(INTERVAL_S)
        else:
            self.flush()

    def flush(self) -> None:
        """Write it now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        state, self._next = self._next, None
        if state is None or state == self._sent or not self._run.live:
            return
        self._sent = state
        self._not_before = self._claim.loop.time() + INTERVAL_S
        self._claim.port.send(self._answered).set_state.state.data = state.data

    def _answered(self, answer: Answer) -> None:
        refusal, task = answer.refusal, self._claim.task
        if refusal is not None and refusal.code not in GONE:
            logger.warning("%s: its state was not stored: %s", name_of(task), refusal.message, extra=fields_of(task))


@dataclass(slots=True, eq=False)
class Status:
    """The text, progress and state of a run."""

    _run: RunControl
    _claim: Claim
    _ledger: Ledger
    _next: tuple[str, float | None] | None = field(init=False, default=None)
    _sent: tuple[str, float | None] | None = field(init=False, default=None)
    _not_before: float = field(init=False, default=0.0)
    _timer: asyncio.TimerHandle | None = field(init=False, default=None)
    _state: State | None = field(init=False, default=None)

    def set_state(self, value: Any) -> None:
        if self._state is None:
            self._state = State(self._run, self._claim, self._ledger)
        self._state.set(value)

    def set(self, text: str, progress: float | None) -> None:
        size = len(text.encode("utf-8", "replace"))
        if size > limits.STATUS_TEXT_BYTES:
            raise error_of(status_too_long(size).error)
        if not text.isprintable():
            lines(text, "text", limits.STATUS_TEXT_BYTES)
        if progress is not None and not 0.0 <= progress <= 1.0:
            raise InvalidArgument(f"progress={progress!r} must be between 0 and 1.", field="progress")
        if self._ledger.replaying or self._run.state is not RunState.RUNNING:
            return
        self._next = (text, progress)
        timers = self._claim.timers
        rest_s = self._not_before - timers.time()
        if rest_s <= 0:
            self.flush()
        elif self._timer is None:
            self._timer = timers.call_later(rest_s, self.flush)

    def flush(self) -> None:
        """Write it now: with the run's next operation."""
        if self._state is not None:
            self._state.flush()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        status, self._next = self._next, None
        if status is None or status == self._sent or not self._run.live:
            return
        self._sent = status
        self._not_before = self._claim.timers.time() + INTERVAL_S
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
    _last: dict[str, Any] = field(init=False, default_factory=dict[str, Any])  # the next attempt may continue from it
    _next: dict[str, tuple[int, Any]] = field(init=False, default_factory=dict[str, Any])
    _not_before: dict[str, float] = field(init=False, default_factory=dict[str, float])
    _timers: dict[str, asyncio.TimerHandle] = field(init=False, default_factory=dict[str, asyncio.TimerHandle])

    def beat_from_anywhere(self, step_id: str, attempt: int, details: Any) -> None:
        """A heartbeat from the body of a step, which may run in a thread. Raises InvalidArgument."""
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
        """The last details of this step, of any attempt; None if there are none."""
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
        timers = self._claim.timers
        rest_s = self._not_before.get(step_id, 0.0) - timers.time()
        if rest_s <= 0:
            self._send(step_id)
        elif step_id not in self._timers:
            self._timers[step_id] = timers.call_later(rest_s, self._send, step_id)

    def _send(self, step_id: str) -> None:
        self._timers.pop(step_id, None)
        heartbeat = self._next.pop(step_id, None)
        if heartbeat is None or not self._run.live:
            return
        self._not_before[step_id] = self._claim.timers.time() + INTERVAL_S
        payload = write_payload(ANY, heartbeat[1], what=f"heartbeat of step {step_id!r}")
        operation = self._claim.port.send(partial(self._answered, step_id)).step_heartbeat
        operation.step_id = step_id
        operation.attempt = heartbeat[0]
        operation.details.data = payload.data
        if payload.metadata:
            operation.details.metadata.update(payload.metadata)

    def _answered(self, step_id: str, answer: Answer) -> None:
        """Other refusals come when the attempt has ended."""
        refusal, task = answer.refusal, self._claim.task
        if refusal is not None and refusal.code == common.ERROR_CODE_INVALID_ARGUMENT:
            text = "%s: a heartbeat of step %r was not stored: %s"
            logger.warning(text, name_of(task), step_id, refusal.message, extra=fields_of(task))

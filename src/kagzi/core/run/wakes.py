"""Wakes: a retry, a sleep or a delayed start becomes due now, and the history records it.

The past does not change. The due time of the wait becomes the time of the wake, and the wait ends as usual: through the
worker that holds the run, or through the clock. The wake has its own sequence number.
"""

import msgspec

from ..error_details import ErrorCode, ErrorDetail, ErrorKind
from ..events import EventKind, RunEvent
from ..records import RunKey
from ..states import RUN_STATUS_OF_CODE, KindCode, RunCode, RunStatus, StepCode
from ..text.commands import quoted
from ..times import Timestamp, to_datetime
from .outcomes import Refused
from .refusals import no_step, refused

WOKEN = "$woken"
"""The step id of a row among the attempts that records a wake. No step of a workflow has this id."""
NAMED_WAITS = 6
"""How many waiting steps are read if the request names none; a refusal names all but one of them."""


class Wake(msgspec.Struct, frozen=True, gc=False):
    """`step_id` empty: the run itself if it waits to begin, else its only step that waits for a time."""

    step_id: str
    request_id: str


class Woken(msgspec.Struct, frozen=True, kw_only=True):
    """`woken` False: it was due already, and nothing changed. `step_id` is empty if the run as a whole was woken.
    `due_at`: when it would have been due."""

    run: RunKey
    status: RunStatus
    woken: bool
    step_id: str = ""
    due_at: Timestamp | None = None


class WakeableStep(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a step that determine whether it can be woken."""

    step_id: str
    name: str
    kind: int
    status: int
    attempt: int
    wake_at: Timestamp | None
    retry_at: Timestamp | None
    child_run_id: str | None = None

    @property
    def due_at(self) -> Timestamp | None:
        """None: it does not wait for a time only."""
        if self.kind == KindCode.SLEEP and self.status == StepCode.RUNNING:
            return self.wake_at
        return self.retry_at if self.kind == KindCode.FUNCTION and self.status == StepCode.PENDING else None


class WakeableRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run and the named step; or, if none is named, the first steps that wait for a time.

    `waits_itself`: its due time does not come from a step. It is a delayed start, or a retry of the whole run."""

    run: RunKey
    status: int
    attempt: int
    due_at: Timestamp | None
    waits_itself: bool
    pause_requested: bool
    blocked_by: str | None
    steps: tuple[WakeableStep, ...]


class WakePlan(msgspec.Struct, frozen=True, kw_only=True):
    """What to write: the due time of the step (None: of the run itself), and the note in the history."""

    step: WakeableStep | None
    due_at: Timestamp
    attempt: int
    note: ErrorDetail


def decide_wake(
    state: WakeableRun, wake: Wake, known: ErrorDetail | None, now: Timestamp
) -> WakePlan | Woken | Refused:
    """`known` is the note of an earlier wake with the same request id. Returns Woken if there is nothing to write."""
    status = RUN_STATUS_OF_CODE[state.status]
    if known is not None:
        step_id = known.subject_id if known.subject == "step" else ""
        if wake.step_id not in ("", step_id):
            return _request_used(wake.request_id)
        return Woken(run=state.run, status=status, woken=True, step_id=step_id, due_at=_due_at_of(known))
    run_id = state.run.run_id
    if status.ended:
        return _refuse(state, f"run {run_id} has ended ({status.value}): nothing of it waits.")
    if status is RunStatus.PAUSED or state.pause_requested:
        return _refuse(
            state, f"run {run_id} is paused, or about to be. Resume it first: kagzi resume {quoted(run_id)}."
        )
    waits_itself = state.status == RunCode.SLEEPING and state.waits_itself and state.due_at is not None
    if wake.step_id:
        step = next((each for each in state.steps if each.step_id == wake.step_id), None)
        if step is None:
            return no_step(run_id, wake.step_id)
        if waits_itself:
            at = to_datetime(state.due_at or 0).isoformat()
            message = f"run {run_id} waits as a whole until {at}. Wake it without a step: kagzi wake {quoted(run_id)}."
            return _refuse(state, message)
        return _plan_step(state, step, wake, now)
    if waits_itself:
        due_at = state.due_at or 0
        return _awake(state) if due_at <= now else _plan(state, None, due_at, wake)
    return _only_step(state, wake, now)


def _only_step(state: WakeableRun, wake: Wake, now: Timestamp) -> WakePlan | Woken | Refused:
    run_id = state.run.run_id
    waiting = [step for step in state.steps if (step.due_at or 0) > now]
    if len(waiting) == 1:
        return _plan_step(state, waiting[0], wake, now)
    if waiting:
        names = ", ".join(step.step_id for step in waiting[: NAMED_WAITS - 1])
        more = ", ..." if len(waiting) == NAMED_WAITS else ""
        return _refuse(state, f"several steps of run {run_id} wait for a time: {names}{more}. Name the one to wake.")
    if state.status != RunCode.SLEEPING or (state.due_at is not None and state.due_at <= now):
        return _awake(state)
    if state.blocked_by is not None:
        message = f"run {run_id} begins when run {state.blocked_by} has ended, not at a time. Cancel that run, or wait."
        return _refuse(state, message)
    return _refuse(
        state, f"run {run_id} does not wait for a time. See what it waits for: kagzi explain {quoted(run_id)}."
    )


def _plan_step(state: WakeableRun, step: WakeableStep, wake: Wake, now: Timestamp) -> WakePlan | Woken | Refused:
    due_at = step.due_at
    if due_at is not None:
        return _awake(state, step.step_id) if due_at <= now else _plan(state, step, due_at, wake)
    run_id = state.run.run_id
    if step.status == StepCode.RUNNING and step.kind == KindCode.SIGNAL:
        send = f"kagzi signal {quoted(run_id)} {quoted(step.name)}"
        message = f"step {step.step_id!r} waits for signal {step.name!r}. Send it: {send}."
        return _refuse(state, message)
    if step.status == StepCode.RUNNING and step.kind == KindCode.CHILD:
        return _refuse(state, f"step {step.step_id!r} waits for run {step.child_run_id} to end, not for a time.")
    return _awake(state, step.step_id)


def _plan(state: WakeableRun, step: WakeableStep | None, due_at: Timestamp, wake: Wake) -> WakePlan:
    note = ErrorDetail(
        code=ErrorCode.CANCELLED,
        kind=ErrorKind.CANCELLED,
        message=f"woken by request {wake.request_id!r}; it would have been due at {to_datetime(due_at).isoformat()}",
        subject="run" if step is None else "step",
        subject_id=state.run.run_id if step is None else step.step_id,
        metadata={
            "request_id": wake.request_id,
            "due_at": str(due_at),
            "name": "" if step is None else step.name,
        },
    )
    return WakePlan(step=step, due_at=due_at, attempt=state.attempt if step is None else step.attempt, note=note)


def _awake(state: WakeableRun, step_id: str = "") -> Woken:
    return Woken(run=state.run, status=RUN_STATUS_OF_CODE[state.status], woken=False, step_id=step_id)


def _refuse(state: WakeableRun, message: str) -> Refused:
    return refused(ErrorCode.PRECONDITION_FAILED, message, subject="run", subject_id=state.run.run_id)


def _request_used(request_id: str) -> Refused:
    return refused(
        ErrorCode.CONFLICT,
        f"request_id {request_id!r} belongs to the wake of another step of this run. Give this one its own.",
        subject="request_id",
        subject_id=request_id,
    )


# --- in the history ---------------------------------------------------------------------------------------------------


def woken_event(seq: int, at: Timestamp, attempt: int, note: ErrorDetail | None) -> RunEvent:
    """The event of the row of a wake."""
    if note is None or note.subject != "step":
        return RunEvent(seq=seq, at=at, kind=EventKind.RUN_WOKEN, attempt=attempt, until=_due_at_of(note))
    return RunEvent(
        seq=seq,
        at=at,
        kind=EventKind.STEP_WOKEN,
        step_id=note.subject_id,
        name=note.metadata.get("name") or note.subject_id,
        attempt=attempt,
        until=_due_at_of(note),
    )


def _due_at_of(note: ErrorDetail | None) -> Timestamp | None:
    text = "" if note is None else note.metadata.get("due_at", "")
    return int(text) if text.isdecimal() else None


def planned_wake_at(note: ErrorDetail | None, wake_at: Timestamp | None) -> Timestamp | None:
    """The original end of a sleep, from the note of its first wake."""
    due_at = _due_at_of(note)
    return wake_at if due_at is None else due_at

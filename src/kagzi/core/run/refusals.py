"""Refusals and recorded failures that both stores share: one code, one subject and one wording for each.

`metadata["limit"]` names the limit; `metadata["maximum"]` is what it allows.
"""

import msgspec

from .. import limits
from ..error_details import ErrorCode, ErrorDetail, ErrorKind
from ..errors import REASON, limit_reached
from ..states import KindCode, StepCode
from ..text.plurals import counted
from ..times import US_PER_MS
from .outcomes import Refused

STEPS_LIMIT = "steps_per_run"
"""The name of the limit that refuses further steps. Its refusals are not recorded: there is no room for them."""

RESERVED_PREFIX = "$"
"""Step ids with this prefix belong to the engine: a run's input, context and output are rows of its history."""


def refused(
    code: ErrorCode,
    message: str,
    *,
    subject: str = "",
    subject_id: str = "",
    metadata: dict[str, str] | None = None,
    retry_after_ms: int = 0,
) -> Refused:
    kind = ErrorKind.TRANSIENT if code is ErrorCode.RESOURCE_EXHAUSTED else ErrorKind.PERMANENT
    detail = ErrorDetail(
        code=code,
        kind=kind,
        message=message,
        subject=subject,
        subject_id=subject_id,
        metadata=metadata or {},
        retry_after_ms=retry_after_ms,
    )
    return Refused(detail)


def _of_step(step_id: str, message: str) -> Refused:
    return refused(ErrorCode.PRECONDITION_FAILED, message, subject="step", subject_id=step_id)


# --- cancellation -----------------------------------------------------------------------------------------------------


def being_cancelled(run_id: str, reason: str) -> Refused:
    """The refusal of a new step in a run that is being cancelled. Its worker may first learn of the cancellation here,
    so it includes the reason."""
    detail = ErrorDetail(
        code=ErrorCode.CANCELLED,
        kind=ErrorKind.CANCELLED,
        message=f"run {run_id} is being cancelled: only steps in a cleanup scope may begin",
        subject="run",
        subject_id=run_id,
        metadata={REASON: reason},
    )
    return Refused(detail)


def cascade_reason(parent_run_id: str) -> str:
    """Why a child is cancelled that nobody asked to cancel."""
    return f"run {parent_run_id}, its parent, has ended, is being cancelled, or no longer waits for it"


def cancelled_with(error: ErrorDetail, reason: str) -> ErrorDetail:
    """The recorded error of a cancelled run. It has the reason, even if its worker did not know it."""
    unexplained = error.message in ("", "cancelled")
    return msgspec.structs.replace(error, message=reason) if reason and unexplained else error


# --- steps ------------------------------------------------------------------------------------------------------------


def is_reserved(step_id: str) -> bool:
    return step_id.startswith(RESERVED_PREFIX)


def reserved_step(step_id: str) -> Refused:
    return refused(
        ErrorCode.INVALID_ARGUMENT,
        f"step_id {step_id!r} begins with {RESERVED_PREFIX!r}, which is reserved for Kagzi itself. "
        "Choose another name.",
        subject="field",
        subject_id="step_id",
    )


def other_kind(step_id: str, recorded: int, requested: KindCode) -> Refused:
    was, wanted = KindCode(recorded).name.lower(), requested.name.lower()
    return _of_step(
        step_id,
        f"step {step_id!r} is recorded as a {was} step, not as a {wanted} step: the code does not fit the history.",
    )


def never_begun(step_id: str) -> Refused:
    return _of_step(step_id, f"step {step_id!r} was never begun. Begin it first.")


def first_attempt_is_one(step_id: str, attempt: int) -> Refused:
    return _of_step(step_id, f"step {step_id!r} was never begun: its first attempt is 1, not {attempt}.")


def lost_race(step_id: str) -> Refused:
    return _of_step(step_id, f"step {step_id!r} was abandoned: another branch won its race.")


def not_current(step_id: str, *, status: int, recorded: int, attempt: int) -> Refused:
    """Attempt number `attempt` (0: the current one) is not the running one; the step is recorded at attempt
    `recorded`."""
    if status == StepCode.ABANDONED:
        return lost_race(step_id)
    if status in (StepCode.COMPLETED, StepCode.FAILED):
        return _of_step(step_id, f"step {step_id!r} has a result already, of attempt {recorded}.")
    if attempt not in (0, recorded):
        return _of_step(step_id, f"step {step_id!r} is at attempt {recorded}, not {attempt}.")
    return _of_step(step_id, f"attempt {recorded} of step {step_id!r} waits for its retry. Begin it first.")


def lost_once(step_id: str) -> ErrorDetail:
    """The result of a step that may run only once and began under a lost lease: it is unknown what it did."""
    return ErrorDetail(
        code=ErrorCode.LEASE_LOST,
        kind=ErrorKind.LOST,
        message=f"the worker was lost while step {step_id!r} ran, and once=True forbids another execution",
        non_retryable=True,
        subject="step",
        subject_id=step_id,
    )


def lost_attempt() -> ErrorDetail:
    """The error of an attempt whose worker was lost before it reported a result. Its record names the worker."""
    return ErrorDetail(
        code=ErrorCode.LEASE_LOST,
        kind=ErrorKind.LOST,
        message="the worker was lost before it reported a result; the attempt begins again",
    )


def too_many_steps(run_id: str, maximum: int) -> Refused:
    return refused(
        ErrorCode.RESOURCE_EXHAUSTED,
        f"run {run_id} has {maximum} steps, the maximum. Split the work into several runs.",
        subject="run",
        subject_id=run_id,
        metadata=limit_reached(STEPS_LIMIT, maximum),
    )


def status_too_long(size: int) -> Refused:
    return refused(
        ErrorCode.INVALID_ARGUMENT,
        f"text has {size} bytes; the limit is {limits.STATUS_TEXT_BYTES}. Shorten the status.",
        subject="field",
        subject_id="text",
        metadata=limit_reached("status_text_bytes", limits.STATUS_TEXT_BYTES),
    )


def state_too_large(size: int, maximum: int = limits.STATE_STORED_BYTES) -> Refused:
    return refused(
        ErrorCode.INVALID_ARGUMENT,
        f"state has {size} bytes; the limit is {maximum}. Show less, or keep the data elsewhere and show where it is.",
        subject="field",
        subject_id="state",
        metadata=limit_reached("state_bytes", maximum),
    )


def foreign_request(request_id: str, run_id: str) -> Refused:
    """A child start whose request id belongs to a run that another step or client started."""
    return refused(
        ErrorCode.CONFLICT,
        f"request_id {request_id!r} belongs to run {run_id}, which this step did not start.",
        subject="request_id",
        subject_id=request_id,
        metadata={"run_id": run_id},
    )


def child_conflict(workflow_id: str, run_id: str, *, existing: str, requested: str, itself: bool) -> ErrorDetail:
    """The result of a step whose child cannot be started: the id belongs to an open run, of type `existing`."""
    if existing != requested:
        reason = f"belongs to open run {run_id} of type {existing!r}, not {requested!r}. Use another id."
    elif itself:
        reason = "is the id of the run itself, which would wait for its own end forever. Use another id."
    else:
        reason = f'belongs to open run {run_id}. Use another id, or wait for that run with on_conflict="attach".'
    return ErrorDetail(
        code=ErrorCode.CONFLICT,
        kind=ErrorKind.PERMANENT,
        type="kagzi.AlreadyExists",
        message=f"workflow_id {workflow_id!r} {reason}",
        non_retryable=True,
        subject="workflow_id",
        subject_id=workflow_id,
        metadata={"run_id": run_id},
    )


def unstorable(field: str) -> Refused:
    """PostgreSQL cannot store NUL, and no store can keep a lone surrogate."""
    return refused(
        ErrorCode.INVALID_ARGUMENT,
        f"{field} holds a NUL character or a lone surrogate, which cannot be stored. Remove it.",
        subject="field",
        subject_id=field,
    )


# --- signals ----------------------------------------------------------------------------------------------------------


def takes_no_signals(run_id: str, status: str) -> Refused:
    return refused(
        ErrorCode.PRECONDITION_FAILED,
        f"run {run_id} has ended ({status}) and does not accept signals.",
        subject="run",
        subject_id=run_id,
    )


def too_many_signals(run_id: str) -> Refused:
    return refused(
        ErrorCode.RESOURCE_EXHAUSTED,
        f"run {run_id} has {limits.SIGNALS_BUFFERED} unread signals, the maximum. Wait until it has read some.",
        subject="run",
        subject_id=run_id,
        metadata=limit_reached("signals_buffered", limits.SIGNALS_BUFFERED),
    )


# --- runs -------------------------------------------------------------------------------------------------------------


def nothing_to_wait_for(run_id: str) -> Refused:
    return refused(
        ErrorCode.PRECONDITION_FAILED,
        f"run {run_id} has nothing to wait for: no sleep, signal or child is awaited and no retry is scheduled. "
        "Release it.",
        subject="run",
        subject_id=run_id,
    )


def not_cancelled(run_id: str) -> Refused:
    return refused(
        ErrorCode.PRECONDITION_FAILED,
        f"run {run_id} was not asked to cancel: complete, fail or release it.",
        subject="run",
        subject_id=run_id,
    )


def not_failed(run_id: str, status: str) -> Refused:
    return refused(
        ErrorCode.PRECONDITION_FAILED,
        f"run {run_id} is {status}: only a failed run can be retried.",
        subject="run",
        subject_id=run_id,
    )


def no_step(run_id: str, step_id: str) -> Refused:
    return _of_step(step_id, f"run {run_id} has no step {step_id!r}.")


def no_result_before(step_id: str, from_step: str) -> Refused:
    """The refusal to replace an output in a fork. `from_step` is empty if the fork copies everything."""
    when = f"had no result before {from_step!r} was begun" if from_step else "has no result"
    return refused(
        ErrorCode.PRECONDITION_FAILED,
        f"outputs: step {step_id!r} {when}.",
        subject="field",
        subject_id="outputs",
    )


def workflow_id_of_type(workflow_id: str, run_id: str, existing: str, requested: str) -> Refused:
    message = f"belongs to a run of type {existing!r}, {run_id}, not {requested!r}. Use another workflow_id."
    return _taken(workflow_id, run_id, message)


def request_id_of_type(request_id: str, run_id: str, existing: str, requested: str) -> Refused:
    """Another request with the same id is not a repeat: its caller would believe that it had taken effect."""
    message = f"request_id {request_id!r} started a run of type {existing!r}, {run_id}, not {requested!r}."
    return refused(ErrorCode.CONFLICT, f"{message} Use another request id.", subject="field", subject_id="request_id")


def workflow_id_active(workflow_id: str, run_id: str) -> Refused:
    return _taken(workflow_id, run_id, f'belongs to an open run, {run_id}, and on_conflict is "fail".')


def workflow_id_active_again(workflow_id: str, run_id: str) -> Refused:
    message = f"belongs to another open run, {run_id}. Wait until it ends, or terminate it."
    return _taken(workflow_id, run_id, message)


def _taken(workflow_id: str, run_id: str, message: str) -> Refused:
    return refused(
        ErrorCode.CONFLICT,
        f"workflow_id {workflow_id!r} {message}",
        subject="workflow_id",
        subject_id=workflow_id,
        metadata={"run_id": run_id},
    )


# --- namespaces -------------------------------------------------------------------------------------------------------


def namespace_gone(namespace: str) -> Refused:
    """A namespace that is being deleted is treated as one that does not exist."""
    return refused(ErrorCode.NOT_FOUND, f"namespace {namespace} not found", subject="namespace", subject_id=namespace)


def namespace_disabled(namespace: str, what: str = "runs") -> Refused:
    return refused(
        ErrorCode.PRECONDITION_FAILED,
        f"namespace {namespace!r} is disabled and accepts no new {what}. Enable it first.",
        subject="namespace",
        subject_id=namespace,
    )


def namespace_full(namespace: str, maximum: int) -> Refused:
    return _namespace_limit(
        namespace,
        "open_runs_limit",
        maximum,
        f"has {counted(maximum, 'open run')}, its limit (open_runs_limit). "
        "Wait until some have ended, or raise the limit.",
    )


def schedule_exists(schedule_id: str) -> Refused:
    return refused(
        ErrorCode.CONFLICT,
        f"schedule {schedule_id!r} already exists. Update it, or upsert.",
        subject="schedule",
        subject_id=schedule_id,
    )


def too_many_schedules(namespace: str, maximum: int) -> Refused:
    return _namespace_limit(
        namespace,
        "schedules_limit",
        maximum,
        f"has {counted(maximum, 'schedule')}, its limit (schedules_limit). Delete some, or raise the limit.",
    )


def too_many_sessions(namespace: str, maximum: int) -> Refused:
    return _namespace_limit(
        namespace,
        "sessions_limit",
        maximum,
        f"has {counted(maximum, 'worker')}, its limit (sessions_limit). Stop one, or raise the limit.",
    )


def starts_too_fast(namespace: str, per_second: float, wait_us: int) -> Refused:
    return _namespace_limit(
        namespace,
        "starts_per_second_limit",
        per_second,
        f"starts {per_second:g} runs a second, its limit (starts_per_second_limit). Start fewer, or raise the limit.",
        max(1, -(-wait_us // US_PER_MS)),
    )


def too_much_stored(namespace: str, stored: int, maximum: int) -> Refused:
    return _namespace_limit(
        namespace,
        "stored_bytes_limit",
        maximum,
        f"stores {stored} bytes; its limit (stored_bytes_limit) is {maximum}. Delete runs, shorten its retention, or "
        "raise the limit; the size is measured once a minute.",
        limits.MEASURE_INTERVAL_MS,
    )


def _namespace_limit(namespace: str, limit: str, maximum: float, message: str, retry_after_ms: int = 0) -> Refused:
    return refused(
        ErrorCode.RESOURCE_EXHAUSTED,
        f"namespace {namespace!r} {message}",
        subject="namespace",
        subject_id=namespace,
        metadata=limit_reached(limit, maximum),
        retry_after_ms=retry_after_ms,
    )

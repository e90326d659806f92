"""Children: runs that are steps of another run."""

import msgspec

from ..checks.refused_requests import type_of_refusal
from ..error_details import CHILD_WORKFLOW, CHILD_WORKFLOW_ID, Child, ErrorCode, ErrorDetail, child_message
from ..errors import ChildError
from ..providers import Rng
from ..raised.exceptions import qualified_name
from ..states import RUN_STATUS_OF_CODE, KindCode, RunCode, StepCode
from ..times import Timestamp
from .commands import StartChild
from .fence import refusal_of
from .outcomes import ChildStarted, Known, Outcome, StepFailed
from .refusals import child_conflict, foreign_request, other_kind
from .state import Relative, Relatives, RunState, StepState
from .steps import end_step, may_not_begin, new_result, new_step

CHILD_ERROR = qualified_name(ChildError)


def start_child(run: RunState, command: StartChild, now: Timestamp, rng: Rng) -> Outcome:
    """Decides with the related runs that were read (`run.relatives`); the store then creates the run or the link."""
    step = run.steps.get(command.step_id)
    repeated = step is not None and step.kind == KindCode.CHILD and step.lease == command.lease
    if not repeated and (refused := refusal_of(run, command, now)):
        return refused
    relatives = run.relatives or Relatives()
    if step is None:
        return _first_start(run, relatives, command, now)
    if step.kind != KindCode.CHILD:
        return other_kind(step.step_id, step.kind, KindCode.CHILD)
    if step.child_run_id is None and step.error is not None:
        return StepFailed(step.seq, step.finished_at or 0, step.attempt, step.error)
    if step.child_run_id is None and not step.has_result:
        return _first_start(run, relatives, command, now)
    known = relatives.recorded.get((run.run.run_id, command.step_id))
    if known is None:  # deleted after it ended: its result is in the step
        return Known(step.as_history())
    return ChildStarted(
        step.begun_seq, step.started_at or 0, known.run_id, created=False, status=RUN_STATUS_OF_CODE[known.status]
    )


def _first_start(run: RunState, relatives: Relatives, command: StartChild, now: Timestamp) -> Outcome:
    """The first start, or a new one if the step was begun and a retry of the run removed its child."""
    if refused := may_not_begin(run, command.step_id, cleanup=command.cleanup):
        return refused
    if command.refusal is not None:
        return _refused_start(run, command, now, command.refusal)
    start = command.start
    existing = relatives.by_request.get(start.request_id)
    foreign = (run.run.run_id, command.step_id) in relatives.foreign or start.request_id in relatives.created_requests
    if existing is not None and foreign:
        return _refused_start(run, command, now, foreign_request(start.request_id, existing.run_id).error)
    if existing is None:
        existing = relatives.active.get(start.workflow_id)
        if existing is not None and (error := _conflict(run, command, existing)) is not None:
            return _refused_start(run, command, now, error)
    if existing is not None:
        step = _waiting_step(run, command, now)
        step.child_run_id = existing.run_id
        relatives.links.append((existing.run_id, run.run.run_id, command.step_id, run.run.namespace))
        relatives.recorded[run.run.run_id, command.step_id] = existing
        return ChildStarted(
            step.begun_seq, now, existing.run_id, created=False, status=RUN_STATUS_OF_CODE[existing.status]
        )
    if refused := relatives.refuse_start(start, now):
        return _refused_start(run, command, now, refused.error)
    status = _status_of(command, now)
    step = _waiting_step(run, command, now)
    step.child_run_id = start.run.run_id
    run.has_children = True
    relatives.created.append(command)
    child = Relative(start.run.run_id, start.workflow_type, status)
    relatives.active[start.workflow_id] = relatives.recorded[run.run.run_id, command.step_id] = child
    relatives.by_request[start.request_id] = child
    relatives.created_requests.add(start.request_id)
    return ChildStarted(step.begun_seq, now, start.run.run_id, created=True, status=RUN_STATUS_OF_CODE[status])


def _waiting_step(run: RunState, command: StartChild, now: Timestamp) -> StepState:
    """The step of an existing child. A step that was begun before keeps its number, so that replay finds it."""
    step = run.steps.get(command.step_id)
    if step is None:
        return new_step(run, command, now, KindCode.CHILD)
    run.next_seq()
    step.lease, step.worker_id, step.started_at, step.changed = command.lease, run.worker_id, now, True
    return step


def _refused_start(run: RunState, command: StartChild, now: Timestamp, error: ErrorDetail) -> StepFailed:
    """The refusal is the result of the step: code that handles it does the same on replay, when there may be room."""
    step = run.steps.get(command.step_id)
    if step is None:
        step = new_result(run, command, now, KindCode.CHILD)
        step.status = StepCode.FAILED
    else:
        end_step(run, step, command, now, StepCode.FAILED)
    step.error = msgspec.structs.replace(error, type=error.type or type_of_refusal(error.code))
    return StepFailed(step.seq, now, step.attempt, step.error)


def is_refused_start(error: ErrorDetail) -> bool:
    """Whether the error of a failed child step says that the child was never started."""
    return error.type not in ("", CHILD_ERROR)  # a history made by hand may lack the type


def _status_of(command: StartChild, now: Timestamp) -> int:
    start = command.start
    if start.start_at is not None and start.start_at > now:
        return RunCode.SLEEPING
    return RunCode.PENDING if start.assignment is None else RunCode.RUNNING


def _conflict(run: RunState, command: StartChild, existing: Relative) -> ErrorDetail | None:
    """Why the open run with that workflow id cannot be the child."""
    start, itself = command.start, existing.run_id == run.run.run_id
    if command.attach and existing.workflow_type == start.workflow_type and not itself:
        return None
    return child_conflict(
        start.workflow_id,
        existing.run_id,
        existing=existing.workflow_type,
        requested=start.workflow_type,
        itself=itself,
    )


def child_error(child: Child, status: int, error: ErrorDetail | None) -> ErrorDetail:
    """The error of a parent's step whose child failed, or was cancelled, with `error`."""
    cause = error or ErrorDetail()
    return ErrorDetail(
        code=ErrorCode.CANCELLED if status == RunCode.CANCELLED else ErrorCode.USER,
        kind=cause.kind,
        type=CHILD_ERROR,
        message=child_message(child, RUN_STATUS_OF_CODE[status].value, cause),
        subject="run",
        subject_id=child.run_id,
        metadata={CHILD_WORKFLOW: child.workflow, CHILD_WORKFLOW_ID: child.workflow_id},
        cause=error,
    )

"""Changes to a run that its worker does not make, but people, the clock or other runs: the new status, and the error of
a run that ends."""

from typing import Literal

import msgspec

from ..effects import Effects, LeaseEvent, LeaseNotice
from ..error_details import ErrorCode, ErrorDetail, ErrorKind
from ..limits import SIGNALS_BUFFERED
from ..records import Lease, RunEnd, RunKey, RunLease
from ..states import RUN_STATUS_OF_CODE, RunCode, RunStatus, require_transition
from ..text.commands import quoted
from ..times import Timestamp, to_datetime
from ..workflow_types.type_key import TypeKey
from .commands import StartRun
from .outcomes import Refused
from .refusals import not_failed, refused, takes_no_signals, too_many_signals, workflow_id_active_again


def has_ended(status: int) -> bool:
    return RunCode.COMPLETED <= status <= RunCode.CANCELLED


# --- operations -------------------------------------------------------------------------------------------------------


def after_cancel(status: int, lease: int) -> RunCode | None:
    """None: it has ended. A run that was never claimed has nothing to clean up and ends; a run that no worker holds
    becomes PENDING, to be cleaned up."""
    if has_ended(status):
        return None
    if lease == 0:
        require_transition(status, RunCode.CANCELLED)
        return RunCode.CANCELLED
    return RunCode.RUNNING if status == RunCode.RUNNING else RunCode.PENDING


def after_terminate(status: int) -> RunCode | None:
    """None: it has ended."""
    if has_ended(status):
        return None
    require_transition(status, RunCode.CANCELLED)
    return RunCode.CANCELLED


def after_pause(status: int, *, pause_requested: bool, cancel_requested: bool) -> RunCode | None:
    """None: nothing changes; a run that is being cancelled is not paused. RUNNING: its worker is asked to release
    it."""
    if has_ended(status) or status == RunCode.PAUSED or pause_requested or cancel_requested:
        return None
    if status == RunCode.RUNNING:
        return RunCode.RUNNING
    require_transition(status, RunCode.PAUSED)
    return RunCode.PAUSED


def can_resume(status: int, *, pause_requested: bool) -> bool:
    """Whether the run is PAUSED, or RUNNING with a pause request, which is then withdrawn."""
    return status == RunCode.PAUSED or (status == RunCode.RUNNING and pause_requested)


class Adoption(msgspec.Struct, frozen=True, gc=False):
    """The effect of adopting a run. `pins`: `build_id` is written, None for no build; `resumes`: the PAUSED run is
    resumed."""

    build_id: str | None
    pins: bool
    resumes: bool

    @property
    def changes(self) -> bool:
        return self.pins or self.resumes


def decide_adoption(run_id: str, status: int, pinned_build: str | None, build_id: str) -> Adoption | Refused:
    """From now on only workers of the build may claim the run; with an empty build id every worker may, and a PAUSED
    run stays paused. A RUNNING run is refused: its worker would continue it."""
    if has_ended(status):
        return refused(
            ErrorCode.PRECONDITION_FAILED,
            f"run {run_id} has ended ({RUN_STATUS_OF_CODE[status].value}): only an open run can be adopted. "
            f"Start a new one from its history: kagzi fork {quoted(run_id)}",
            subject="run",
            subject_id=run_id,
        )
    wanted = build_id or None
    pins = pinned_build != wanted
    if pins and wanted is not None and status == RunCode.RUNNING:
        return refused(
            ErrorCode.PRECONDITION_FAILED,
            f"run {run_id} is being executed by a worker. Pause it, and adopt it when it is paused: "
            f"kagzi pause {quoted(run_id)}",
            subject="run",
            subject_id=run_id,
        )
    return Adoption(wanted, pins, resumes=wanted is not None and status == RunCode.PAUSED)


def refuse_retry(run_id: str, status: int, workflow_id: str, active_run_id: str | None) -> Refused | None:
    """None: the run becomes PENDING again. `active_run_id`: an open run with the same workflow id."""
    if status != RunCode.FAILED:
        return not_failed(run_id, RUN_STATUS_OF_CODE[status].value)
    if active_run_id is not None:
        return workflow_id_active_again(workflow_id, active_run_id)
    require_transition(status, RunCode.PENDING)
    return None


def after_lost_lease(
    run_id: str, times: int, claim_cap: int, *, pause_requested: bool
) -> tuple[RunCode, ErrorDetail | None]:
    """The status of a run whose worker was lost `times` times without progress, and the problem if it becomes
    PAUSED."""
    if times >= claim_cap:
        return RunCode.PAUSED, quarantine_problem(run_id, times)
    return RunCode.PAUSED if pause_requested else RunCode.PENDING, None


def refuse_signal(run_id: str, status: int, *, waited_for: bool, unread: int) -> Refused | None:
    """None: a step waits for it, or there is room for one more. `unread`: the run's unread signals."""
    if has_ended(status):
        return takes_no_signals(run_id, RUN_STATUS_OF_CODE[status].value)
    return too_many_signals(run_id) if not waited_for and unread >= SIGNALS_BUFFERED else None


def runs_to_search(
    *, by_workflow_id: bool, has_ended_runs: bool, continued: bool
) -> "Literal['earlier', 'later'] | None":
    """Which other runs may have recorded a request, besides the run that it reaches now. None: none.

    If the request names a workflow id, an earlier run may have received it and ended. If it names a run id, that run
    may have received it and passed it on with its unconsumed signals when it continued as new. `has_ended_runs`: runs
    of the workflow id have ended; `continued`: the run has continued as new."""
    if by_workflow_id:
        return "earlier" if has_ended_runs else None
    return "later" if continued else None


# --- effects ----------------------------------------------------------------------------------------------------------


class RunHead(msgspec.Struct, frozen=True, gc=False):
    """A run before a change that its worker did not make."""

    run: RunKey
    workflow_type: str
    status: int
    lease: Lease
    worker_id: str | None
    has_children: bool = False

    @property
    def type_key(self) -> TypeKey:
        return TypeKey(self.run.namespace, self.workflow_type)

    def notices(self, event: LeaseEvent, reason: str = "") -> tuple[LeaseNotice, ...]:
        """Empty if no worker holds the run."""
        if self.status != RunCode.RUNNING:
            return ()
        return (LeaseNotice(RunLease(self.run, self.lease), event, self.worker_id, reason),)


def result_effects(head: RunHead) -> Effects:
    """A result arrived for the run. PENDING counts as woken: a claim may just have skipped the locked row."""
    pending = (head.type_key,) if head.status in (RunCode.PENDING, RunCode.SLEEPING) else ()
    return Effects(pending=pending, notices=head.notices("result"), changed=(head.run,))


def cancel_effects(head: RunHead, then: RunCode, reason: str, cancel_by: Timestamp) -> Effects:
    """`then` is the result of `after_cancel`."""
    if then is RunCode.CANCELLED:
        return end_effects(head, RunStatus.CANCELLED, cancelled_error(reason))
    return Effects(
        pending=() if then is RunCode.RUNNING else (head.type_key,),
        notices=head.notices("cancel_requested", reason),
        due=(cancel_by,),
        changed=(head.run,),
        children_due=head.has_children,
    )


def end_effects(head: RunHead, status: RunStatus, error: ErrorDetail) -> Effects:
    """The run ended without a command of its worker."""
    return Effects(
        notices=head.notices("lease_lost", error.message),
        ended=(RunEnd(run=head.run, status=status, error=error, workflow_type=head.workflow_type),),
        children_due=head.has_children,
    )


def fire_effects(head: RunHead, then: RunCode, error: ErrorDetail | None, *, lost: bool) -> Effects:
    """The clock woke the run, ended it, or (`lost`) took it from its worker. No notice is sent for an expired lease: if
    the worker is alive, it learns of it with its next heartbeat."""
    if error is not None and has_ended(then):
        return end_effects(head, RUN_STATUS_OF_CODE[then], error)
    key = (head.type_key,)
    notices = (LeaseNotice(RunLease(head.run, head.lease), "lease_lost"),) if lost else ()
    return Effects(pending=key if then is RunCode.PENDING else (), released=key if lost else (), notices=notices)


def pause_effects(head: RunHead, reason: str) -> Effects:
    return Effects(notices=head.notices("pause_requested", reason), changed=(head.run,))


def reopen_effects(head: RunHead, status: RunStatus, *, children_due: bool = False) -> Effects:
    """The run was resumed or retried, and has this status now."""
    pending = (head.type_key,) if status is RunStatus.PENDING else ()
    return Effects(pending=pending, changed=(head.run,), children_due=children_due)


def start_effects(start: StartRun, status: RunStatus) -> Effects:
    """A run was created that no worker holds."""
    pending = (TypeKey(start.run.namespace, start.workflow_type),) if status is RunStatus.PENDING else ()
    return Effects(pending=pending, due=tuple(at for at in (start.deadline_at, start.start_at) if at is not None))


# --- errors -----------------------------------------------------------------------------------------------------------


def cancelled_error(reason: str, cancel_by: Timestamp | None = None) -> ErrorDetail:
    """The error of a run that was cancelled without its worker. `cancel_by`: the end of the time for its cleanup."""
    late = "" if cancel_by is None else f"; its cleanup had not ended by {to_datetime(cancel_by).isoformat()}"
    message = f"{reason or 'the run was cancelled'}{late}"
    return ErrorDetail(code=ErrorCode.CANCELLED, kind=ErrorKind.CANCELLED, message=message)


def terminated_error(reason: str) -> ErrorDetail:
    message = reason or "the run was terminated"
    return ErrorDetail(code=ErrorCode.CANCELLED, kind=ErrorKind.TERMINATED, message=message)


def replaced_error(run_id: str) -> ErrorDetail:
    """The error of a run that was replaced by `run_id`."""
    return ErrorDetail(
        code=ErrorCode.CANCELLED,
        kind=ErrorKind.TERMINATED,
        message=f"replaced by run {run_id}, which was started with on_conflict=replace",
        subject="run",
        subject_id=run_id,
    )


def deadline_error(deadline_at: Timestamp) -> ErrorDetail:
    at = to_datetime(deadline_at).isoformat()
    return ErrorDetail(
        code=ErrorCode.TIMEOUT,
        kind=ErrorKind.TIMEOUT,
        message=f"the run did not end before its deadline, {at}",
        subject="deadline",
        subject_id=at,
    )


def quarantine_problem(run_id: str, times: int) -> ErrorDetail:
    """Why a run is PAUSED that lost its worker repeatedly."""
    return ErrorDetail(
        code=ErrorCode.PRECONDITION_FAILED,
        kind=ErrorKind.LOST,
        message=f"the run lost its worker {times} times without progress and is paused. "
        f"Find out why it kills its workers, then resume it: kagzi resume {quoted(run_id)}",
        subject="run",
        subject_id=run_id,
    )

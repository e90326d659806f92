"""How a worker's hold of a run ends, other than by parking: complete, fail, cancel, release, continue as new, pause."""

from ..error_details import ErrorDetail, ErrorKind
from ..pages.pauses import PAUSED
from ..providers import Rng
from ..records import Lease
from ..retry.policy import RetryAt, after_failure
from ..states import RUN_STATUS_OF_CODE, KindCode, RunCode, RunStatus, StepCode, WaitCode
from ..times import Timestamp
from .commands import CancelRun, CompleteRun, ContinueAsNew, EndRun, FailRun, PauseDiverged, ReleaseRun, WorkerCommand
from .fence import refusal_of
from .outcomes import Outcome, RunClosed
from .refusals import being_cancelled, cancelled_with, not_cancelled
from .signals import take_back
from .state import OUTPUT_STEP, AttemptState, RunState, StepState


def complete_run(run: RunState, command: CompleteRun, now: Timestamp, rng: Rng) -> Outcome:
    if (refused := _ended_before(run, command)) or (refused := refusal_of(run, command, now)):
        return refused
    if _interrupted_by_cancel(run, command.after_step):
        return being_cancelled(run.run.run_id, run.cancel_reason)
    _end_run(run, command, RunCode.COMPLETED, None, now)
    run.steps[OUTPUT_STEP] = StepState(
        step_id=OUTPUT_STEP,
        name=OUTPUT_STEP,
        kind=KindCode.OUTPUT,
        status=StepCode.COMPLETED,
        begun_seq=run.seq,
        seq=run.seq,
        lease=command.lease,
        created_at=now,
        started_at=now,
        finished_at=now,
        worker_id=run.worker_id,
        output=command.output,
        new=True,
        changed=True,
    )
    return _closed(run, now)


def fail_run(run: RunState, command: FailRun, now: Timestamp, rng: Rng) -> Outcome:
    if run.status == RunCode.SLEEPING and run.wait_reason == WaitCode.RETRY and run.lease == command.lease:
        return RunClosed(run.seq, now, RunStatus.SLEEPING, run.due_at)
    if (refused := _ended_before(run, command)) or (refused := refusal_of(run, command, now)):
        return refused
    if _interrupted_by_cancel(run, command.after_step):
        return being_cancelled(run.run.run_id, run.cancel_reason)
    error = command.error
    if run.retry is not None:
        decision = after_failure(run.retry, run.attempt, error, now, rng=rng, deadline_at=run.deadline_at)
        if isinstance(decision, RetryAt):
            return _retry_run(run, decision, now)
        error = decision.error
    _end_run(run, command, RunCode.FAILED, error, now)
    return _closed(run, now)


def cancel_run(run: RunState, command: CancelRun, now: Timestamp, rng: Rng) -> Outcome:
    if (refused := _ended_before(run, command)) or (refused := refusal_of(run, command, now)):
        return refused
    if run.cancel_requested_at is None:
        return not_cancelled(run.run.run_id)
    _end_run(run, command, RunCode.CANCELLED, cancelled_with(command.error, run.cancel_reason), now)
    return _closed(run, now)


def release_run(run: RunState, command: ReleaseRun, now: Timestamp, rng: Rng) -> Outcome:
    if run.status in (RunCode.PENDING, RunCode.PAUSED) and run.lease == command.lease:
        return RunClosed(run.seq, run.ready_at or now, RUN_STATUS_OF_CODE[run.status])
    if refused := refusal_of(run, command, now):
        return refused
    run.next_seq()
    if run.pause_requested:
        run.leave(RunCode.PAUSED)
        return RunClosed(run.seq, now, RunStatus.PAUSED)
    run.leave(RunCode.PENDING)
    run.ready_at = now
    return RunClosed(run.seq, now, RunStatus.PENDING)


def pause_diverged(run: RunState, command: PauseDiverged, now: Timestamp, rng: Rng) -> Outcome:
    if run.status == RunCode.PAUSED and run.lease == command.lease:
        return RunClosed(run.seq, now, RunStatus.PAUSED)
    if refused := refusal_of(run, command, now):
        return refused
    number = run.next_seq()
    run.new_attempts.append(
        AttemptState(
            step_id=PAUSED,
            attempt=number,
            begun_seq=number,
            seq=number,
            lease=Lease(0, 0),  # no lease: it never matches a repeated command
            started_at=None,
            finished_at=now,
            retry_at=now,
            error=command.problem,
        )
    )
    run.leave(RunCode.PAUSED)
    run.problem, run.diverged, run.tried_build = command.problem, True, command.build_id
    # The build it was pinned to does not match either: others may try. Code that cannot read a signal still matches.
    run.unpin_build = command.problem.kind is ErrorKind.NONDETERMINISM
    return RunClosed(run.seq, now, RunStatus.PAUSED)


def continue_as_new(run: RunState, command: ContinueAsNew, now: Timestamp, rng: Rng) -> Outcome:
    if (refused := _ended_before(run, command)) or (refused := refusal_of(run, command, now)):
        return refused
    if run.cancel_requested_at is not None:
        return being_cancelled(run.run.run_id, run.cancel_reason)
    run.successor_paused = run.pause_requested
    _end_run(run, command, RunCode.COMPLETED, None, now)
    run.continued_as, run.successor = command.new_run_id, command
    return _closed(run, now)


def _interrupted_by_cancel(run: RunState, after_step: str) -> bool:
    """Whether the run is being cancelled and the step that its end depends on was not allowed to begin."""
    if run.cancel_requested_at is None or not after_step:
        return False
    step = run.steps.get(after_step)
    return step is None or not step.has_result


def _retry_run(run: RunState, decision: RetryAt, now: Timestamp) -> Outcome:
    run.next_seq()
    run.attempt = decision.attempt
    if run.pause_requested:
        run.leave(RunCode.PAUSED)
        return RunClosed(run.seq, now, RunStatus.PAUSED)
    if decision.at <= now:
        run.leave(RunCode.PENDING)
        run.ready_at = now
        return RunClosed(run.seq, now, RunStatus.PENDING, decision.at)
    run.leave(RunCode.SLEEPING)
    run.wait_reason, run.due_at = WaitCode.RETRY, decision.at
    return RunClosed(run.seq, now, RunStatus.SLEEPING, decision.at)


def _end_run(run: RunState, command: EndRun, status: RunCode, error: ErrorDetail | None, now: Timestamp) -> None:
    for step in take_back(run, [run.steps[wait] for wait in command.open_waits if wait in run.steps]):
        step.status, step.seq, step.finished_at, step.changed = StepCode.RUNNING, 0, None, True
    run.next_seq()
    run.leave(status)
    run.finished_at, run.error = now, error
    run.children_due = run.cascade_due = run.cascade_due or run.has_children


def _ended_before(run: RunState, command: WorkerCommand) -> Outcome | None:
    """The response to a repeat by the worker that ended the run: how it ended."""
    if not run.ended or run.lease != command.lease:
        return None
    return _closed(run, run.finished_at or 0)


def _closed(run: RunState, at: Timestamp) -> RunClosed:
    status = RUN_STATUS_OF_CODE[run.status]
    return RunClosed(run.seq, at, status, continued_as=run.continued_as)

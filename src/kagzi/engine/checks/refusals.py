"""Converts outcomes that are refusals to the exceptions that unary calls raise, and back."""

from datetime import timedelta

from ...core.checks.refused_requests import error_of
from ...core.error_details import ErrorDetail
from ...core.errors import DeadlinePassed, KagziError, LeaseLost, RequestError, ServerUnavailable, not_found
from ...core.records import RunKey
from ...core.run import outcomes
from ...core.run.commands import Command
from ...core.run.outcomes import Outcome


def refusal_of(outcome: Outcome, command: Command) -> KagziError | None:
    """The exception for a refusal; None for any other outcome."""
    match outcome:
        case outcomes.Refused(error):
            return error_of(error)
        case outcomes.LeaseLost():
            return lease_lost(command.run)
        case outcomes.RunNotFound():
            return not_found("run", command.run.run_id)
        case outcomes.DeadlinePassed():
            return DeadlinePassed(
                f"the deadline of run {command.run.run_id} has passed: nothing more is recorded. Abandon the run.",
                subject="run",
                subject_id=command.run.run_id,
            )
        case outcomes.Busy() | outcomes.Deferred():
            return ServerUnavailable(f"run {command.run.run_id} is locked by another transaction. Try again.")
        case outcomes.Failed():
            return ServerUnavailable(f"the store failed on this operation of run {command.run.run_id}. Try again.")
        case _:
            return None


def refused(error: KagziError) -> outcomes.Refused:
    """An exception as the response to one of several operations."""
    subject, subject_id = (error.subject, error.subject_id) if isinstance(error, RequestError) else ("", "")
    retry_after_ms = error.retry_after // timedelta(milliseconds=1) if error.retry_after else 0
    detail = ErrorDetail(
        code=error.code,
        kind=error.kind,
        message=error.message,
        subject=subject,
        subject_id=subject_id,
        metadata=error.metadata,
        retry_after_ms=retry_after_ms,
    )
    return outcomes.Refused(detail)


def lease_lost(run: RunKey) -> LeaseLost:
    return LeaseLost(
        f"the lease on run {run.run_id} is lost: another worker has it, or it has ended or sleeps. Abandon it.",
        subject="run",
        subject_id=run.run_id,
    )

"""BeginStep for callers of the first contract, whose response has no place for an error or for the time of a retry."""

from datetime import timedelta

from ....core.errors import PreconditionFailed, ServerUnavailable
from ....core.records import HistoryStep
from ....core.states import StepStatus
from ....core.times import Timestamp


def raise_unless_completed(step: HistoryStep, now: Timestamp) -> None:
    """Raises ServerUnavailable for a step that waits for its retry, and PreconditionFailed for one that has failed for
    good: their callers would take the missing output for a result."""
    if step.retry_at is not None:
        retry_after = timedelta(microseconds=max(step.retry_at - now, 0))
        raise ServerUnavailable(
            f"step {step.step_id} failed and waits for its retry. Begin it again in {retry_after.total_seconds():.3f} "
            "s.",
            retry_after=retry_after,
        )
    if step.status is not StepStatus.COMPLETED:
        why = "it was closed" if step.error is None else step.error.text
        raise PreconditionFailed(
            f"step {step.step_id} has failed for good: {why}", subject="step", subject_id=step.step_id
        )

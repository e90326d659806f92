"""Explains attempts that were lost with their workers."""

from collections.abc import Sequence

from ....core.records import StepRecord
from ....core.states import StepStatus
from ....core.times import to_datetime

_NAMED = 3


def lost_attempts(steps: Sequence[StepRecord]) -> tuple[str, dict[str, str]]:
    """For steps without a result: a sentence about earlier attempts that were lost, and the facts. Empty if there are
    none."""
    lost = [(step, step.attempts[-1]) for step in steps if step.attempts and step.attempts[-1].lost]
    if not lost:
        return "", {}
    sentences = [
        f"attempt {attempt.attempt} of step {step.step_id} was lost with worker {attempt.worker_id or 'unknown'}, "
        f"noticed at {to_datetime(attempt.finished_at).isoformat(timespec='milliseconds')}, and "
        f"{'runs again' if _runs_again(step) else 'is to begin again'}"
        for step, attempt in lost[:_NAMED]
    ]
    more = f"; and {len(lost) - _NAMED} more" if len(lost) > _NAMED else ""
    words = "; ".join(sentences)
    return f" {words[0].upper()}{words[1:]}{more}.", {"lost_attempts": str(len(lost))}


def _runs_again(step: StepRecord) -> bool:
    """Whether it was begun again afterwards."""
    last = step.attempts[-1]
    return step.status is StepStatus.RUNNING and (step.started_at or 0) != (last.started_at or 0)

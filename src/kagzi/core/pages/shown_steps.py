"""Steps as people see them: nothing of it is stored."""

import msgspec

from ..records import StepAttempt, StepRecord
from ..states import StepKind, StepStatus
from ..times import Timestamp


def shown_step(step: StepRecord, run_finished_at: Timestamp | None) -> StepRecord:
    """A step as people see it: attempts before an explicit retry are marked, and a step that was open when its run
    ended is shown as abandoned. Nothing is written, so that a retried run finds its steps unchanged."""
    if step.attempts and (attempts := _marked_attempts(step)) is not step.attempts:
        step = msgspec.structs.replace(step, attempts=attempts)
    if run_finished_at is None or step.status not in (StepStatus.RUNNING, StepStatus.PENDING):
        return step
    return msgspec.structs.replace(step, status=StepStatus.ABANDONED, finished_at=run_finished_at, retry_at=None)


def _marked_attempts(step: StepRecord) -> tuple[StepAttempt, ...]:
    """From the latest to the oldest, attempt numbers decrease from the step's own to 1: where one does not, an explicit
    retry restarted the count. Only an explicit retry starts a child again, and it continues the count."""
    number = 0 if step.kind is StepKind.CHILD else step.attempt
    for place in range(len(step.attempts) - 1, -1, -1):
        attempt = step.attempts[place]
        if attempt.lost and not attempt.error.non_retryable:
            continue  # a lost attempt does not count: the next one has the same number
        if attempt.attempt >= number:
            before = (msgspec.structs.replace(each, before_retry=True) for each in step.attempts[: place + 1])
            return (*before, *step.attempts[place + 1 :])
        number = attempt.attempt
    return step.attempts

"""Explains why a failed run was not retried."""

from ....core.records import RunRecord
from ....core.retry.policy import SERVER_DEFAULT
from ....core.retry.reasons import why_not_retried
from ....core.states import RunStatus, StepKind
from ....store.protocol import Store


async def not_retried(store: Store, run: RunRecord) -> str:
    """About the step that failed the run, else about the run itself, if it has a retry policy. Empty if there is
    nothing to say."""
    error = run.error
    if run.status is not RunStatus.FAILED or error is None:
        return ""
    if error.subject != "step":
        return "" if run.retry is None else why_not_retried(run.retry, error)
    step = await store.get_step(run.run, error.subject_id)
    if step is None or step.error is None or step.kind is not StepKind.FUNCTION:
        return ""
    return why_not_retried(step.retry or SERVER_DEFAULT, step.error)

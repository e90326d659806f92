"""Names what blocks the event loop: the step or workflow whose code another thread sees on its stack."""

from types import FrameType

from ..execution.calls.bodies import perform
from ..execution.main import run_function

_IN_STEP = perform.__code__
_IN_WORKFLOW = run_function.__code__
_TO_A_THREAD = (
    "Make the step a plain `def` (it then runs in a thread), or await asyncio.to_thread(...) for the part that blocks."
)


def blocked_by(frame: FrameType | None) -> str:
    """A sentence that names the step or workflow and the remedy."""
    step_id = ""
    while frame is not None:
        if frame.f_code is _IN_STEP:
            step_id = frame.f_locals["body"].step_id
        elif frame.f_code is _IN_WORKFLOW:
            run = frame.f_locals["run"]
            of_run = f"workflow {run.workflow.name!r} (run {run.run_id})"
            if step_id:
                return f"Step {step_id!r} of {of_run} blocks it. {_TO_A_THREAD}"
            return (
                f"The code of {of_run} blocks it, outside its steps. Put slow work into a step that is a plain `def`."
            )
        frame = frame.f_back
    return f"Step {step_id!r} blocks it. {_TO_A_THREAD}" if step_id else _TO_A_THREAD

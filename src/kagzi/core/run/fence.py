"""Who may write to a run."""

from ..states import RunCode
from ..times import Timestamp
from .commands import WorkerCommand
from .outcomes import DeadlinePassed, LeaseLost
from .state import RunState


def refusal_of(run: RunState, command: WorkerCommand, now: Timestamp) -> LeaseLost | DeadlinePassed | None:
    """None: the command comes from the current holder of the lease, before the deadline."""
    if run.status != RunCode.RUNNING or run.lease != command.lease:
        return LeaseLost()
    if run.deadline_at is not None and run.deadline_at <= now:
        return DeadlinePassed()
    return None

"""Where the running code is: in a workflow, in the body of a step, or elsewhere."""

from contextvars import ContextVar

import msgspec

from ..core.errors import PreconditionFailed


class StepInfo(msgspec.Struct, frozen=True):
    """The attempt that the running code is part of."""

    run_id: str
    step_id: str
    attempt: int

    @property
    def idempotency_key(self) -> str:
        """Stable over retries, crashes and replays: hand it to Stripe & co."""
        return f"{self.run_id}/{self.step_id}"


place: ContextVar[object] = ContextVar("kagzi_place", default=None)
"""A Scope in workflow code, a StepInfo in the body of a step, None elsewhere. One variable, so that entering a body leaves
the workflow: tasks made in a body are not the workflow's."""


def current_step() -> StepInfo:
    """The step whose body is running. Raises PreconditionFailed elsewhere."""
    info = place.get()
    if isinstance(info, StepInfo):
        return info
    raise PreconditionFailed("current_step() has an answer only in the body of a step, not in a workflow or elsewhere.")

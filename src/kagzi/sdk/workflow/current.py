"""Where the running code is: in a workflow, in the body of a step, or elsewhere."""

import logging
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from ...core.errors import PreconditionFailed
from ...core.public import exported

if TYPE_CHECKING:  # the command line imports this module early, without the rest
    from ...v1 import worker_pb2 as pb
    from ..transport.payload_codec import MessageCodec


class StepHeartbeats(Protocol):
    """Receives the heartbeats of a run's steps."""

    def beat_from_anywhere(self, step_id: str, attempt: int, details: Any) -> None: ...

    def last(self, step_id: str) -> Any: ...


class StepLogs(Protocol):
    """Receives the log lines of steps. `codec`: the worker's payload codec, for other values that a step reports."""

    codec: "MessageCodec | None"

    def collect(self, where: "StepInfo", record: logging.LogRecord) -> None: ...


class StepServices(Protocol):
    """The services that the runs of a worker share and that steps need."""

    @property
    def step_logs(self) -> StepLogs | None: ...


class RunOfStep(Protocol):
    """A run, as the bodies of its steps see it."""

    @property
    def task(self) -> "pb.Task": ...

    @property
    def heartbeats(self) -> StepHeartbeats: ...

    @property
    def services(self) -> StepServices: ...


@exported
class StepInfo(msgspec.Struct, frozen=True, eq=False, repr_omit_defaults=True, weakref=True):
    """The attempt that the running code is part of: `current_step()`."""

    run_id: str  #: the run
    step_id: str  #: the step, unique in its run
    attempt: int  #: 1 for the first
    run: RunOfStep | None = None

    @property
    def idempotency_key(self) -> str:
        """The same for all retries, crashes and replays: pass it to payment providers and other systems."""
        return f"{self.run_id}/{self.step_id}"

    def heartbeat(self, details: Any = None) -> None:
        """Report that a long step is alive, and its progress. May be called in a thread.

        Args:
            details: Anything with a JSON form: shown with the step, and given to the next attempt. The last value
                wins; at most one is written per 500 ms.
        """
        if self.run is not None:
            self.run.heartbeats.beat_from_anywhere(self.step_id, self.attempt, details)

    @property
    def heartbeat_details(self) -> Any:
        """The details of the last heartbeat, from this attempt or an earlier one; None if there was none."""
        return None if self.run is None else self.run.heartbeats.last(self.step_id)


place: ContextVar[object] = ContextVar("kagzi_place", default=None)
"""A Scope in workflow code, a StepInfo in the body of a step, None elsewhere. It is one variable, so that entering a
body leaves the workflow: tasks created in a body do not belong to the workflow."""


@exported
def current_step() -> StepInfo:
    """The step whose body is running. Raises PreconditionFailed anywhere else."""
    info = place.get()
    if isinstance(info, StepInfo):
        return info
    raise PreconditionFailed("current_step() works only in the body of a step, not in a workflow or elsewhere.")

"""The executor as the session sees it: it accepts claimed runs."""

from typing import Protocol

from ...v1 import worker_pb2 as pb
from ..execution.calls.threads import StepThreads
from ..execution.ports import Execution, RunPort
from ..step_logs.collector import StepLogCollector


class Executor(Protocol):
    """Executes the runs of one worker."""

    def accept(self, task: pb.Task, port: RunPort) -> Execution:
        """Start the run, or resume its cached coroutine. Never raises: an invalid task becomes a failure or a release
        of the run. Returns at once."""
        ...

    def release_all(self, reason: str) -> None:
        """The worker stops: tear down every run and hand it back with a release operation."""
        ...

    @property
    def active(self) -> int:
        """The number of runs that are accepted and not closed."""
        ...

    @property
    def threads(self) -> StepThreads | None:
        """The threads that execute sync bodies, for the watchdog."""
        ...

    @property
    def step_logs(self) -> StepLogCollector | None:
        """The collector of step logs, for the session that sends them."""
        ...

    async def drained(self) -> None:
        """Returns when `active` is 0."""
        ...

    def close(self) -> None:
        """Drop everything cached between claims. Called last, when no run is active or will be."""
        ...

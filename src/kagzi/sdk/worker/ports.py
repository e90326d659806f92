"""The executor as the session sees it: it takes claimed runs."""

from typing import Protocol

from ...v1 import worker_pb2 as pb
from ..execution.calls.threads import StepThreads
from ..execution.ports import Execution, RunPort
from ..step_logs.collector import StepLogCollector


class Executor(Protocol):
    """Executes the runs of one worker."""

    def accept(self, task: pb.Task, port: RunPort) -> Execution:
        """Begin (or resume a kept coroutine of) the run. Never raises: what is wrong with the task becomes its failure
        or a release. Returns at once."""
        ...

    def release_all(self, reason: str) -> None:
        """The worker stops: tear down every run and hand it back with a release operation."""
        ...

    @property
    def active(self) -> int:
        """Runs accepted and not closed."""
        ...

    @property
    def threads(self) -> StepThreads | None:
        """Where sync bodies run, for those who look after it."""
        ...

    @property
    def step_logs(self) -> StepLogCollector | None:
        """What its steps log, for whoever sends it."""
        ...

    async def drained(self) -> None:
        """Returns when `active` is 0."""
        ...

    def close(self) -> None:
        """Let go of what is kept between claims. Called last, when nothing is active any more or will ever be."""
        ...

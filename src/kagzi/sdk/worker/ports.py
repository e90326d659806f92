"""The door between the runner (which executes workflows) and the session (which speaks to the server).

The session hands claimed runs to the executor and tells it when one is lost or to be cancelled. The runner writes operations
straight into the session's outgoing message; answers come back through callbacks, in the order of their commits.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, Protocol

from ...v1 import worker_pb2 as pb
from ..execution.calls.threads import StepThreads


class Answer(NamedTuple):
    """The durable answer to one operation. `detail` is None for a plain acknowledgement."""

    seq: int
    at_us: int
    detail: pb.OperationAnswer | None


OnAnswer = Callable[[Answer], None]


class RunPort(Protocol):
    """One held run's way to the server. Operations of a run take effect in the order in which they were made here.

    Operations survive reconnects: they are sent again until answered. If the lease is lost, `Execution.abandon` is called and
    outstanding callbacks are dropped.
    """

    def announce(self) -> pb.Operation:
        """A new operation to be filled in at once by the caller, that need not leave at once: it is held at most 5 ms and never
        past the run's next `send`. Its acknowledgement is not reported; a refusal abandons the run."""
        ...

    def send(self, on_answer: OnAnswer) -> pb.Operation:
        """A new operation to be filled in at once by the caller (before it next yields to the loop). It leaves at the end of
        this loop pass, together with whatever other runs produced. `on_answer` is called once, on the loop."""
        ...

    def lease_is_over(self) -> bool:
        """Whether the lease may have ended, by this worker's own clock: nothing may begin before the server was asked."""
        ...

    def ask_about_lease(self) -> Callable[[], None]:
        """To be called when an operation leaves whose answer tells. What is answered is to be called if it was accepted."""
        ...

    def fetch_history(self, after: int, known_seq: int = 0) -> Awaitable[Sequence[pb.HistoryStep]]:
        """The rest of a history that did not fit into the task; results up to `known_seq` without output, error and details.
        Raises LeaseLost, Unavailable (after retries)."""
        ...

    def close(self) -> None:
        """The runner is done with this run: it was ended, parked or released, and that was answered; or it was abandoned."""
        ...


class Execution(Protocol):
    """A run in the hands of the executor, as the session sees it."""

    def abandon(self, reason: str) -> None:
        """The lease is lost: stop at once, record nothing more, free everything. Ends with `port.close()`."""
        ...

    def cancel(self, reason: str) -> None:
        """A cancellation was requested: raise it in the workflow, then answer with a cancel_run operation."""
        ...

    def pause(self, reason: str) -> None:
        """A pause was requested: begin nothing more, let what runs finish and be recorded, then hand the run back with a release
        operation."""
        ...

    def server_failed(self, reason: str) -> None:
        """The server could not record an operation, through no fault of the run: hand it back with a release operation."""
        ...

    def news(self) -> None:
        """Something has come for one of the run's waits (a signal, a child's end): ask for it with park(stay)."""
        ...


class Executor(Protocol):
    """What the worker gives the session to hand runs to."""

    def accept(self, task: pb.Task, port: RunPort) -> Execution:
        """Begin (or resume a kept coroutine of) the run. Never raises: what is wrong with the task becomes its failure or a
        release. Returns at once."""
        ...

    def release_all(self, reason: str) -> None:
        """The worker stops: unwind every run and hand it back with a release operation."""
        ...

    @property
    def active(self) -> int:
        """Runs accepted and not closed."""
        ...

    @property
    def threads(self) -> StepThreads | None:
        """Where sync bodies run, for those who look after it."""
        ...

    async def drained(self) -> None:
        """Returns when `active` is 0."""
        ...

    def close(self) -> None:
        """Let go of what is kept between claims. Called last, when nothing is active any more or will ever be."""
        ...

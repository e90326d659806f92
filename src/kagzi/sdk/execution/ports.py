"""The interfaces of a run's execution: to the session, which talks to the server, and to its own parts.

The session passes claimed runs on and reports when one is lost or cancelled (`Execution`). Operations are written
directly into the session's outgoing message (`RunPort`); answers arrive through callbacks, in the order of their
commits. The parts of an execution see it only as `RunControl`, `CallControl` or `RunLifecycle`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from ...core.errors import Diverged
from ...v1 import common_pb2 as common
from ...v1 import worker_pb2 as pb
from ..workflow.retry import Retry
from .calls.threads import StepThreads
from .state import RunState, Suspended

if TYPE_CHECKING:
    from ..tracing.stretch import Stretch  # needs OpenTelemetry
    from ..workflow.workflow import Workflow

GONE = frozenset({common.ERROR_CODE_LEASE_LOST, common.ERROR_CODE_NOT_FOUND, common.ERROR_CODE_TIMEOUT})
"""Codes of refusals that end this worker's hold of a run: leased to another worker, deleted, or past its deadline."""


class Answer(msgspec.Struct, frozen=True):
    """The durable answer to one operation. `detail` is None for a plain acknowledgement."""

    seq: int
    at_us: int
    detail: pb.OperationAnswer | None

    @property
    def refusal(self) -> common.ErrorDetail | None:
        """Why the server refused the operation; None if it did not."""
        detail = self.detail
        return detail.refused if detail is not None and detail.WhichOneof("kind") == "refused" else None


class Timers(Protocol):
    """The clock and timers of runs: those of an event loop, or of a test."""

    def time(self) -> float: ...
    def call_at(self, when: float, callback: Callable[..., object], *args: Any) -> asyncio.TimerHandle: ...
    def call_later(self, delay: float, callback: Callable[..., object], *args: Any) -> asyncio.TimerHandle: ...


class Services(msgspec.Struct, frozen=True):
    """What all runs of an executor share."""

    threads: StepThreads
    retry: Retry | None  # the default for steps
    resident_wait_s: float  # a run with a shorter wait is not parked
    build_id: str
    record_inputs: str = "failed"  # of which steps: see calls/arguments.py
    step_logs: Any = None  # a step_logs.collector.StepLogCollector
    encoded: bool = False  # a codec is set: values and error texts of user code are not logged
    begin_stretch: "Callable[[pb.Task], Stretch] | None" = None  # of a trace; None: no spans are recorded
    replace_body: Callable[[str, Any, int], Any] | None = None  # for tests: maps a calls.bodies.StepBody to another
    on_child: "Callable[[Workflow[Any, Any]], None] | None" = None  # for tests: called before a child is started


OnAnswer = Callable[[Answer], None]
Fill = Callable[[pb.Operation], None]
"""Fills in an operation that was created earlier."""


class RunPort(Protocol):
    """The port of one leased run to the server. Operations of a run take effect in the order in which they were made.

    Operations survive reconnects: they are sent again until answered. If the lease is lost, `Execution.abandon` is
    called and outstanding callbacks are dropped.
    """

    @property
    def last_seq(self) -> int:
        """The highest seq recorded for this run, as far as this worker knows."""
        ...

    @property
    def foreign_seq(self) -> int:
        """The highest seq below `last_seq` that this worker did not record: another party recorded something there. 0:
        there is none."""
        ...

    def announce(self) -> pb.Operation:
        """A new operation that the caller fills in at once. It need not be sent at once: it is held for at most 5 ms,
        and never past the run's next `send`. Its acknowledgement is not reported; a refusal abandons the run."""
        ...

    def begin(self, step_id: str, fill: Fill) -> "Coroutine[Any, Any, None] | None":
        """Announce that a step begins. `fill` makes the operation a begin_step when it is sent, or when an operation
        other than a begin or completion of a step follows. Await the returned coroutine before the body."""
        ...

    def complete(self, step_id: str, on_answer: OnAnswer) -> tuple[pb.Operation, bool]:
        """As `send`, for the completion of a step. True: this is the operation of the step's begin, which has not been
        sent, to be filled in as both (record_step). No record known to this worker lies between the two: delivered
        results have lower seqs than anything that has not been sent."""
        ...

    def send(self, on_answer: OnAnswer) -> pb.Operation:
        """A new operation that the caller fills in at once (before it next yields to the loop). It is sent at the end
        of this loop iteration, together with those of other runs. `on_answer` is called once, on the loop."""
        ...

    def lease_is_over(self) -> bool:
        """Whether the lease may have ended, by this worker's own clock: then nothing may begin before the server has
        confirmed it."""
        ...

    def ask_about_lease(self) -> Callable[[], None]:
        """Must be called when an operation is sent whose answer confirms the lease. Call the returned function if the
        operation was accepted."""
        ...

    def fetch_history(self, after: int, known_seq: int = 0) -> Awaitable[Sequence[pb.HistoryStep]]:
        """The rest of a history that did not fit into the task; results up to `known_seq` without output, error and
        details. Raises LeaseLost, Unavailable (after retries)."""
        ...

    def close(self) -> None:
        """Nothing more is sent for this run: its end, park or release was answered, or it was abandoned."""
        ...


class Execution(Protocol):
    """A run in the executor, as the session sees it. None of its methods may be called after `port.close()`."""

    def abandon(self, reason: str) -> None:
        """The lease is lost: stop at once, record nothing more, free everything. Ends with `port.close()`."""
        ...

    def cancel(self, reason: str) -> None:
        """A cancellation was requested: raise it in the workflow, then answer with a cancel_run operation."""
        ...

    def pause(self, reason: str) -> None:
        """A pause was requested: begin nothing more, let executing steps finish and be recorded, then hand the run back
        with a release operation."""
        ...

    def server_failed(self, reason: str) -> None:
        """The server could not record an operation, through no fault of the run: hand it back with a release
        operation."""
        ...

    def results_available(self) -> None:
        """Something has arrived for one of the run's waits (a signal, the end of a child): fetch it."""
        ...


class RunControl(Protocol):
    """A RunExecution, as seen by its parts that hold calls back or bring results to them. It documents the
    methods."""

    @property
    def state(self) -> RunState: ...
    @property
    def live(self) -> bool: ...
    async def wait(self, future: "asyncio.Future[Any]") -> Any: ...
    async def may_act(self, first: str = "") -> None: ...
    def deliver(self, step_id: str, future: "asyncio.Future[Any]", answer: Answer) -> None: ...
    def refresh(self) -> None: ...
    def caught_up(self) -> None: ...
    def diverge(self, error: Diverged) -> Suspended: ...
    def release(self, reason: str) -> None: ...
    def taken_away(self, refusal: common.ErrorDetail) -> bool: ...


class CallControl(Protocol):
    """A RunExecution, as seen by the operations of its calls."""

    @property
    def can_proceed(self) -> bool: ...
    def hold_back(self) -> None: ...
    def refresh(self) -> None: ...
    def taken_away(self, refusal: common.ErrorDetail) -> bool: ...
    def fail_with(self, error: BaseException) -> Suspended: ...


class RunLifecycle(Protocol):
    """A RunExecution, as seen by its parts that end it or let it leave."""

    @property
    def state(self) -> RunState: ...
    @property
    def stretch(self) -> "Stretch | None": ...
    def advance(self, state: RunState) -> None: ...
    def left(self, wakes_in_s: float | None) -> None: ...
    def close(self) -> None: ...
    def release(self, reason: str) -> None: ...
    def taken_away(self, refusal: common.ErrorDetail) -> bool: ...

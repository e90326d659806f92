"""The interfaces of a run's execution: to the session that speaks to the server, and to its own parts.

The session hands over claimed runs and says when one is lost or to be cancelled (`Execution`). Operations are written
straight into the session's outgoing message (`RunPort`); answers come back through callbacks, in the order of their
commits. The parts of an execution know it as `RunControl`, `CallControl` or `RunLifecycle` only.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

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
"""Codes of refusals that end this worker's hold on a run: leased to another one, deleted, or past its deadline."""


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
    """The time that passes for runs, and what is due in it: an event loop's own, or that of a test."""

    def time(self) -> float: ...
    def call_at(self, when: float, callback: Callable[..., object], *args: Any) -> asyncio.TimerHandle: ...
    def call_later(self, delay: float, callback: Callable[..., object], *args: Any) -> asyncio.TimerHandle: ...


class Services(NamedTuple):
    """What all runs of an executor share."""

    threads: StepThreads
    retry: Retry | None  # the default for steps
    resident_wait_s: float  # shorter waits are waited for in place
    build_id: str
    record_inputs: str = "failed"  # of steps: see calls/arguments.py
    step_logs: Any = None  # a step_logs.collector.StepLogCollector
    encoded: bool = False  # a codec is set: nothing that user code has said is logged
    begin_stretch: "Callable[[pb.Task], Stretch] | None" = None  # of a trace; None: this program makes no spans
    replace_body: Callable[[str, Any, int], Any] | None = None  # for tests: given a calls.bodies.StepBody, returns one
    on_child: "Callable[[Workflow[Any, Any]], None] | None" = None  # for tests: told before a child is started


OnAnswer = Callable[[Answer], None]
Fill = Callable[[pb.Operation], None]
"""Fills in an operation that was made before."""


class RunPort(Protocol):
    """One leased run's way to the server. Operations of a run take effect in the order in which they were made here.

    Operations survive reconnects: they are sent again until answered. If the lease is lost, `Execution.abandon` is
    called and outstanding callbacks are dropped.
    """

    @property
    def last_seq(self) -> int:
        """The highest number under which this run recorded something, as far as this worker has heard."""
        ...

    @property
    def foreign_seq(self) -> int:
        """The highest number below `last_seq` that is not one of this worker's own records: somebody else recorded
        something there. 0: there is none."""
        ...

    def announce(self) -> pb.Operation:
        """A new operation to be filled in at once by the caller, that need not leave at once: it is held at most 5 ms
        and never past the run's next `send`. Its acknowledgement is not reported; a refusal abandons the run."""
        ...

    def begin(self, step_id: str, fill: Fill) -> "Coroutine[Any, Any, None] | None":
        """Announce that a step begins. `fill` makes the operation a begin_step when it leaves, or when something else
        than begins and completions of steps follows it. What is returned is to be awaited before the body runs."""
        ...

    def complete(self, step_id: str, on_answer: OnAnswer) -> tuple[pb.Operation, bool]:
        """As `send`, for the completion of a step. True: it is the operation of the step's begin, which has not left,
        and is to be filled in as both (record_step). Nothing that this worker has heard of lies between the two: what
        was delivered has lower numbers than anything that has not left."""
        ...

    def send(self, on_answer: OnAnswer) -> pb.Operation:
        """A new operation to be filled in at once by the caller (before it next yields to the loop). It leaves at the
        end of this loop pass, together with whatever other runs produced. `on_answer` is called once, on the loop."""
        ...

    def lease_is_over(self) -> bool:
        """Whether the lease may have ended, by this worker's own clock: nothing may begin before the server was
        asked."""
        ...

    def ask_about_lease(self) -> Callable[[], None]:
        """To be called when an operation leaves whose answer tells. What is returned is to be called if it was
        accepted."""
        ...

    def fetch_history(self, after: int, known_seq: int = 0) -> Awaitable[Sequence[pb.HistoryStep]]:
        """The rest of a history that did not fit into the task; results up to `known_seq` without output, error and
        details. Raises LeaseLost, Unavailable (after retries)."""
        ...

    def close(self) -> None:
        """Nothing more comes from this run: it was ended, parked or released, and that was answered; or it was
        abandoned."""
        ...


class Execution(Protocol):
    """A run in the hands of the executor, as the session sees it until the run calls `port.close()`: after that
    nothing of it may be called."""

    def abandon(self, reason: str) -> None:
        """The lease is lost: stop at once, record nothing more, free everything. Ends with `port.close()`."""
        ...

    def cancel(self, reason: str) -> None:
        """A cancellation was requested: raise it in the workflow, then answer with a cancel_run operation."""
        ...

    def pause(self, reason: str) -> None:
        """A pause was requested: begin nothing more, let what runs finish and be recorded, then hand the run back with
        a release operation."""
        ...

    def server_failed(self, reason: str) -> None:
        """The server could not record an operation, through no fault of the run: hand it back with a release
        operation."""
        ...

    def results_available(self) -> None:
        """Something has come for one of the run's waits (a signal, a child's end): fetch it."""
        ...


class RunControl(Protocol):
    """A RunExecution as those of its parts see it that hold calls back, or bring results to them. What the methods do
    is said there."""

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
    """A RunExecution as the operations of its calls see it."""

    @property
    def can_proceed(self) -> bool: ...
    def hold_back(self) -> None: ...
    def refresh(self) -> None: ...
    def taken_away(self, refusal: common.ErrorDetail) -> bool: ...
    def fail_with(self, error: BaseException) -> Suspended: ...


class RunLifecycle(Protocol):
    """A RunExecution as those of its parts see it that end it or let it leave."""

    @property
    def state(self) -> RunState: ...
    @property
    def stretch(self) -> "Stretch | None": ...
    def advance(self, state: RunState) -> None: ...
    def left(self, wakes_in_s: float | None) -> None: ...
    def close(self) -> None: ...
    def release(self, reason: str) -> None: ...
    def taken_away(self, refusal: common.ErrorDetail) -> bool: ...

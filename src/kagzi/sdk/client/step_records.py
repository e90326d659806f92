"""Records of steps: what `run.steps()` returns."""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from ...core.error_details import ErrorDetail
from ...core.errors import StepError, Unimplemented
from ...core.public import exported
from ...core.records import RunKey
from ...core.retry.reasons import why_not_retried
from ...core.states import StepKind, StepStatus
from ...core.traces.ids import TRACEPARENT
from ...v1 import worker_pb2 as pb
from ...v1.admin_pb2 import ListStepsRequest
from ...wire.common import read_error, read_retry
from ...wire.enums import STEP_KIND_FROM_WIRE, STEP_STATUS_FROM_WIRE
from ...wire.fields import form, reader
from .run_records import payload_encoding

if TYPE_CHECKING:
    from .backend import Backend


@dataclass(frozen=True, slots=True)
class StepAttempt:
    """An attempt of a step that failed, or whose worker was lost."""

    attempt: int  #: its number; a lost attempt does not count, so the next one has the same
    started_at: datetime | None  #: when it began
    finished_at: datetime  #: when it failed, or when its loss was noticed
    error: ErrorDetail  #: why it failed; of kind LOST if its worker was lost
    worker_id: str | None = None  #: the worker that executed it
    claim: int = 0  #: the claim of the run in which it began, counted from 1; 0 if not known
    begun_seq: int = 0  #: the seq of its begin in the history of the run
    input: bytes = b""  #: the arguments that it was called with, by name, as JSON, if they are recorded
    before_retry: bool = False  #: whether `run.retry` has since reset the count of attempts


@exported
@dataclass(frozen=True, slots=True)
class StepRecord:
    """A step of a run: its result, or its progress."""

    id: str  #: the step id, unique in its run
    name: str  #: its name in the code
    kind: StepKind  #: its kind
    status: StepStatus  #: its status
    attempts: int = 0  #: attempts so far
    output: bytes = b""  #: the recorded result as JSON; empty while there is none
    error: StepError | None = None  #: why it failed for good
    last_error: str | None = None  #: the error of its last failed attempt, as text
    wake_at: datetime | None = None  #: when a sleep or a wait with a timeout ends
    retry_at: datetime | None = None  #: when the next attempt is due
    child: str | None = None  #: run id of the child it started
    started_at: datetime | None = None  #: when its last attempt began
    finished_at: datetime | None = None  #: when it got its result
    parallel_group: str = ""  #: the `parallel` or `map` that it is part of
    details: bytes = b""  #: the details of its last heartbeat, as JSON
    created_at: datetime | None = None  #: when it first began
    seq: int = 0  #: the seq of its result in the history of the run; 0 while there is none
    earlier: tuple[StepAttempt, ...] = ()  #: attempts that failed or were lost, the oldest first
    error_detail: ErrorDetail | None = None  #: the recorded error in full
    not_retried: str = ""  #: why it was not retried; empty if it did not fail, or had no attempts left
    encoding: str = ""  #: how input, output and details are encoded, if not as plain JSON
    input: bytes = b""  #: its arguments by name, as JSON, if recorded; of a wait for a signal: its JSON Schema
    worker_id: str | None = None  #: the worker that last began it
    claim: int = 0  #: the claim of the run in which it last began, counted from 1; 0 if not known
    begun_seq: int = 0  #: the seq of its last begin in the history of the run
    sent_by: str = ""  #: the span that sent a signal, as a `traceparent`; empty if not known
    retry_seq: int = 0  #: the seq of the retry of the run that discarded it; 0 if it is part of the history
    retried_at: datetime | None = None  #: when that retry was made


def _failure(message: pb.Step) -> ErrorDetail | None:
    """Why the step failed for good."""
    return read_error(message.error) if message.status == pb.STEP_STATUS_FAILED and message.HasField("error") else None


def _error(message: pb.Step) -> StepError | None:
    failure = _failure(message)
    return None if failure is None else StepError.of(message.step_id, failure, attempts=message.attempt_number)


def _last_error(message: pb.Step) -> str | None:
    if message.HasField("error"):
        return read_error(message.error).text
    return read_error(message.attempts[-1].error).text if message.attempts else None


def _not_retried(message: pb.Step) -> str:
    failure = _failure(message)
    if failure is None or message.kind != pb.STEP_KIND_FUNCTION:
        return ""
    return why_not_retried(read_retry(message.retry_policy), failure)


form(
    pb.StepAttempt,
    StepAttempt,
    reader(pb.StepAttempt, StepAttempt, names={"attempt": "attempt_number"}, input=lambda message: message.input.data),
)

read_step_record = reader(
    pb.Step,
    StepRecord,
    names={
        "id": "step_id",
        "attempts": "attempt_number",
        "attempt": "attempt_number",
        "child": "child_run_id",
        "parallel_group": "parallel_group_id",
        "earlier": "attempts",
        "error_detail": "error",
        "details": "heartbeat_details",
    },
    unread=("run_id", "namespace_id", "retry_policy", "timeout_ms", "parent_step_id"),
    kind=lambda message: STEP_KIND_FROM_WIRE.get(message.kind, StepKind.FUNCTION),
    status=lambda message: STEP_STATUS_FROM_WIRE.get(message.status, StepStatus.RUNNING),
    output=lambda message: message.output.data,
    input=lambda message: message.input.data,
    details=lambda message: message.heartbeat_details.data,
    encoding=lambda message: payload_encoding(message.output) or payload_encoding(message.heartbeat_details),
    sent_by=lambda message: message.output.metadata.get(TRACEPARENT, "") if message.output.metadata else "",
    error=_error,
    last_error=_last_error,
    not_retried=_not_retried,
)


async def list_steps(backend: "Backend", run: RunKey, *, forgotten: bool = False) -> list[StepRecord]:
    """All steps of a run, in the order in which they began; or those that retries of the run have discarded."""
    request = ListStepsRequest(
        namespace_id=run.namespace, run_id=run.run_id, include_payloads=True, forgotten=forgotten
    )
    steps = backend.rows(lambda link: link.admin.ListSteps, request, lambda page: page.steps)
    records = [read_step_record(step) async for step in steps]
    if forgotten and any(not step.retry_seq for step in records):
        # It ignores the field, and has returned the steps of the history.
        raise Unimplemented("the server does not keep steps that retries have discarded. Update the server.")
    return records

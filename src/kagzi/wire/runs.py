"""Starts, runs, filters and outcomes."""

from typing import Literal, Protocol

import msgspec

from ..core.errors import InvalidArgument
from ..core.records import NO_LABELS, RunEnd, RunFilter, RunKey, RunRecord
from ..core.run.commands import SignalGiven, SignalReplacement, StartRequest, StartRun, start_run
from ..core.run.outcomes import Existing, Started
from ..core.schedules.scheduled_time import split_scheduled_time, with_scheduled_time
from ..core.states import RunStatus
from ..core.time_checks import check_duration, check_time
from ..core.times import Timestamp
from ..v1 import common_pb2
from ..v1 import workflow_pb2 as pb
from .common import (
    NULL,
    read_duration_us,
    read_error,
    read_namespace,
    read_payload,
    read_retry,
    read_time,
    read_time_if,
    read_type,
    write_duration,
    write_error_if,
    write_payload_if,
    write_retry_if,
    write_time,
    write_time_if,
)
from .enums import (
    ON_CONFLICT_FROM_WIRE,
    ON_CONFLICT_TO_WIRE,
    RUN_STATUS_FROM_WIRE,
    RUN_STATUS_TO_WIRE,
    WAIT_REASON_FROM_WIRE,
    WAIT_REASON_TO_WIRE,
)


def read_start(message: pb.StartWorkflowRequest, *, batch_namespace: str = "") -> StartRequest:
    """Raises InvalidArgument for what no server does, or does not do yet: nothing is accepted and ignored."""
    namespace = message.namespace_id or batch_namespace
    if batch_namespace and namespace != batch_namespace:
        raise InvalidArgument(
            f"namespace_id={namespace!r} of a start differs from that of its batch, {batch_namespace!r}. Leave it empty.",
            field="namespace_id",
        )
    on_conflict = ON_CONFLICT_FROM_WIRE.get(message.on_conflict or ON_CONFLICT_TO_WIRE["existing"])
    if on_conflict is None:
        raise InvalidArgument(f"on_conflict={message.on_conflict} is none of the known ones.", field="on_conflict")
    return StartRequest(
        namespace=read_namespace(namespace),
        workflow_type=read_type(message.workflow_type),
        workflow_id=message.workflow_id,
        request_id=message.request_id,
        task_queue=read_type(message.task_queue),
        input=read_payload(message.input) if message.HasField("input") else None,
        context=read_payload(message.context) if message.HasField("context") else None,
        version=message.version,
        labels=dict(message.labels) if message.labels else NO_LABELS,
        priority=message.priority,
        start_at=read_time_if(message, "start_at"),
        delay_us=read_duration_us(message.delay) if message.HasField("delay") else None,
        deadline_at=read_time_if(message, "deadline_at"),
        timeout_us=read_duration_us(message.timeout) if message.HasField("timeout") else None,
        retry=read_retry(message.retry_policy) if message.HasField("retry_policy") else None,
        on_conflict=on_conflict,
        concurrency_key=message.concurrency_key,
    )


def read_child_start(message: pb.StartWorkflowRequest, namespace: str, now: Timestamp) -> StartRun:
    """The start of a child of a run in `namespace`, with its times counted from `now`. Ids that were not given are left empty:
    the engine draws them. Raises InvalidArgument."""
    if message.on_conflict not in (pb.ON_CONFLICT_UNSPECIFIED, pb.ON_CONFLICT_EXISTING, pb.ON_CONFLICT_FAIL):
        raise InvalidArgument(
            "on_conflict of a child's start is not supported: set attach to wait for a run that is active already.",
            field="on_conflict",
        )
    request = read_start(message, batch_namespace=namespace)
    if request.start_at is not None and request.delay_us is not None:
        raise InvalidArgument("start_at and delay are both given. Give one.", field="delay")
    # Before they are counted from now: of the sum nobody could say which of them was out of range.
    check_time(request.start_at, "start_at")
    check_duration(request.delay_us, "delay")
    check_duration(request.timeout_us, "timeout", least_us=1)
    start = start_run(request, RunKey(namespace, ""), now)
    return msgspec.structs.replace(start, request_id="", on_conflict="fail")


def write_start(request: StartRequest) -> pb.StartWorkflowRequest:
    return pb.StartWorkflowRequest(
        workflow_id=request.workflow_id,
        namespace_id=request.namespace,
        task_queue=request.task_queue,
        workflow_type=request.workflow_type,
        input=write_payload_if(request.input),
        context=write_payload_if(request.context),
        deadline_at=write_time_if(request.deadline_at),
        version=request.version,
        retry_policy=write_retry_if(request.retry),
        request_id=request.request_id,
        on_conflict=ON_CONFLICT_TO_WIRE[request.on_conflict],
        labels=request.labels,
        priority=request.priority,
        start_at=write_time_if(request.start_at),
        delay=None if request.delay_us is None else write_duration(request.delay_us),
        timeout=None if request.timeout_us is None else write_duration(request.timeout_us),
        concurrency_key=request.concurrency_key,
    )


def write_started(outcome: Started | Existing, *, url: str) -> pb.StartWorkflowResponse:
    return pb.StartWorkflowResponse(
        run_id=outcome.run_id,
        already_exists=isinstance(outcome, Existing),
        workflow_id=outcome.workflow_id,
        status=RUN_STATUS_TO_WIRE[outcome.status],
        url=url,
    )


class SignalMessage(Protocol):
    @property
    def signal_name(self) -> str: ...
    @property
    def payload(self) -> common_pb2.Payload: ...
    @property
    def request_id(self) -> str: ...
    def HasField(self, _: Literal["payload"], /) -> bool: ...  # noqa: N802  protobuf's name


def read_signal(message: SignalMessage) -> SignalGiven:
    """No payload is null."""
    payload = read_payload(message.payload) if message.HasField("payload") else NULL
    return SignalGiven(name=message.signal_name, payload=payload, request_id=message.request_id)


def read_replacement(message: pb.ReplaceSignalRequest) -> SignalReplacement:
    """Raises InvalidArgument if it is neither a replacement nor a drop."""
    payload = read_payload(message.payload) if message.HasField("payload") else None
    if payload is None and not message.drop:
        raise InvalidArgument("neither payload nor drop is set. Set one of them.", field="change")
    return SignalReplacement(name=message.signal_name, payload=payload, request_id=message.request_id)


# --- runs as people see them -------------------------------------------------------------------------------------------


def write_run(record: RunRecord, *, url: str) -> pb.Workflow:
    context, scheduled_at = split_scheduled_time(record.context)
    return pb.Workflow(
        run_id=record.run.run_id,
        workflow_id=record.workflow_id,
        namespace_id=record.run.namespace,
        task_queue=record.workflow_type,
        workflow_type=record.workflow_type,
        status=RUN_STATUS_TO_WIRE[record.status],
        input=write_payload_if(record.input),
        output=write_payload_if(record.output),
        context=write_payload_if(context),
        error=write_error_if(record.error),
        attempts=record.attempt,
        created_at=write_time(record.created_at),
        started_at=write_time_if(record.started_at),
        finished_at=write_time_if(record.finished_at),
        wake_up_at=write_time_if(record.wake_at),
        deadline_at=write_time_if(record.deadline_at),
        worker_id=record.worker_id or "",
        version=record.version or "",
        parent_step_id=record.parent_step_id or "",
        parent_run_id=record.parent_run_id or "",
        wait_reason=None if record.wait_reason is None else WAIT_REASON_TO_WIRE[record.wait_reason],
        labels=record.labels,
        priority=record.priority,
        cancel_requested=record.cancel_requested,
        cancel_reason=record.cancel_reason,
        problem=write_error_if(record.problem),
        status_text=record.status_text,
        progress=record.progress,
        forked_from=record.forked_from or "",
        continued_as=record.continued_as or "",
        last_seq=record.last_seq,
        url=url,
        retry_policy=write_retry_if(record.retry),
        pause_requested=record.pause_requested,
        pause_reason=record.pause_reason,
        schedule_id=record.schedule_id or "",
        concurrency_key=record.concurrency_key,
        blocked_by=record.blocked_by or "",
        waits=record.waits,
        scheduled_at=write_time_if(scheduled_at),
    )


def read_run(message: pb.Workflow) -> RunRecord:
    context = read_payload(message.context) if message.HasField("context") else None
    return RunRecord(
        run=RunKey(read_namespace(message.namespace_id), message.run_id),
        workflow_id=message.workflow_id,
        workflow_type=message.workflow_type,
        version=message.version or None,
        status=read_run_status(message.status),
        wait_reason=WAIT_REASON_FROM_WIRE.get(message.wait_reason),
        attempt=message.attempts,
        priority=message.priority,
        labels=dict(message.labels),
        created_at=read_time(message.created_at),
        started_at=read_time_if(message, "started_at"),
        finished_at=read_time_if(message, "finished_at"),
        wake_at=read_time_if(message, "wake_up_at"),
        deadline_at=read_time_if(message, "deadline_at"),
        worker_id=message.worker_id or None,
        last_seq=message.last_seq,
        retry=read_retry(message.retry_policy) if message.HasField("retry_policy") else None,
        cancel_requested=message.cancel_requested,
        cancel_reason=message.cancel_reason,
        error=read_error(message.error) if message.HasField("error") else None,
        problem=read_error(message.problem) if message.HasField("problem") else None,
        parent_run_id=message.parent_run_id or None,
        parent_step_id=message.parent_step_id or None,
        status_text=message.status_text,
        progress=message.progress if message.HasField("progress") else None,
        forked_from=message.forked_from or None,
        continued_as=message.continued_as or None,
        pause_requested=message.pause_requested,
        pause_reason=message.pause_reason,
        schedule_id=message.schedule_id or None,
        concurrency_key=message.concurrency_key,
        blocked_by=message.blocked_by or None,
        waits=tuple(message.waits),
        input=read_payload(message.input) if message.HasField("input") else None,
        context=with_scheduled_time(context, read_time_if(message, "scheduled_at")),
        output=read_payload(message.output) if message.HasField("output") else None,
    )


def read_run_status(number: int, *, field: str = "status") -> RunStatus:
    """Raises InvalidArgument for a number that is no status."""
    status = RUN_STATUS_FROM_WIRE.get(number)
    if status is None:
        raise InvalidArgument(f"{field}={number} is no WorkflowStatus.", field=field)
    return status


def write_outcome(end: RunEnd) -> pb.RunOutcome:
    return pb.RunOutcome(
        run_id=end.run.run_id,
        status=RUN_STATUS_TO_WIRE[end.status],
        output=write_payload_if(end.output),
        error=write_error_if(end.error),
        continued_as=end.continued_as or "",
    )


def read_outcome(message: pb.RunOutcome, *, namespace: str) -> RunEnd:
    return RunEnd(
        run=RunKey(namespace, message.run_id),
        status=read_run_status(message.status),
        output=read_payload(message.output) if message.HasField("output") else None,
        error=read_error(message.error) if message.HasField("error") else None,
        continued_as=message.continued_as or None,
    )


# --- filters -----------------------------------------------------------------------------------------------------------


def read_filter(message: pb.ListWorkflowsRequest) -> RunFilter:
    """Both places for statuses (the first contract's and the filter's) mean the same; one of them may be used."""
    where = read_where(message.filter)
    if not message.status_filter:
        return where
    if where.statuses:
        raise InvalidArgument("status_filter and filter.statuses are both set. Set one.", field="status_filter")
    return msgspec.structs.replace(where, statuses=(read_run_status(message.status_filter),))


def read_where(where: pb.WorkflowFilter) -> RunFilter:
    return RunFilter(
        statuses=tuple(read_run_status(status) for status in where.statuses),
        workflow_types=tuple(map(read_type, where.workflow_types)),
        labels=dict(where.labels) if where.labels else NO_LABELS,
        created_after=read_time_if(where, "created_after"),
        created_before=read_time_if(where, "created_before"),
        workflow_id=where.workflow_id,
        version=where.version,
        parent_run_id=where.parent_run_id,
        schedule_id=where.schedule_id,
        concurrency_key=where.concurrency_key,
        has_problem=where.has_problem if where.HasField("has_problem") else None,
    )


def write_filter(where: RunFilter) -> pb.WorkflowFilter:
    message = pb.WorkflowFilter(
        statuses=[RUN_STATUS_TO_WIRE[status] for status in where.statuses],
        workflow_types=where.workflow_types,
        labels=where.labels,
        created_after=write_time_if(where.created_after),
        created_before=write_time_if(where.created_before),
        workflow_id=where.workflow_id,
        version=where.version,
        parent_run_id=where.parent_run_id,
        schedule_id=where.schedule_id,
        concurrency_key=where.concurrency_key,
    )
    if where.has_problem is not None:
        message.has_problem = where.has_problem
    return message

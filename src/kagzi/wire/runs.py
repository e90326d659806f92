"""Starts, runs, filters and outcomes."""

from typing import Literal, Protocol

import msgspec

from ..core.conversion import compiled
from ..core.duration import check_duration, check_time
from ..core.errors import InvalidArgument
from ..core.records import DEFAULT_NAMESPACE, Explanation, RunEnd, RunFilter, RunKey, RunOrder, RunRecord
from ..core.run.commands import OnConflict, SendSignal, SignalReplacement, StartRequest, StartRun, start_run
from ..core.run.outcomes import Existing, Started
from ..core.schedules.scheduled_time import split_scheduled_time
from ..core.times import Timestamp
from ..v1 import common_pb2
from ..v1 import workflow_pb2 as pb
from .common import NULL, own_queue, read_payload, read_type, write_payload_if, write_time_if
from .enums import RUN_STATUS_TO_WIRE, word_of, words_of
from .fields import reader, writer
from .requests import read_run_status

_read_start = reader(
    pb.StartWorkflowRequest,
    StartRequest,
    workflow_type=lambda message: read_type(message.workflow_type),
    task_queue=lambda message: own_queue(message.task_queue, message.workflow_type),
)

_USUAL = ("workflow_id", "namespace_id", "workflow_type", "input", "context", "request_id", "on_conflict")
_is_unusual = compiled(
    "message",
    " or ".join(
        f"message.HasField('{field.name}')" if field.has_presence else f"message.{field.name}"
        for field in pb.StartWorkflowRequest.DESCRIPTOR.fields
        if field.name not in _USUAL
    ),
)
_ON_CONFLICT = words_of(pb.OnConflict.DESCRIPTOR, OnConflict)


def _read_any_start(message: pb.StartWorkflowRequest) -> StartRequest:
    """Most starts have an input, a context if they are traced, and no options. Reading these few fields by hand takes
    half the time."""
    on_conflict = _ON_CONFLICT.get(message.on_conflict)
    if on_conflict is None or _is_unusual(message):
        return _read_start(message)
    return StartRequest(
        namespace=message.namespace_id or DEFAULT_NAMESPACE,
        workflow_type=read_type(message.workflow_type),
        workflow_id=message.workflow_id,
        request_id=message.request_id,
        input=read_payload(message.input) if message.HasField("input") else None,
        context=read_payload(message.context) if message.HasField("context") else None,
        on_conflict=on_conflict,
    )


def read_start(message: pb.StartWorkflowRequest, *, batch_namespace: str = "") -> StartRequest:
    """`batch_namespace`: the namespace of the enclosing message, which this one may repeat. Raises InvalidArgument."""
    if batch_namespace:
        if message.namespace_id not in ("", batch_namespace):
            raise InvalidArgument(
                f"namespace_id={message.namespace_id!r} of a start differs from that of the request, "
                f"{batch_namespace!r}. Set it in the request only.",
                field="namespace_id",
            )
        message.namespace_id = batch_namespace
    return _read_any_start(message)


def read_child_start(message: pb.StartWorkflowRequest, namespace: str, now: Timestamp) -> StartRun:
    """The start of a child of a run in `namespace`, with times relative to `now`. Omitted ids stay empty: the engine
    draws them. Raises InvalidArgument."""
    if message.on_conflict not in (pb.ON_CONFLICT_UNSPECIFIED, pb.ON_CONFLICT_EXISTING, pb.ON_CONFLICT_FAIL):
        raise InvalidArgument(
            "on_conflict of a child's start is not supported: set attach to wait for a run that is already open.",
            field="on_conflict",
        )
    request = read_start(message, batch_namespace=namespace)
    if request.start_at is not None and request.delay_us is not None:
        raise InvalidArgument("start_at and delay are both given. Give one.", field="delay")
    # Checked before they are added up: an error about the sum could not name the field that is out of range.
    check_time(request.start_at, "start_at")
    check_duration(request.delay_us, "delay")
    check_duration(request.timeout_us, "timeout", least_us=1)
    start = start_run(request, RunKey(namespace, ""), now)
    return msgspec.structs.replace(start, request_id="", on_conflict="fail")


def write_started(outcome: Started | Existing, answer: pb.StartWorkflowResponse, *, url: str) -> None:
    """Write into `answer`, which may be part of another message: copying a separate one takes four times as long."""
    answer.run_id = outcome.run_id
    answer.workflow_id = outcome.workflow_id
    answer.status = RUN_STATUS_TO_WIRE[outcome.status]
    answer.url = url
    if isinstance(outcome, Existing):
        answer.already_exists = True


class SignalMessage(Protocol):
    @property
    def signal_name(self) -> str: ...
    @property
    def payload(self) -> common_pb2.Payload: ...
    @property
    def request_id(self) -> str: ...
    def HasField(self, _: Literal["payload"], /) -> bool: ...  # noqa: N802  protobuf's name


def read_signal(message: SignalMessage) -> SendSignal:
    """A missing payload is null."""
    payload = read_payload(message.payload) if message.HasField("payload") else NULL
    return SendSignal(name=message.signal_name, payload=payload, request_id=message.request_id)


def read_replacement(message: pb.ReplaceSignalRequest) -> SignalReplacement:
    """Raises InvalidArgument if the request neither replaces nor drops the signal."""
    payload = read_payload(message.payload) if message.HasField("payload") else None
    if payload is None and not message.drop:
        raise InvalidArgument("neither payload nor drop is set. Set one of them.", field="change")
    return SignalReplacement(name=message.signal_name, payload=payload, request_id=message.request_id)


# --- views of runs ----------------------------------------------------------------------------------------------------


_write_run = writer(
    pb.Workflow,
    RunRecord,
    names={"attempt": "attempts", "wake_at": "wake_up_at"},
    unsent=("lost_leases",),
    unset=("url",),
    task_queue=lambda record: record.task_queue or record.workflow_type,
    context=lambda record: write_payload_if(split_scheduled_time(record.context)[0]),
    scheduled_at=lambda record: write_time_if(split_scheduled_time(record.context)[1]),
)
write_explanation = writer(pb.ExplainWorkflowResponse, Explanation)
write_outcome = writer(pb.RunOutcome, RunEnd, unsent=("run", "workflow_type"), run_id=lambda end: end.run.run_id)


def write_run(record: RunRecord, *, url: str) -> pb.Workflow:
    message = _write_run(record)
    message.url = url
    return message


# --- filters ----------------------------------------------------------------------------------------------------------


read_where = reader(
    pb.WorkflowFilter, RunFilter, workflow_types=lambda message: tuple(map(read_type, message.workflow_types))
)


_RUN_ORDER: dict[int, RunOrder] = words_of(pb.RunOrder.DESCRIPTOR, RunOrder)


def read_order(message: pb.ListWorkflowsRequest) -> RunOrder | None:
    """None if no order is given. Raises InvalidArgument."""
    return word_of(_RUN_ORDER, message.order, pb.RunOrder.DESCRIPTOR, "order") if message.order else None


def read_filter(message: pb.ListWorkflowsRequest) -> RunFilter:
    """Both places for statuses (the first contract's and the filter's) mean the same; only one of them may be used."""
    where = read_where(message.filter)
    if not message.status_filter:
        return where
    if where.statuses:
        raise InvalidArgument("status_filter and filter.statuses are both set. Set one.", field="status_filter")
    return msgspec.structs.replace(where, statuses=(read_run_status(message.status_filter),))

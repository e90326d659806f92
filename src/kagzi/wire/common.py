"""Converts the common parts of messages: payloads, errors, retry policies, leases, times.

Reading does not check limits and ranges: the engine does, so that they are the same for all callers.
"""

from functools import lru_cache

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp as TimestampMessage

from ..core.error_details import ErrorCode, ErrorDetail, ErrorKind
from ..core.records import DEFAULT_NAMESPACE, Lease, Payload, RunKey, RunLease
from ..core.retry.policy import SERVER_DEFAULT, RetryPolicy
from ..core.times import US_PER_MS, US_PER_S, Timestamp
from ..core.workflow_types.names import canonical_type
from ..v1 import common_pb2 as pb
from ..v1 import worker_pb2
from .enums import ERROR_CODE_FROM_WIRE, ERROR_CODE_TO_WIRE, ERROR_KIND_FROM_WIRE, ERROR_KIND_TO_WIRE

NULL = Payload(b"null")

_NONCE_MAX = (1 << 63) - 1
_NO_NONCE = 0  # no claim draws it, so it matches no run
_NS_PER_US = 1_000


def read_type(name: str) -> str:
    """The name of a workflow in the one spelling in which it is registered, stored and matched."""
    return canonical_type(name)


QUEUE_IGNORED = "task_queue has no effect: workers serve workflow types, whatever the queue."


def own_queue(task_queue: str, workflow_type: str) -> str:
    """A task queue that is not the workflow type by another name; otherwise empty. It has no effect."""
    return "" if read_type(task_queue) == read_type(workflow_type) else task_queue


def read_namespace(namespace_id: str) -> str:
    return namespace_id or DEFAULT_NAMESPACE


# --- payloads ---------------------------------------------------------------------------------------------------------


def read_payload(message: pb.Payload) -> Payload:
    metadata = message.metadata
    return Payload(message.data, dict(metadata)) if metadata else Payload(message.data)


def write_payload(payload: Payload) -> pb.Payload:
    return pb.Payload(data=payload.data, metadata=payload.metadata)


def write_payload_if(payload: Payload | None) -> pb.Payload | None:
    return None if payload is None else pb.Payload(data=payload.data, metadata=payload.metadata)


# --- errors -----------------------------------------------------------------------------------------------------------


def read_error(message: pb.ErrorDetail) -> ErrorDetail:
    return ErrorDetail(
        code=ERROR_CODE_FROM_WIRE.get(message.code, ErrorCode.USER),
        kind=ERROR_KIND_FROM_WIRE.get(message.kind, ErrorKind.TRANSIENT),
        message=message.message,
        type=message.type,
        bases=tuple(message.bases),
        traceback=message.traceback,
        non_retryable=message.non_retryable,
        retry_after_ms=message.retry_after_ms,
        subject=message.subject,
        subject_id=message.subject_id,
        metadata=dict(message.metadata),
        cause=read_error(message.cause) if message.HasField("cause") else None,
        exhausted=message.exhausted,
    )


def write_error(error: ErrorDetail) -> pb.ErrorDetail:
    return pb.ErrorDetail(
        code=ERROR_CODE_TO_WIRE[error.code],
        kind=ERROR_KIND_TO_WIRE[error.kind],
        message=error.message,
        type=error.type,
        bases=error.bases,
        traceback=error.traceback,
        non_retryable=error.non_retryable,
        retry_after_ms=error.retry_after_ms,
        subject=error.subject,
        subject_id=error.subject_id,
        metadata=error.metadata,
        cause=None if error.cause is None else write_error(error.cause),
        exhausted=error.exhausted,
    )


def write_error_if(error: ErrorDetail | None) -> pb.ErrorDetail | None:
    return None if error is None else write_error(error)


# --- retry policies ---------------------------------------------------------------------------------------------------


def read_retry(message: pb.RetryPolicy) -> RetryPolicy:
    """A policy with omitted fields taken from the server's default.

    An initial interval of 0 means "at once" only in a policy that also sets coefficient and maximum; otherwise it
    counts as omitted.
    """
    return _read_retry(message.SerializeToString(deterministic=True))


@lru_cache(maxsize=1_024)  # a program has few policies, and sends one with every first attempt
def _read_retry(data: bytes) -> RetryPolicy:
    message = pb.RetryPolicy.FromString(data)
    whole = message.backoff_coefficient != 0 and message.maximum_interval_ms != 0
    return RetryPolicy(
        maximum_attempts=message.maximum_attempts or SERVER_DEFAULT.maximum_attempts,
        initial_interval_ms=message.initial_interval_ms
        if whole
        else message.initial_interval_ms or SERVER_DEFAULT.initial_interval_ms,
        backoff_coefficient=message.backoff_coefficient or SERVER_DEFAULT.backoff_coefficient,
        maximum_interval_ms=message.maximum_interval_ms or SERVER_DEFAULT.maximum_interval_ms,
        non_retryable_errors=tuple(message.non_retryable_errors),
        jitter=message.jitter if message.HasField("jitter") else SERVER_DEFAULT.jitter,
        retry_on_errors=tuple(message.retry_on_errors),
    )


def write_retry(policy: RetryPolicy) -> pb.RetryPolicy:
    return pb.RetryPolicy(
        maximum_attempts=policy.maximum_attempts,
        initial_interval_ms=policy.initial_interval_ms,
        backoff_coefficient=policy.backoff_coefficient,
        maximum_interval_ms=max(policy.maximum_interval_ms, 1),  # 0 would mean the default
        non_retryable_errors=policy.non_retryable_errors,
        jitter=policy.jitter,
        retry_on_errors=policy.retry_on_errors,
    )


# --- leases -----------------------------------------------------------------------------------------------------------


def read_lease(message: pb.Lease) -> Lease:
    """A nonce that no claim can have drawn is read as one that matches no run."""
    nonce = message.nonce
    return Lease(message.counter, nonce if nonce <= _NONCE_MAX else _NO_NONCE)


def write_lease(lease: Lease) -> pb.Lease:
    return pb.Lease(counter=lease.counter, nonce=lease.nonce)


def read_leased(message: worker_pb2.LeasedRun, namespace: str) -> RunLease:
    return RunLease(RunKey(namespace, message.run_id), read_lease(message.lease))


def write_leased(leased: RunLease) -> worker_pb2.LeasedRun:
    return worker_pb2.LeasedRun(run_id=leased.run.run_id, lease=write_lease(leased.lease))


# --- time -------------------------------------------------------------------------------------------------------------


def read_time(message: TimestampMessage) -> Timestamp:
    """Fractions of a microsecond round up, so that nothing becomes due early."""
    return message.seconds * US_PER_S + -(-message.nanos // _NS_PER_US)


def read_time_if(message: Message, field: str) -> Timestamp | None:
    return read_time(getattr(message, field)) if message.HasField(field) else None


def write_time(at: Timestamp) -> TimestampMessage:
    seconds, microseconds = divmod(at, US_PER_S)
    return TimestampMessage(seconds=seconds, nanos=microseconds * _NS_PER_US)


def write_time_if(at: Timestamp | None) -> TimestampMessage | None:
    return None if at is None else write_time(at)


def read_duration_us(message: Duration) -> int:
    """In microseconds; fractions round up."""
    return message.seconds * US_PER_S + -(-message.nanos // _NS_PER_US)


def read_duration_ms(message: Duration) -> int:
    """In milliseconds; fractions round up."""
    return -(-read_duration_us(message) // US_PER_MS)


def write_duration(microseconds: int) -> Duration:
    seconds, rest = divmod(microseconds, US_PER_S)
    return Duration(seconds=seconds, nanos=rest * _NS_PER_US)

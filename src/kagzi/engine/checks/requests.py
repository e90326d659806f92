"""Validation of requests. Every refusal names the field, the limit and the remedy, and happens before anything is
changed."""

import math
import unicodedata
from collections.abc import Mapping, Sequence

from ...core import limits
from ...core.errors import InvalidArgument, NotFound, limit_reached, not_found
from ...core.ids import is_uuid
from ...core.records import Payload, RunAttributes, RunFilter, RunKey, WorkerRecord
from ...core.retry.policy import UNLIMITED, RetryPolicy
from ...core.run.commands import SendSignal, SignalReplacement, StartRequest, StartRun
from ...core.schedules.scheduled_time import METADATA_KEY
from ...core.time_checks import check_duration, check_time
from ...core.times import Timestamp

INT64_END = 1 << 63
INT32_END = 1 << 31
REASON_BYTES = 4 * limits.KIB
_ASCII_CHARACTERS = 128  # up to here a name is looked at the quick way


def name(value: str, field: str) -> None:
    """A name or id: 1..256 bytes of text without control characters."""
    if 0 < len(value) <= _ASCII_CHARACTERS and value.isascii() and value.isprintable():
        return
    if not value:
        raise InvalidArgument(f"{field} is empty. Give it a name.", field=field)
    text(value, field, limits.NAME_BYTES)


def optional_name(value: str, field: str) -> None:
    if value:
        name(value, field)


def over_limit(field: str, size: str, limit: str, maximum: int, remedy: str) -> InvalidArgument:
    return InvalidArgument(
        f"{field} has {size}; the limit is {maximum}. {remedy}", field=field, metadata=limit_reached(limit, maximum)
    )


def text(value: str, field: str, limit_bytes: int) -> None:
    """Text without control characters and lone surrogates; may be empty."""
    for character in value:
        if unicodedata.category(character) in ("Cc", "Cs"):
            raise InvalidArgument(
                f"{field} contains the control character U+{ord(character):04X}. Remove it.", field=field
            )
    size = len(value.encode())
    if size > limit_bytes:
        raise over_limit(field, f"{size} bytes", "text_bytes", limit_bytes, "Shorten it.")


def reason(value: str, field: str = "reason") -> None:
    lines(value, field, REASON_BYTES)


def lines(value: str, field: str, limit_bytes: int) -> None:
    """Text that may have line breaks and tabs."""
    text(value.replace("\n", " ").replace("\t", " "), field, limit_bytes)


def payload(value: Payload | None, field: str, limit_bytes: int) -> None:
    if value is None:
        return
    if len(value.data) > limit_bytes:
        size = f"{len(value.data)} bytes"
        raise over_limit(field, size, "payload_bytes", limit_bytes, "Store it elsewhere and pass a reference.")
    if value.metadata:
        entries(value.metadata, f"{field}.metadata", limits.METADATA_ENTRIES)


def entries(values: Mapping[str, str], field: str, limit: int) -> None:
    if len(values) > limit:
        raise over_limit(field, f"{len(values)} entries", "entries", limit, "Use fewer.")
    for key, value in values.items():
        name(key, f"{field} key")
        text(value, f"{field}[{key}]", limits.NAME_BYTES)


def run_id(value: str, field: str = "run_id") -> None:
    """Malformed ids name no run: NotFound, like any id that does not exist."""
    if not value:
        raise InvalidArgument(f"{field} is empty. Name the run.", field=field)
    if not is_uuid(value):
        raise no_run(value)


def one_of(run_id_value: str, workflow_id: str) -> None:
    """A run is named by its id or by the user's, not by both."""
    if bool(run_id_value) == bool(workflow_id):
        which = "both are given" if run_id_value else "neither is given"
        raise InvalidArgument(f"run_id or workflow_id: {which}. Give exactly one.", field="run_id")
    if run_id_value:
        run_id(run_id_value)
    else:
        name(workflow_id, "workflow_id")


def no_run(which: str) -> NotFound:
    return not_found("run", which if len(which) <= limits.NAME_BYTES else which[: limits.NAME_BYTES] + "...")


def within(value: float, least: float, most: float, field: str) -> None:
    if not least <= value <= most:
        raise InvalidArgument(f"{field}={value} is outside {least}..{most}.", field=field)


def retry(policy: RetryPolicy | None, field: str) -> None:
    if policy is None:
        return
    if policy.maximum_attempts != UNLIMITED:
        within(policy.maximum_attempts, 1, INT32_END - 1, f"{field}.maximum_attempts")
    longest_ms = limits.DURATION_MAX_US // 1_000
    within(policy.initial_interval_ms, 0, longest_ms, f"{field}.initial_interval_ms")
    within(policy.maximum_interval_ms, 0, longest_ms, f"{field}.maximum_interval_ms")
    if not math.isfinite(policy.backoff_coefficient):
        raise InvalidArgument(f"{field}.backoff_coefficient is not a finite number.", field=field)
    within(policy.backoff_coefficient, 0, 1_000_000, f"{field}.backoff_coefficient")
    within(policy.jitter, 0, 1, f"{field}.jitter")
    for listed, errors in (
        (f"{field}.non_retryable_errors", policy.non_retryable_errors),
        (f"{field}.retry_on_errors", policy.retry_on_errors),
    ):
        within(len(errors), 0, limits.METADATA_ENTRIES, f"{listed} count")
        for error in errors:
            name(error, listed)
    for error in policy.retry_on_errors:
        if error in policy.non_retryable_errors:
            raise InvalidArgument(
                f"{field}: {error!r} is both in retry_on_errors and in non_retryable_errors. "
                "Remove it from one of them.",
                field=field,
            )


timestamp = check_time
duration = check_duration


def wait_ms(value: int, field: str) -> None:
    if not 0 <= value <= limits.POLL_WAIT_MS:
        raise InvalidArgument(
            f"{field} is {value} ms; it must be 0..{limits.POLL_WAIT_MS} ms. Ask again to wait longer.", field=field
        )


def start(request: StartRequest, now: Timestamp, payload_bytes: int) -> None:
    name(request.namespace, "namespace")
    optional_name(request.request_id, "request_id")
    if request.task_queue and request.task_queue != request.workflow_type:
        raise InvalidArgument(
            f"task_queue={request.task_queue!r} differs from workflow_type={request.workflow_type!r}. "
            "Leave it empty: the queue of a run is its type.",
            field="task_queue",
        )
    if request.start_at is not None and request.delay_us is not None:
        raise InvalidArgument("start_at and delay are both given. Give one.", field="delay")
    duration(request.delay_us, "delay")
    duration(request.timeout_us, "timeout", least_us=1)
    _of_any_start(request, payload_bytes)
    begins = request.start_at if request.start_at is not None else now + (request.delay_us or 0)
    _deadline(request.deadline_at, now, begins, "deadline_at")
    if request.timeout_us is not None:
        _deadline(now + request.timeout_us, now, begins, "timeout")


def child_start(start: StartRun, now: Timestamp, payload_bytes: int) -> None:
    """Of a child: its times are absolute already, its ids come later."""
    _of_any_start(start, payload_bytes)
    _deadline(start.deadline_at, now, start.start_at or now, "deadline_at")


def attributes(run: RunAttributes, prefix: str = "", *, retry_field: str = "retry_policy") -> None:
    """What a start says about its run for good, or an import about a run."""
    name(run.workflow_type, f"{prefix}workflow_type")
    optional_name(run.concurrency_key, f"{prefix}concurrency_key")
    if run.labels:
        entries(run.labels, f"{prefix}labels", limits.LABELS)
    within(run.priority, limits.PRIORITY_MIN, limits.PRIORITY_MAX, f"{prefix}priority")
    retry(run.retry, prefix + retry_field)
    timestamp(run.deadline_at, f"{prefix}deadline_at")


def _of_any_start(request: StartRequest | StartRun, payload_bytes: int) -> None:
    attributes(request)
    optional_name(request.workflow_id, "workflow_id")
    optional_name(request.version or "", "version")
    payload(request.input, "input", payload_bytes)
    payload(request.context, "context", payload_bytes)
    _context(request.context)
    timestamp(request.start_at, "start_at")


def _context(context: Payload | None) -> None:
    if context is not None and context.metadata and METADATA_KEY in context.metadata:
        raise InvalidArgument(
            f"context.metadata has the key {METADATA_KEY!r}, which is reserved for runs that a schedule starts. "
            "Remove it.",
            field="context",
        )


def _deadline(deadline_at: Timestamp | None, now: Timestamp, begins: Timestamp, field: str) -> None:
    if deadline_at is not None and deadline_at <= max(now, begins):
        raise InvalidArgument(
            f"{field} is not after the start. Give a later one: a deadline includes the time in the queue.",
            field=field,
        )


def signal(value: SendSignal | SignalReplacement, payload_bytes: int) -> None:
    name(value.name, "signal_name")
    optional_name(value.request_id, "request_id")
    payload(value.payload, "payload", payload_bytes)


def worker(record: WorkerRecord) -> None:
    name(record.namespace, "namespace")
    name(record.worker_id, "worker_id")
    if not record.served:
        raise InvalidArgument("workflow_types is empty. Name at least one type.", field="workflow_types")
    if len(record.served) > limits.WORKER_TYPES:
        count = f"{len(record.served)} types"
        raise over_limit("workflow_types", count, "worker_types", limits.WORKER_TYPES, "Use several workers.")
    for served in record.served:
        name(served.workflow_type, "workflow_types")
        name(served.version, "version")
    if len(set(record.served)) != len(record.served):
        raise InvalidArgument("a workflow type is named twice at one version. Name it once.", field="workflow_types")
    within(record.max_concurrent, 1, limits.WORKER_MAX_CONCURRENT, "max_concurrent")
    for field, value in (
        ("hostname", record.hostname),
        ("sdk version", record.sdk_version),
        ("build_id", record.build_id),
    ):
        text(value, field, limits.NAME_BYTES)
    within(record.pid, 0, INT32_END - 1, "pid")
    entries(record.labels, "labels", limits.LABELS)


def run_filter(where: RunFilter) -> None:
    within(len(where.workflow_types), 0, limits.WORKER_TYPES, "workflow_types count")
    for workflow_type in where.workflow_types:
        name(workflow_type, "workflow_types")
    entries(where.labels, "labels", limits.LABELS)
    optional_name(where.workflow_id, "workflow_id")
    optional_name(where.version, "version")
    optional_name(where.schedule_id, "schedule_id")
    optional_name(where.concurrency_key, "concurrency_key")
    timestamp(where.created_after, "created_after")
    timestamp(where.created_before, "created_before")


def batch_size(items: Sequence[object], limit: int, field: str) -> None:
    if len(items) > limit:
        raise over_limit(field, f"{len(items)} items", "items", limit, "Send several.")


def leases(leased: Sequence[object]) -> None:
    if len(leased) > limits.HEARTBEAT_LEASES:
        raise InvalidArgument(
            f"leased names {len(leased)} leases; the limit is {limits.HEARTBEAT_LEASES}, the most that a worker may "
            "hold (max_concurrent). Name only what this worker holds.",
            field="leased",
            metadata=limit_reached("heartbeat_leases", limits.HEARTBEAT_LEASES),
        )


def key(namespace: str, run: str) -> RunKey:
    name(namespace, "namespace")
    run_id(run)
    return RunKey(namespace, run)

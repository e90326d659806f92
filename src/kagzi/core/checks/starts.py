"""Checks of the attributes of a start request."""

from .. import limits
from ..duration import check_duration, check_time
from ..errors import InvalidArgument
from ..records import Payload, RunAttributes
from ..run.commands import StartRequest, StartRun
from ..schedules.scheduled_time import METADATA_KEY
from ..times import Timestamp
from .values import entries, name, optional_name, payload, retry, within


def start(request: StartRequest, now: Timestamp, payload_bytes: int) -> None:
    name(request.namespace, "namespace")
    optional_name(request.request_id, "request_id")
    if request.start_at is not None and request.delay_us is not None:
        raise InvalidArgument("start_at and delay are both given. Give one.", field="delay")
    check_duration(request.delay_us, "delay")
    check_duration(request.timeout_us, "timeout", least_us=1)
    _of_any_start(request, payload_bytes)
    begins = request.start_at if request.start_at is not None else now + (request.delay_us or 0)
    _deadline(request.deadline_at, now, begins, "deadline_at")
    if request.timeout_us is not None:
        _deadline(now + request.timeout_us, now, begins, "timeout")


def child_start(start: StartRun, now: Timestamp, payload_bytes: int) -> None:
    """Checks the start of a child: its times are already absolute, and its ids are assigned later."""
    _of_any_start(start, payload_bytes)
    _deadline(start.deadline_at, now, start.start_at or now, "deadline_at")


def attributes(run: RunAttributes, prefix: str = "", *, retry_field: str = "retry_policy") -> None:
    """Checks the permanent attributes of a run, given by a start or an import."""
    name(run.workflow_type, f"{prefix}workflow_type")
    optional_name(run.concurrency_key, f"{prefix}concurrency_key")
    optional_name(run.task_queue, f"{prefix}task_queue")
    if run.labels:
        entries(run.labels, f"{prefix}labels", limits.LABELS)
    within(run.priority, limits.PRIORITY_MIN, limits.PRIORITY_MAX, f"{prefix}priority")
    retry(run.retry, prefix + retry_field)
    check_time(run.deadline_at, f"{prefix}deadline_at")


def _of_any_start(request: StartRequest | StartRun, payload_bytes: int) -> None:
    attributes(request)
    optional_name(request.workflow_id, "workflow_id")
    optional_name(request.version or "", "version")
    payload(request.input, "input", payload_bytes)
    context(request.context, payload_bytes)
    check_time(request.start_at, "start_at")


def context(value: Payload | None, payload_bytes: int) -> None:
    payload(value, "context", payload_bytes)
    if value is not None and value.metadata and METADATA_KEY in value.metadata:
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

"""Admission: starts of a type that is at its limit and does not queue them (`when_full`)."""

from ..error_details import ErrorCode, ErrorDetail, ErrorKind
from ..errors import limit_reached
from ..limits import FULL_RETRY_AFTER_MS
from ..run.commands import StartRun
from ..run.outcomes import Refused
from ..text.plurals import counted
from ..times import Timestamp
from .queues import TypeLimits


def begins_at_once(start: StartRun, now: Timestamp) -> bool:
    """A delayed start counts when its time has come."""
    return not start.blocked_by and (start.start_at is None or start.start_at <= now)


def queues_of(start: StartRun, limits: TypeLimits) -> list[tuple[str | None, int]]:
    """The limits that a start must meet if a full type does not queue it, the narrower first; a key of None stands for
    the whole type."""
    if limits.when_full == "queue":
        return []
    queues: list[tuple[str | None, int]] = []
    if start.concurrency_key and limits.max_running_per_key is not None:
        queues.append((start.concurrency_key, limits.max_running_per_key))
    if limits.max_running is not None:
        queues.append((None, limits.max_running))
    return queues


def type_full(workflow_type: str, key: str | None, limit: int) -> Refused:
    name = "max_running" if key is None else "max_running_per_key"
    what = f"type {workflow_type!r}" if key is None else f"key {key!r} of type {workflow_type!r}"
    detail = ErrorDetail(
        code=ErrorCode.RESOURCE_EXHAUSTED,
        kind=ErrorKind.TRANSIENT,
        message=f"{what} has {counted(limit, 'run')} running or waiting, its limit ({name}), and when_full is reject. "
        "Try again when one has ended, raise the limit, or set when_full to queue.",
        subject="workflow_type",
        subject_id=workflow_type,
        metadata=limit_reached(name, limit),
        retry_after_ms=FULL_RETRY_AFTER_MS,
    )
    return Refused(detail)


def why_evicted(start: StartRun, key: str | None, limit: int) -> str:
    of_key = "" if key is None else f" with key {key!r}"
    return (
        f"run {start.run.run_id} replaced it: {limit} runs of type {start.workflow_type!r}{of_key} may run, "
        "and when_full is cancel-oldest"
    )

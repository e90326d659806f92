"""Runs and steps as they are printed: JSON with a stable schema (snake_case, RFC 3339), and values for people."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp as TimestampLetter

from ...core.retry_words import why_not_retried
from ...core.states import RunStatus
from ...v1 import common_pb2, worker_pb2, workflow_pb2
from ...wire.common import read_error, read_retry
from ...wire.enums import (
    RUN_STATUS_FROM_WIRE,
    STEP_KIND_FROM_WIRE,
    STEP_STATUS_FROM_WIRE,
    WAIT_REASON_FROM_WIRE,
)

_ENCODING_KEY = "encoding"


def run_status(number: int) -> RunStatus:
    return RUN_STATUS_FROM_WIRE[number]


def run_view(run: workflow_pb2.Workflow) -> dict[str, Any]:
    """One run, without its payloads. Keys are always there; what is not known is null."""
    reason = WAIT_REASON_FROM_WIRE.get(run.wait_reason)
    return {
        "run_id": run.run_id,
        "workflow_id": run.workflow_id,
        "workflow": run.workflow_type,
        "version": run.version or None,
        "namespace": run.namespace_id,
        "status": str(run_status(run.status)),
        "wait_reason": str(reason) if reason else None,
        "attempt": run.attempts,
        "priority": run.priority,
        "labels": dict(run.labels),
        "created_at": _moment(run, "created_at"),
        "started_at": _moment(run, "started_at"),
        "finished_at": _moment(run, "finished_at"),
        "wake_at": _moment(run, "wake_up_at"),
        "deadline_at": _moment(run, "deadline_at"),
        "worker_id": run.worker_id or None,
        "cancel_requested": run.cancel_requested,
        "pause_requested": run.pause_requested,
        "pause_reason": run.pause_reason or None,
        "blocked_by": run.blocked_by or None,
        "schedule": run.schedule_id or None,
        "concurrency_key": run.concurrency_key or None,
        "status_text": run.status_text or None,
        "progress": run.progress if run.HasField("progress") else None,
        "parent_run_id": run.parent_run_id or None,
        "parent_step_id": run.parent_step_id or None,
        "forked_from": run.forked_from or None,
        "continued_as": run.continued_as or None,
        "error": error_view(run.error) if run.HasField("error") else None,
        "problem": error_view(run.problem) if run.HasField("problem") else None,
        "url": run.url or None,
    }


def whole_run_view(run: workflow_pb2.Workflow) -> dict[str, Any]:
    """One run, with what only Get answers: its payloads and what it waits for."""
    return {
        **run_view(run),
        "waits": list(run.waits),
        "scheduled_at": _moment(run, "scheduled_at"),
        "input": payload_view(run.input) if run.HasField("input") else None,
        "output": payload_view(run.output) if run.HasField("output") else None,
    }


def step_view(step: worker_pb2.Step) -> dict[str, Any]:
    return {
        "step_id": step.step_id,
        "name": step.name,
        "kind": str(STEP_KIND_FROM_WIRE[step.kind]),
        "status": str(STEP_STATUS_FROM_WIRE[step.status]),
        "attempt": step.attempt_number,
        "seq": step.seq,
        "created_at": _moment(step, "created_at"),
        "started_at": _moment(step, "started_at"),
        "finished_at": _moment(step, "finished_at"),
        "retry_at": _moment(step, "retry_at"),
        "wake_at": _moment(step, "wake_at"),
        "child_run_id": step.child_run_id or None,
        "parallel_group": step.parallel_group_id or None,
        "details": payload_view(step.heartbeat_details) if step.HasField("heartbeat_details") else None,
        "output": payload_view(step.output) if step.HasField("output") else None,
        "error": error_view(step.error) if step.HasField("error") else None,
        "not_retried": _not_retried(step),
        "attempts": [
            {
                "attempt": earlier.attempt_number,
                "started_at": _moment(earlier, "started_at"),
                "finished_at": _moment(earlier, "finished_at"),
                "worker_id": earlier.worker_id or None,
                "error": error_view(earlier.error),
            }
            for earlier in step.attempts
        ],
    }


def _not_retried(step: worker_pb2.Step) -> str | None:
    """Why a step that failed was not tried again, unless its attempts were used up."""
    if step.kind != worker_pb2.STEP_KIND_FUNCTION or step.status != worker_pb2.STEP_STATUS_FAILED:
        return None
    return why_not_retried(read_retry(step.retry_policy), read_error(step.error)) or None


def error_view(letter: common_pb2.ErrorDetail) -> dict[str, Any]:
    error = read_error(letter)
    view: dict[str, Any] = {
        "text": error.text,
        "type": error.type or None,
        "message": error.message,
        "kind": str(error.kind),
        "code": str(error.code),
        "exhausted": error.exhausted,
        "non_retryable": error.non_retryable,
        "traceback": error.traceback or None,
        "metadata": dict(error.metadata),
    }
    if letter.HasField("cause"):
        view["cause"] = error_view(letter.cause)
    return view


def payload_view(payload: common_pb2.Payload) -> Any:
    """The value, if it is JSON (it nearly always is); otherwise what can be said about it."""
    try:
        return json.loads(payload.data)
    except ValueError:
        encoding = payload.metadata.get(_ENCODING_KEY, "unknown")
        return {"$encoding": encoding, "$bytes": len(payload.data)}


def value_text(value: Any) -> str:
    """A result as a line of data: a string as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def labels_text(labels: Mapping[str, str]) -> str:
    return " ".join(f"{key}={value}" for key, value in sorted(labels.items()))


def _moment(letter: Any, field: str) -> str | None:
    """RFC 3339 with microseconds, UTC."""
    if not letter.HasField(field):
        return None
    timestamp: TimestampLetter = getattr(letter, field)
    moment = datetime.fromtimestamp(timestamp.seconds, UTC) + timedelta(microseconds=timestamp.nanos // 1_000)
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")

"""Runs and steps as they are printed: JSON with a stable schema (snake_case, RFC 3339), and values for people."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..times import utc_text

if TYPE_CHECKING:
    from datetime import datetime

    from ...core.error_details import ErrorDetail
    from ...sdk.client.run_records import RunInfo
    from ...sdk.client.step_records import StepRecord


def run_view(run: RunInfo) -> dict[str, Any]:
    """One run, without its payloads. Keys are always there; what is not known is null."""
    return {
        "run_id": run.id,
        "workflow_id": run.workflow_id,
        "workflow": run.workflow,
        "version": run.version,
        "namespace": run.namespace,
        "status": str(run.status),
        "wait_reason": str(run.wait_reason) if run.wait_reason else None,
        "attempt": run.attempt,
        "priority": run.priority,
        "labels": dict(run.labels),
        "created_at": utc_text(run.created_at),
        "started_at": _moment(run.started_at),
        "finished_at": _moment(run.finished_at),
        "wake_at": _moment(run.wake_at),
        "deadline_at": _moment(run.deadline_at),
        "worker_id": run.worker_id,
        "cancel_requested": run.cancel_requested,
        "pause_requested": run.pause_requested,
        "pause_reason": run.pause_reason or None,
        "blocked_by": run.blocked_by,
        "schedule": run.schedule,
        "concurrency_key": run.concurrency_key or None,
        "status_text": run.status_text or None,
        "progress": run.progress,
        "parent_run_id": run.parent,
        "parent_step_id": run.parent_step,
        "forked_from": run.forked_from,
        "continued_as": run.continued_as,
        "error": error_view(run.error),
        "problem": error_view(run.problem),
        "url": run.url or None,
    }


def whole_run_view(run: RunInfo) -> dict[str, Any]:
    """One run, with what lists leave out: its payloads and what it waits for."""
    return {
        **run_view(run),
        "waits": list(run.waits),
        "scheduled_at": _moment(run.scheduled_at),
        "input": payload_view(run.input, run.encoding),
        "output": payload_view(run.output, run.encoding),
    }


def step_view(step: StepRecord) -> dict[str, Any]:
    return {
        "step_id": step.id,
        "name": step.name,
        "kind": str(step.kind),
        "status": str(step.status),
        "attempt": step.attempts,
        "seq": step.seq,
        "created_at": _moment(step.created_at),
        "started_at": _moment(step.started_at),
        "finished_at": _moment(step.finished_at),
        "retry_at": _moment(step.retry_at),
        "wake_at": _moment(step.wake_at),
        "child_run_id": step.child,
        "parallel_group": step.parallel_group or None,
        "details": payload_view(step.details, step.encoding),
        "output": payload_view(step.output, step.encoding),
        "error": error_view(step.error_detail),
        "not_retried": step.not_retried or None,
        "attempts": [
            {
                "attempt": earlier.attempt,
                "started_at": _moment(earlier.started_at),
                "finished_at": utc_text(earlier.finished_at),
                "worker_id": earlier.worker_id,
                "error": error_view(earlier.error),
            }
            for earlier in step.earlier
        ],
    }


def error_view(error: ErrorDetail | None) -> dict[str, Any] | None:
    if error is None:
        return None
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
    return view if error.cause is None else view | {"cause": error_view(error.cause)}


def payload_view(data: bytes, encoding: str) -> Any:
    """The value, if it is JSON (it nearly always is); otherwise what can be said about it."""
    if not data:
        return None
    try:
        return json.loads(data)
    except ValueError:
        return {"$encoding": encoding or "unknown", "$bytes": len(data)}


def value_text(value: Any) -> str:
    """A result as a line of data: a string as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def labels_text(labels: Mapping[str, str]) -> str:
    return " ".join(f"{key}={value}" for key, value in sorted(labels.items()))


def _moment(at: datetime | None) -> str | None:
    return None if at is None else utc_text(at)

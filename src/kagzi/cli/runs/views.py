"""Views of runs and steps."""

from __future__ import annotations

import json
from dataclasses import fields
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from ..times import now, span_text
from ..views import view

if TYPE_CHECKING:
    from ...sdk.client.run_records import RunInfo
    from ...sdk.client.step_records import StepRecord

SHOWN_CHARS = 2_000
"""How much of a value or an error is printed for people, unless they asked for nothing else."""

_RUN_KEYS = {"id": "run_id", "parent": "parent_run_id", "parent_step": "parent_step_id"}
_PAYLOADS = ("input", "output", "context", "state", "encoding")
_NOT_IN_LISTS = ("waits", "scheduled_at", "state_at")
_STEP = (
    *("step_id=id", "name", "kind", "status", "attempt=attempts", "seq", "created_at", "started_at", "finished_at"),
    *("retry_at", "wake_at", "child_run_id=child", "parallel_group?"),
)


def run_view(run: RunInfo) -> dict[str, Any]:
    """All fields of a run except those that lists omit: its payloads and what it waits for."""
    names = [field.name for field in fields(run) if field.name not in (*_PAYLOADS, *_NOT_IN_LISTS)]
    return view(run, *(f"{_RUN_KEYS.get(name, name)}={name}?" for name in names))


def whole_run_view(run: RunInfo) -> dict[str, Any]:
    payloads = {
        name: payload_view(getattr(run, name), run.encoding) for name in ("input", "output", "context", "state")
    }
    return run_view(run) | view(run, *_NOT_IN_LISTS) | payloads


def queued_text(run: RunInfo) -> str:
    """How long a run has waited for workers, the wait under way included; empty for less than a second."""
    queued = run.queued if run.ready_at is None else run.queued + max(now() - run.ready_at, timedelta())
    return "" if queued < timedelta(seconds=1) else span_text(queued)


def step_view(step: StepRecord) -> dict[str, Any]:
    payloads = {name: payload_view(getattr(step, name), step.encoding) for name in ("input", "details", "output")}
    attempt = ("attempt", "started_at", "finished_at", "worker_id", "error", "before_retry")
    earlier = [view(each, *attempt) | {"input": payload_view(each.input, step.encoding)} for each in step.earlier]
    rest = view(step, "error=error_detail", "not_retried?", "retried_at") | {"retry_seq": step.retry_seq or None}
    return view(step, *_STEP) | payloads | rest | {"attempts": earlier}


def payload_view(data: bytes, encoding: str) -> Any:
    """The value, if it is JSON (nearly always); otherwise a description."""
    if not data:
        return None
    try:
        return json.loads(data)
    except ValueError:
        return {"$encoding": encoding or "unknown", "$bytes": len(data)}


def value_text(value: Any) -> str:
    """A result as a line of data: a string unchanged, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def shown_value(value: Any, most_chars: int = SHOWN_CHARS) -> str:
    """As `value_text`, cut if it is long."""
    return shown_text(value_text(value), most_chars)


def shown_text(text: str, most_chars: int = SHOWN_CHARS) -> str:
    """The text, or its beginning and its size."""
    if len(text) <= most_chars:
        return text
    size = len(text.encode(errors="surrogatepass"))
    amount = f"{size / 1_000_000:.1f} MB" if size >= 1_000_000 else f"{size / 1_000:.1f} kB"
    return f"{text[:most_chars]} ... ({amount} in all; --json prints it)"

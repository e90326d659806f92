"""Translates field names. The engine's errors use the names of gRPC; callers of this API must see the names that they
sent: `cron`, not `cron_expr`."""

import re
from functools import lru_cache

_NAMES = {
    "cron_expr": "cron",
    "interval": "every",
    "namespace_id": "namespace",
    "created_after": "since",
    "created_before": "until",
    "ended_after": "ended_since",
    "ended_before": "ended_until",
    "next_fire_at": "next_at",
    "page_size": "size",
    "page_token": "token",
    "request_id": "Idempotency-Key",
    "retry_policy": "retry",
    "schedule_id": "schedule",
    "signal_name": "name",
    "task_queue": "workflow",
    "workflow_type": "workflow",
    "workflow_types": "workflow",
    **{
        f"limits.{name}": f"max_{name}"
        for name in ("open_runs", "running_runs", "starts_per_second", "stored_bytes", "sessions", "schedules")
    },
}
_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`"


def field_name(field: str) -> str:
    return _NAMES.get(field, field)


def in_words(message: str, field: str) -> str:
    """The message of a refusal of `field`, with the names of this API outside of quotes. A name that is also a plain
    word is translated only if the refusal is about that field."""
    return _pattern(field).sub(lambda match: _NAMES.get(match[0], match[0]), message)


@lru_cache(maxsize=100)
def _pattern(field: str) -> re.Pattern[str]:
    names = [name for name in _NAMES if "_" in name or name == field]
    longest_first = sorted(map(re.escape, names), key=len, reverse=True)
    return re.compile(rf"{_QUOTED}|(?<![\w.])(?:{'|'.join(longest_first)})(?!\w)")

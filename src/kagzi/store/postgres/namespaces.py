"""Namespaces and their limits."""

from ...core.records import NamespaceRecord
from ...core.times import Timestamp
from .connections import Session
from .rows import read_namespace


async def get_namespace(session: Session, namespace: str) -> NamespaceRecord | None:
    rows = await session.read("get_namespace", namespace)
    return read_namespace(rows[0]) if rows else None


async def put_namespace(session: Session, record: NamespaceRecord, now: Timestamp) -> None:
    await session.write(
        "put_namespace",
        record.namespace,
        record.enabled,
        record.created_at or now,
        record.open_runs_limit,
        record.running_runs_limit,
        record.starts_per_second_limit,
        record.stored_bytes_limit,
        record.sessions_limit,
        record.schedules_limit,
    )

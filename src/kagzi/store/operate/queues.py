"""Workflow types as queues: their limits, how far those are used, and how many runs wait."""

from collections.abc import Mapping

from ...core.keys.audit import AuditEntry
from ...core.pages.cursor import Cursor
from ...core.records import Rows
from ...core.times import Timestamp
from ...core.workflow_types.queues import Pressure, TypeLimits, WorkflowTypeRecord, begins_at
from ..rows import Row, read_limits, require_storable
from ..sessions import Purpose, Session, Sessions, first, list_page, scan, verb
from .audit import note_audit


async def _get_limits(session: Session, namespace: str, workflow_type: str) -> TypeLimits | None:
    row = await first(session, "get_type_limits", namespace=namespace, workflow_type=workflow_type)
    return None if row is None else read_limits(row)


async def _put_limits(
    session: Session,
    namespace: str,
    workflow_type: str,
    limits: TypeLimits,
    now: Timestamp,
    *,
    audit: AuditEntry | None = None,
) -> None:
    require_storable(namespace=namespace, workflow_type=workflow_type)
    async with session.transaction():
        await session.read("create_namespace", namespace=namespace, now=now)
        before = await _get_limits(session, namespace, workflow_type)
        if before is not None and before.starts_per_second_per_key != limits.starts_per_second_per_key:
            await session.read("forget_key_rates", namespace=namespace, workflow_type=workflow_type)
        await session.read(
            "put_type_limits",
            namespace=namespace,
            workflow_type=workflow_type,
            paused=limits.paused,
            max_running=limits.max_running,
            max_running_per_key=limits.max_running_per_key,
            starts_per_second=limits.starts_per_second,
            starts_per_second_per_key=limits.starts_per_second_per_key,
            when_full=limits.when_full,
        )
        await note_audit(session, audit)


async def _list(
    session: Session,
    namespace: str,
    cursor: Cursor | None,
    limit: int,
    *,
    workflow_type: str = "",
) -> Rows[WorkflowTypeRecord]:
    def read(row: Row) -> WorkflowTypeRecord:
        return WorkflowTypeRecord(
            namespace=namespace,
            workflow_type=row["name"],
            limits=TypeLimits() if row["workflow_type"] is None else read_limits(row),
        )

    return await list_page(
        session,
        "list_types",
        read,
        cursor,
        limit,
        namespace=namespace,
        cursor="" if cursor is None else cursor.id,
        workflow_type=workflow_type or None,
    )


async def _open_runs(session: Session, namespace: str, cap: int) -> Mapping[str, int]:
    rows = await session.read("open_by_type", namespace=namespace, cap=cap)
    return {row["workflow_type"]: row["runs"] for row in rows}


async def _pressure(session: Session, namespace: str, workflow_type: str, key: str) -> Pressure | None:
    row = await first(session, "type_pressure", namespace=namespace, workflow_type=workflow_type, key=key)
    if row is None:
        return None
    limits = read_limits(row)
    return Pressure(
        limits=limits,
        running=row["runs"],
        running_of_key=row["of_key"],
        holder_of_key=row["holder"] or "",
        begins_at=begins_at(limits, row["next_start_at"], row["key_next_start_at"] or 0),
    )


class Queues(Sessions):
    """Implements `store.protocol.QueueVerbs`, except `queue_depths`."""

    get_type_limits = verb(Purpose.READ, _get_limits)
    put_type_limits = verb(Purpose.WRITE, _put_limits)
    list_workflow_types = scan(_list)
    open_runs_by_type = scan(_open_runs)
    type_pressure = verb(Purpose.READ, _pressure)

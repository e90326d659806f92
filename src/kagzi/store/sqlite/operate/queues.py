"""The verbs about workflow types as queues, in the thread that does them."""

from collections.abc import Sequence

from ....core.pages.cursor import Cursor
from ....core.records import Rows
from ....core.times import Timestamp
from ....core.workflow_types.queues import Pressure, QueueDepth, TypeLimits, WorkflowTypeRecord, begins_at
from ...rows import read_limits
from ..connection.connection import Database
from ..connection.connections import Lanes
from ..write.fast_path import Writer

_MOST_TYPES = 1_000


class QueueDesk(Lanes):
    """Keeps `store.protocol.QueueVerbs`."""

    async def get_type_limits(self, namespace: str, workflow_type: str) -> TypeLimits | None:
        return await self._read(_get, namespace, workflow_type)

    async def put_type_limits(self, namespace: str, workflow_type: str, limits: TypeLimits, now: Timestamp) -> None:
        await self._change(_put, namespace, workflow_type, limits, now)

    async def list_workflow_types(
        self, namespace: str, cursor: Cursor | None, limit: int, *, workflow_type: str = "", count_cap: int
    ) -> Rows[WorkflowTypeRecord]:
        return await self._scan(
            namespace, _list, namespace, cursor, limit, workflow_type=workflow_type, count_cap=count_cap
        )

    async def queue_depths(self, namespace: str, workflow_type: str, *, cap: int) -> Sequence[QueueDepth]:
        return await self._scan(namespace, _depths, namespace, workflow_type, cap)

    async def type_pressure(self, namespace: str, workflow_type: str, key: str) -> Pressure | None:
        return await self._read(_pressure, namespace, workflow_type, key)


def _get(database: Database, namespace: str, workflow_type: str) -> TypeLimits | None:
    row = database.record("get_type_limits", (namespace, workflow_type))
    return None if row is None else read_limits(row)


def _put(writer: Writer, namespace: str, workflow_type: str, limits: TypeLimits, now: Timestamp) -> None:
    writer.types.put(namespace, workflow_type, limits, now)


def _list(
    database: Database, namespace: str, cursor: Cursor | None, limit: int, *, workflow_type: str, count_cap: int
) -> Rows[WorkflowTypeRecord]:
    back = cursor is not None and cursor.direction == "prev"
    place = None if cursor is None else cursor.id
    given = {"namespace": namespace, "only": workflow_type or None, "cursor": place, "limit": limit + 1}
    rows, more = database.page("list_types_before" if back else "list_types_after", given, limit)
    opened: dict[str, int] = dict(database.rows("open_by_type", (namespace, count_cap)))
    found = [
        WorkflowTypeRecord(
            namespace=namespace,
            workflow_type=row["name"],
            limits=TypeLimits() if row["workflow_type"] is None else read_limits(row),
            open_runs=opened.get(row["name"], 0),
        )
        for row in rows
    ]
    return Rows(tuple(reversed(found) if back else found), more)


def _depths(database: Database, namespace: str, workflow_type: str, cap: int) -> list[QueueDepth]:
    found: list[QueueDepth] = []
    for name in [workflow_type] if workflow_type else _types(database, namespace):
        for version, waiting, oldest_since in database.rows("queue_depths", (namespace, name, cap)):
            depth = QueueDepth(workflow_type=name, version=version, waiting=waiting, oldest_since=oldest_since)
            found.append(depth)
    return found


def _types(database: Database, namespace: str) -> list[str]:
    """With pending runs, from one to the next in the index."""
    found: list[str] = []
    row = database.row("type_from", (namespace, ""))
    while row is not None and len(found) < _MOST_TYPES:
        found.append(row[0])
        row = database.row("type_from", (namespace, f"{row[0]}\x01"))
    return found


def _pressure(database: Database, namespace: str, workflow_type: str, key: str) -> Pressure | None:
    limits = _get(database, namespace, workflow_type)
    state = database.row("type_state", (namespace, workflow_type))
    given = {"namespace": namespace, "workflow_type": workflow_type, "key": key}
    held = database.row("type_pressure", given)
    if limits is None or state is None or held is None:
        return None
    of_key = database.row("key_rate", (namespace, workflow_type, key))
    return Pressure(
        limits=limits,
        running=held[0],
        running_of_key=held[1],
        holder_of_key=held[2] or "",
        begins_at=begins_at(limits, state[0], of_key[0] if of_key else 0),
    )

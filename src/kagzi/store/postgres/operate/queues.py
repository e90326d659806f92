"""The verbs about workflow types as queues, each on its connection."""

from collections.abc import Sequence

from ....core.pages.cursor import Cursor
from ....core.records import Rows
from ....core.times import Timestamp
from ....core.workflow_types.queues import Pressure, QueueDepth, TypeLimits, WorkflowTypeRecord, begins_at
from ...rows import read_limits
from ..connection.connections import Links
from ..run.pages import read_page


class QueueDesk(Links):
    """Keeps `store.protocol.QueueVerbs`."""

    async def get_type_limits(self, namespace: str, workflow_type: str) -> TypeLimits | None:
        async with self._readers.use(confirm=False) as session:
            rows = await session.read("get_type_limits", namespace=namespace, workflow_type=workflow_type)
        return read_limits(rows[0]) if rows else None

    async def put_type_limits(self, namespace: str, workflow_type: str, limits: TypeLimits, now: Timestamp) -> None:
        async with self._questions.use() as session, session.transaction():
            await session.read("create_namespaces", namespaces=[namespace], now=now)
            rows = await session.read("get_type_limits", namespace=namespace, workflow_type=workflow_type)
            if rows and rows[0]["starts_per_second_per_key"] != limits.starts_per_second_per_key:
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

    async def list_workflow_types(
        self, namespace: str, cursor: Cursor | None, limit: int, *, workflow_type: str = "", count_cap: int
    ) -> Rows[WorkflowTypeRecord]:
        back = cursor is not None and cursor.direction == "prev"
        async with self._scan(namespace) as session:
            rows, more = await read_page(
                session,
                "list_types_before" if back else "list_types_after",
                limit,
                namespace=namespace,
                cursor=None if cursor is None else cursor.id,
                workflow_type=workflow_type or None,
                limit=limit + 1,
                count_cap=count_cap,
            )
        found = [
            WorkflowTypeRecord(
                namespace=namespace,
                workflow_type=row["name"],
                limits=TypeLimits() if row["workflow_type"] is None else read_limits(row),
                open_runs=row["open_runs"],
            )
            for row in rows
        ]
        return Rows(tuple(reversed(found) if back else found), more)

    async def queue_depths(self, namespace: str, workflow_type: str, *, cap: int) -> Sequence[QueueDepth]:
        async with self._scan(namespace) as session:
            rows = await session.read("queue_depths", namespace=namespace, workflow_type=workflow_type or None, cap=cap)
        return [
            QueueDepth(
                workflow_type=row["workflow_type"],
                version=row["version"],
                waiting=row["waiting"],
                oldest_since=row["oldest_since"],
            )
            for row in rows
        ]

    async def type_pressure(self, namespace: str, workflow_type: str, key: str) -> Pressure | None:
        async with self._readers.use(confirm=False) as session:
            rows = await session.read("type_pressure", namespace=namespace, workflow_type=workflow_type, key=key)
        if not rows:
            return None
        row = rows[0]
        limits = read_limits(row)
        return Pressure(
            limits=limits,
            running=row["runs"],
            running_of_key=row["of_key"],
            holder_of_key=row["holder"] or "",
            begins_at=begins_at(limits, row["next_start_at"], row["key_next_start_at"] or 0),
        )

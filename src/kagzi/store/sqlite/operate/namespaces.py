"""Deletes namespaces. The other verbs about them are shared: `store/operate/namespaces`."""

from ....core.keys.audit import AuditEntry
from ....core.times import Timestamp
from ...operate.audit import audit_values
from ...operate.namespaces import Namespaces
from ...protocol.namespaces import Deletion
from ..connection.connections import Connections
from ..write.fast_path import Writer


class SqliteNamespaces(Namespaces, Connections):
    """Implements `store.protocol.NamespaceVerbs`."""

    async def delete_namespace(
        self, namespace: str, now: Timestamp, cap: int, *, audit: AuditEntry | None = None
    ) -> Deletion | None:
        return await self._change(_delete_namespace, namespace, now, cap, audit)


def _delete_namespace(
    writer: Writer, namespace: str, now: Timestamp, cap: int, audit: AuditEntry | None
) -> Deletion | None:
    """The only writer decides at once: no start can be in progress."""
    database = writer.database
    before = database.records("get_namespace", {"namespace": namespace})
    if not before:
        return None
    open_runs = database.row("count_open_runs", (namespace, cap))
    schedules = database.row("count_enabled_schedules", {"namespace": namespace, "cap": cap})
    assert open_runs is not None
    assert schedules is not None
    if open_runs[0] or schedules[0]:
        return Deletion(granted=False, open_runs=open_runs[0], schedules=schedules[0])
    database.run("grant_deletion", {"now": now, "namespace": namespace})
    if audit is not None and before[0]["deleting_at"] is None:
        database.run("insert_audit", audit_values(audit))
    writer.namespaces.forget(namespace)
    return Deletion(granted=True)

"""The verbs about namespaces, each on its connection."""

from collections.abc import Collection

from ....core.pages.cursor import Cursor
from ....core.records import NamespaceRecord, Rows
from ....core.times import Timestamp
from ...protocol.namespaces import Deletion, Measured, NamespaceChores
from ..connection.connections import Links
from . import namespace_rows as namespaces


class NamespaceDesk(Links):
    """Keeps `store.protocol.NamespaceVerbs`."""

    async def get_namespace(self, namespace: str) -> NamespaceRecord | None:
        async with self._readers.use(confirm=False) as session:
            return await namespaces.get_namespace(session, namespace)

    async def list_namespaces(self, cursor: Cursor | None, limit: int) -> Rows[NamespaceRecord]:
        async with self._scan("") as session:
            return await namespaces.list_namespaces(session, cursor, limit)

    async def put_namespace(self, record: NamespaceRecord, now: Timestamp, *, new: bool = False) -> bool:
        async with self._questions.use() as session:
            return await namespaces.put_namespace(session, record, now, new=new)

    async def update_namespace(self, record: NamespaceRecord, fields: Collection[str]) -> NamespaceRecord | None:
        async with self._questions.use() as session:
            return await namespaces.update_namespace(session, record, fields)

    async def delete_namespace(self, namespace: str, now: Timestamp, cap: int) -> Deletion | None:
        async with self._questions.use() as session:
            return await namespaces.delete_namespace(session, namespace, now, cap)

    async def namespace_chores(self, now: Timestamp, measured_until: Timestamp) -> NamespaceChores:
        async with self._questions.use(confirm=False) as session:
            return await namespaces.namespace_chores(session, now, measured_until)

    async def purge_namespace(self, namespace: str, limit: int) -> bool:
        async with self._questions.use(confirm=False) as session:
            return await namespaces.purge_namespace(session, namespace, limit)

    async def measure_runs(self, namespace: str, after: Cursor | None, limit: int) -> Measured:
        async with self._scan(namespace) as session:
            return await namespaces.measure_runs(session, namespace, after, limit)

    async def note_stored_bytes(self, namespace: str, stored_bytes: int, now: Timestamp) -> None:
        async with self._questions.use(confirm=False) as session:
            await namespaces.note_stored_bytes(session, namespace, stored_bytes, now)

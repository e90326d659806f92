"""The writer's cache of namespaces."""

import msgspec

from ....core.records import NamespaceRecord
from ....core.times import Timestamp
from ...rows import read_namespace
from ..connection.connection import Database

_MOST_KEPT = 10_000


class Namespaces:
    """Cached by name, valid because there is only one writer. A rollback clears the cache."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[str, NamespaceRecord] = {}
        self.get = self._known.get

    def forget_all(self) -> None:
        self._known.clear()

    def ensure(self, namespace: str, now: Timestamp) -> NamespaceRecord:
        """Its record; creates the namespace if it does not exist."""
        record = self.find(namespace)
        if record is None:
            self._database.run("create_namespace", {"namespace": namespace, "now": now})
            record = self._keep(NamespaceRecord(namespace=namespace, created_at=now))
        return record

    def find(self, namespace: str) -> NamespaceRecord | None:
        record = self._known.get(namespace)
        if record is None and (row := self._database.record("get_namespace", {"namespace": namespace})) is not None:
            return self._keep(read_namespace(row))
        return record

    def _keep(self, record: NamespaceRecord) -> NamespaceRecord:
        if len(self._known) >= _MOST_KEPT:
            self._known.clear()
        self._known[record.namespace] = record
        return record

    def forget(self, namespace: str) -> None:
        self._known.pop(namespace, None)

    def note_start(self, record: NamespaceRecord, next_start_at: Timestamp) -> None:
        self._database.run("note_start", (next_start_at, record.namespace))
        self._keep(msgspec.structs.replace(record, next_start_at=next_start_at))

"""Tenants: what the writer remembers of them, and their rows."""

import msgspec

from ....core.records import NamespaceRecord
from ....core.times import Timestamp
from ...rows import read_namespace, write_json
from ..connection.connection import Database

_MOST_KEPT = 10_000


class Namespaces:
    """Tenants the only writer has met, by name. A rollback forgets them all."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[str, NamespaceRecord] = {}
        self.get = self._known.get

    def forget_all(self) -> None:
        self._known.clear()

    def ensure(self, namespace: str, now: Timestamp) -> NamespaceRecord:
        """Its record; it comes into being if it was not there."""
        record = self.find(namespace)
        if record is None:
            self._database.run("ensure_namespace", (namespace, now))
            record = self._keep(NamespaceRecord(namespace=namespace, created_at=now))
        return record

    def find(self, namespace: str) -> NamespaceRecord | None:
        record = self._known.get(namespace)
        if record is None and (found := find_namespace(self._database, namespace)) is not None:
            return self._keep(found)
        return record

    def _keep(self, record: NamespaceRecord) -> NamespaceRecord:
        if len(self._known) >= _MOST_KEPT:
            self._known.clear()
        self._known[record.namespace] = record
        return record

    def forget(self, namespace: str) -> None:
        self._known.pop(namespace, None)

    def put(self, record: NamespaceRecord, now: Timestamp) -> None:
        self.forget(record.namespace)
        self._database.run(
            "put_namespace",
            (
                record.namespace,
                record.enabled,
                record.created_at or now,
                record.open_runs_limit,
                record.running_runs_limit,
                record.starts_per_second_limit,
                record.stored_bytes_limit,
                record.sessions_limit,
                record.schedules_limit,
                write_json(record.retention_seconds) if record.retention_seconds else None,
            ),
        )

    def note_start(self, record: NamespaceRecord, next_start_at: Timestamp) -> None:
        self._database.run("note_start", (next_start_at, record.namespace))
        self._keep(msgspec.structs.replace(record, next_start_at=next_start_at))


def find_namespace(database: Database, namespace: str) -> NamespaceRecord | None:
    row = database.record("get_namespace", (namespace,))
    return None if row is None else read_namespace(row)

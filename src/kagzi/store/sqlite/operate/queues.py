"""Counts waiting runs. The other verbs about queues are shared: `store/operate/queues`."""

from collections.abc import Sequence

from ....core.workflow_types.queues import QueueDepth
from ...operate.queues import Queues
from ..connection.connection import Database
from ..connection.connections import Connections

_MOST_TYPES = 1_000


class SqliteQueues(Queues, Connections):
    """Implements `store.protocol.QueueVerbs`."""

    async def queue_depths(self, namespace: str, workflow_type: str, *, cap: int) -> Sequence[QueueDepth]:
        return await self._scan(namespace, _depths, namespace, workflow_type, cap)


def _depths(database: Database, namespace: str, workflow_type: str, cap: int) -> list[QueueDepth]:
    return [
        QueueDepth(workflow_type=name, version=version, waiting=waiting, oldest_since=oldest_since)
        for name in ([workflow_type] if workflow_type else _types(database, namespace))
        for version, waiting, oldest_since in database.rows("queue_depths", (namespace, name, cap))
    ]


def _types(database: Database, namespace: str) -> list[str]:
    """The types with pending runs, found by skipping through the index."""
    types: list[str] = []
    row = database.row("type_from", (namespace, ""))
    while row is not None and len(types) < _MOST_TYPES:
        types.append(row[0])
        row = database.row("type_from", (namespace, f"{row[0]}\x01"))
    return types

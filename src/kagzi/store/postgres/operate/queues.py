"""Counts waiting runs. The other verbs about queues are shared: `store/operate/queues`."""

from collections.abc import Sequence

from ....core.workflow_types.queues import QueueDepth
from ...operate.queues import Queues
from ..connection.connections import Connections


class PostgresQueues(Queues, Connections):
    """Implements `store.protocol.QueueVerbs`."""

    async def queue_depths(self, namespace: str, workflow_type: str, *, cap: int) -> Sequence[QueueDepth]:
        async with self._scan(namespace) as session:
            rows = await session.read("queue_depths", namespace=namespace, workflow_type=workflow_type or None, cap=cap)
        return [QueueDepth(**row) for row in rows]

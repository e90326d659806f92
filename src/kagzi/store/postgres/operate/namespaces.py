"""Deletes namespaces. The other verbs about them are shared: `store/operate/namespaces`."""

import asyncio

from ....core.errors import Unavailable
from ....core.keys.audit import AuditEntry
from ....core.times import Timestamp
from ...operate.audit import note_audit
from ...operate.namespaces import Namespaces, get_namespace
from ...protocol.namespaces import Deletion
from ..connection.connection import Session
from ..connection.connections import Connections

_WRITERS_TIMEOUT_S = 10.0
_WRITERS_PAUSE_S = 0.01


class PostgresNamespaces(Namespaces, Connections):
    """Implements `store.protocol.NamespaceVerbs`."""

    async def delete_namespace(
        self, namespace: str, now: Timestamp, cap: int, *, audit: AuditEntry | None = None
    ) -> Deletion | None:
        async with self._questions.use() as session:
            return await _delete_namespace(session, namespace, now, cap, audit)


async def _delete_namespace(
    session: Session, namespace: str, now: Timestamp, cap: int, audit: AuditEntry | None
) -> Deletion | None:
    """Disable the namespace, wait for the transactions that may not have seen that, then count what is open. Starts do
    not lock the namespace, so only the end of their transactions shows what they wrote."""
    before = await get_namespace(session, namespace)
    if before is None:
        return None
    rows = await session.write("request_deletion", namespace=namespace, now=now)
    if not rows or rows[0]["purging"]:
        return Deletion(granted=True)
    await _writers_gone(session)
    async with session.transaction():
        if not await session.read("lock_namespace", namespace=namespace):
            return None
        [open_runs] = await session.read("count_open_runs", namespace=namespace, limit=cap)
        [schedules] = await session.read("count_enabled_schedules", namespace=namespace, cap=cap)
        if not open_runs["runs"] and not schedules["schedules"]:
            await session.read("grant_deletion", namespace=namespace)
            await note_audit(session, audit)
            return Deletion(granted=True)
        await session.read("refuse_deletion", namespace=namespace, enabled=before.enabled)
    return Deletion(granted=False, open_runs=open_runs["runs"], schedules=schedules["schedules"])


async def _writers_gone(session: Session) -> None:
    """Returns when all transactions have ended that had written runs at the time of the call."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _WRITERS_TIMEOUT_S
    waiting = {row["writer"] for row in await session.read("writers_of_runs")}
    while waiting:
        if loop.time() > deadline:
            raise Unavailable("transactions that began before the deletion have not ended yet. Try again.")
        await asyncio.sleep(_WRITERS_PAUSE_S)
        waiting &= {row["writer"] for row in await session.read("writers_of_runs")}

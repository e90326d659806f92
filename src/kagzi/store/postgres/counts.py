"""How long lists are."""

from ...core.counting import Counted
from ...core.ids import is_uuid
from .links import Links
from .rows import CODE_OF_WORKER_STATUS


class ListCounts(Links):
    """Keeps `store.protocol.CountVerbs`."""

    async def count_rows(self, what: Counted, cap: int) -> int:
        if what.rows == "steps" and not is_uuid(what.key):
            return 0
        async with self._scan(what.namespace) as session:
            [row] = await session.read(f"total_{what.rows}", *_parameters(what), cap)
        total: int = row["total"]
        return total


def _parameters(what: Counted) -> tuple[object, ...]:
    match what.rows:
        case "namespaces":
            return ()
        case "bulk_operations":
            return (what.namespace,)
        case "steps":
            return (what.namespace, what.key, what.step_name or None)
        case "workers":
            status = None if what.status is None else CODE_OF_WORKER_STATUS[what.status]
            return (what.namespace, what.key or None, status, what.alive_since)
        case _:
            return (what.namespace, what.key or None)

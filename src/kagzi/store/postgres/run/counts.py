"""How long lists are."""

from ....core.ids import is_uuid
from ....core.pages.counting import Counted
from ....core.states import CODE_OF_WORKER_STATUS
from ..connection.connections import Connections

_KEYS = {"schedule_fires": "schedule_id", "worker_events": "worker_id"}


class ListCounts(Connections):
    """Keeps `store.protocol.CountVerbs`."""

    async def count_rows(self, what: Counted, cap: int) -> int:
        if what.rows == "steps" and not is_uuid(what.key):
            return 0
        async with self._scan(what.namespace) as session:
            [row] = await session.read(f"total_{what.rows}", cap=cap, **_parameters(what))
        total: int = row["total"]
        return total


def _parameters(what: Counted) -> dict[str, object]:
    match what.rows:
        case "namespaces":
            return {}
        case "bulk_operations":
            return {"namespace": what.namespace}
        case "steps":
            return {"namespace": what.namespace, "run_id": what.key, "step_name": what.step_name or None}
        case "workers":
            status = None if what.status is None else CODE_OF_WORKER_STATUS[what.status]
            return {
                "namespace": what.namespace,
                "workflow_type": what.key or None,
                "status": status,
                "alive_since": what.alive_since,
            }
        case _:
            return {"namespace": what.namespace, _KEYS.get(what.rows, "workflow_type"): what.key or None}

"""The number of rows in a list."""

from ...core.access import EVERY_NAMESPACE
from ...core.ids import is_uuid
from ...core.pages.counting import Counted
from ..sessions import Session, Sessions, scan

_KEYS = {"schedule_fires": "schedule_id", "worker_events": "worker_id"}


async def _count(session: Session, what: Counted, cap: int) -> int:
    if what.rows in ("steps", "forgotten_steps", "step_logs") and not is_uuid(what.key):
        return 0
    [row] = await session.read(f"total_{what.rows}", cap=cap, **_parameters(what))
    total: int = row["total"]
    return total


def _parameters(what: Counted) -> dict[str, object]:
    match what.rows:
        case "namespaces":
            return {}
        case "audit" | "keys":
            return {"namespace": what.namespace, "everywhere": what.namespace == EVERY_NAMESPACE}
        case "bulk_operations":
            return {"namespace": what.namespace}
        case "steps" | "forgotten_steps":
            return {"namespace": what.namespace, "run_id": what.key, "step_name": what.step_name or None}
        case "step_logs":
            return {"namespace": what.namespace, "run_id": what.key, "step_id": what.step_name or None}
        case "workers":
            return {
                "namespace": what.namespace,
                "workflow_type": what.key or None,
                "status": None if what.status is None else what.status.value,
                "alive_since": what.alive_since,
            }
        case _:
            return {"namespace": what.namespace, _KEYS.get(what.rows, "workflow_type"): what.key or None}


class ListCounts(Sessions):
    """Implements `store.protocol.CountVerbs`."""

    count_rows = scan(_count)

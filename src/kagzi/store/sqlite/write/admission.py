"""Admission of starts to types with limits: if the type is full, the new run is refused or the oldest is evicted."""

from ....core.limits import CLEANUP_MS, EVICTED_AT_ONCE
from ....core.records import RunKey
from ....core.run.commands import StartRun
from ....core.run.outcomes import Refused
from ....core.times import US_PER_MS
from ....core.workflow_types.admission import begins_at_once, queues_of, type_full, why_evicted
from ..run.control import cancel_run
from .fast_path import WritePlan


def refuse(plan: WritePlan, command: StartRun, *, leaving: str | None = None) -> Refused | None:
    """Refuses the start if its type is full and rejects. `leaving`: a run that ends for this one and does not count."""
    for key, limit in _queues(plan, command, "reject"):
        if _is_full(plan, command, key, limit, leaving):
            return type_full(command.workflow_type, key, limit)
    return None


def evict(plan: WritePlan, command: StartRun) -> None:
    """Request cancellation of the oldest runs for one that begins at once. The plan must be flushed before."""
    for key, limit in _queues(plan, command, "cancel-oldest"):
        statement = "oldest_open_of_type" if key is None else "oldest_open_of_key"
        parameters = _parameters(command, key) | {"limit": limit + EVICTED_AT_ONCE}
        oldest = plan.database.rows(statement, parameters)
        for (run_id,) in oldest[: max(0, len(oldest) - limit + 1)]:
            run, reason = RunKey(command.run.namespace, run_id), why_evicted(command, key, limit)
            cancel_by = plan.now + CLEANUP_MS * US_PER_MS
            _, effects = cancel_run(plan.writer, run, reason, plan.now, cancel_by)
            plan.effects.append(effects)


def _queues(plan: WritePlan, command: StartRun, when_full: str) -> list[tuple[str | None, int]]:
    limits = plan.writer.types.limits(command.run.namespace, command.workflow_type)
    if limits is None or limits.when_full != when_full or not begins_at_once(command, plan.now):
        return []
    return queues_of(command, limits)


def _is_full(plan: WritePlan, command: StartRun, key: str | None, limit: int, leaving: str | None) -> bool:
    parameters = _parameters(command, key) | {"limit": limit + 1, "leaving": leaving}
    counted = plan.database.row("count_in_queue", parameters)
    return counted is not None and counted[0] >= limit


def _parameters(command: StartRun, key: str | None) -> dict[str, object]:
    return {"namespace": command.run.namespace, "workflow_type": command.workflow_type, "key": key}

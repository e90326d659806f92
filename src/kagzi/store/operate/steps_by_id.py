"""Finds the runs of a step id without reading all runs."""

from ...core.limits import SEARCHED_RUNS
from ..sessions import Session


async def runs_with_step(session: Session, namespace: str, step_id: str) -> tuple[str, ...]:
    rows = await session.read("runs_with_step", namespace=namespace, step_id=step_id, searched=SEARCHED_RUNS)
    return tuple(row["run_id"] for row in rows)

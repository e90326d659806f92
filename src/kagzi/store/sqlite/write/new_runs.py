"""Adds a new run to a plan."""

from ....core.run.commands import StartRun
from ....core.run.outcomes import Started
from ....core.states import RUN_STATUS_OF_CODE
from ...rows import new_run_row
from ..statements import row_of
from .fast_path import WritePlan
from .fences import Fence

_run_row = row_of("insert_runs")


def create_run(plan: WritePlan, command: StartRun, *, leased: bool) -> Started:
    """Add the run's rows to the plan. In a type with limits, runs are leased only by claims, which count."""
    now, run = plan.now, command.run
    limits = plan.writer.types.limits(run.namespace, command.workflow_type)
    leased = leased and limits is None
    row = new_run_row(command, now, leased=leased)
    row["request_id"] = command.request_id or None
    row["created_at"] = now
    row["started_at"] = now if row["lease"] else None
    if limits is not None and limits.by_key:  # if keys are served in turn, runs without one share an empty key
        row["concurrency_key"] = command.concurrency_key
    assignment = command.assignment if row["lease"] else None
    plan.add_run(command, _run_row(row))
    if assignment is not None:
        fence = Fence(
            run.run_id,
            run.namespace,
            1,
            assignment.nonce,
            0,
            command.deadline_at,
            assignment.lease_until,
            assignment.worker_id,
        )
        plan.fences.put(fence)
    return Started(run.run_id, command.workflow_id, RUN_STATUS_OF_CODE[row["status"]], now)

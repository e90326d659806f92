"""Logs runs that the server itself fails or takes from their workers: deadlines, lost leases, overdue steps.

The worker that executes user code logs what it raises. If many runs are affected at once, the first ones are named and
the rest are counted.
"""

import logging
from collections.abc import Sequence

from ...core.records import RunEnd
from ...core.run.commands import FailStep
from ...core.run.outcomes import Outcome, RetryScheduled
from ...core.states import RunStatus
from ...store.protocol import ExpiredLease, Fired

logger = logging.getLogger("kagzi.engine")

NAMED = 10
"""How many of the runs that fired together are named."""


def log_fired(fired: Fired, ended: Sequence[RunEnd]) -> None:
    _log_failed([end for end in ended if end.status is RunStatus.FAILED])
    _log_quarantined([each for each in fired.expired if each.problem is not None])
    _log_expired([each for each in fired.expired if each.problem is None])


def log_overdue(command: FailStep, outcome: Outcome) -> None:
    """The server failed an attempt whose worker had not reported in time."""
    retried = isinstance(outcome, RetryScheduled)
    logger.log(
        logging.WARNING if retried else logging.ERROR,
        "run %s of namespace %s: step %r failed, attempt %d: %s. %s",
        command.run.run_id,
        command.run.namespace,
        command.step_id,
        command.attempt,
        "it is retried" if retried else "not retried",
        command.error.message,
        extra={
            "namespace": command.run.namespace,
            "run_id": command.run.run_id,
            "step": command.step_id,
            "attempt": command.attempt,
        },
    )


def _log_failed(endings: Sequence[RunEnd]) -> None:
    for end in endings[:NAMED]:
        logger.error(
            "run %s of namespace %s failed: %s",
            end.run.run_id,
            end.run.namespace,
            "" if end.error is None else end.error.message,
            extra={"namespace": end.run.namespace, "run_id": end.run.run_id},
        )
    if len(endings) > NAMED:
        logger.error("%d more runs failed at their deadlines", len(endings) - NAMED)


def _log_quarantined(leases: Sequence[ExpiredLease]) -> None:
    for lease in leases[:NAMED]:
        logger.error(
            "%s is quarantined: %s",
            _name(lease),
            "" if lease.problem is None else lease.problem.message,
            extra=_fields(lease),
        )
    if len(leases) > NAMED:
        logger.error("%d more runs are quarantined. See: kagzi list --status paused", len(leases) - NAMED)


def _log_expired(leases: Sequence[ExpiredLease]) -> None:
    for lease in leases[:NAMED]:
        logger.warning(
            "%s lost its worker, which did not renew the lease (%d in a row): another worker takes it over",
            _name(lease),
            lease.times,
            extra=_fields(lease),
        )
    if len(leases) > NAMED:
        logger.warning("%d more runs lost their workers", len(leases) - NAMED)


def _name(lease: ExpiredLease) -> str:
    run = lease.leased.run
    own_id = f" {lease.workflow_id!r}" if lease.workflow_id != run.run_id else ""
    return f"{lease.workflow_type}{own_id}, run {run.run_id} of namespace {run.namespace},"


def _fields(lease: ExpiredLease) -> dict[str, str]:
    return {
        "namespace": lease.leased.run.namespace,
        "run_id": lease.leased.run.run_id,
        "workflow_id": lease.workflow_id,
        "workflow_type": lease.workflow_type,
    }

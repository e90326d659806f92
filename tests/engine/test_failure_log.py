"""What a server says of runs that it fails, or takes from their workers: each by name, with what to do, and never
without end."""

import logging

import pytest

from kagzi.core.error_details import ErrorCode, ErrorDetail, ErrorKind
from kagzi.core.records import Lease, RunEnd, RunKey, RunLease
from kagzi.core.run.commands import FailStep
from kagzi.core.run.outcomes import Outcome, RetryScheduled, StepFailed
from kagzi.core.states import RunStatus
from kagzi.engine.background.failure_log import NAMED, log_fired, log_overdue
from kagzi.store.protocol import ExpiredLease, Fired

PROBLEM = ErrorDetail(kind=ErrorKind.LOST, message="the worker was lost 3 times. Resume it: kagzi resume r-1")
LATE = ErrorDetail(code=ErrorCode.TIMEOUT, message="the run did not end by its deadline")


def expired(number: int, problem: ErrorDetail | None = None) -> ExpiredLease:
    run = RunKey("shop", f"r-{number}")
    leased = RunLease(run, Lease(1, 1))
    return ExpiredLease(
        leased=leased, workflow_id=f"order-{number}", workflow_type="checkout", times=3, problem=problem
    )


def test_lost_quarantined_and_late_runs_are_named(caplog: pytest.LogCaptureFixture) -> None:
    failed = RunEnd(run=RunKey("shop", "r-3"), status=RunStatus.FAILED, error=LATE)
    cancelled = RunEnd(run=RunKey("shop", "r-4"), status=RunStatus.CANCELLED, error=None)
    log_fired(Fired((expired(1, PROBLEM), expired(2))), (failed, cancelled))
    assert [(each.levelname, each.getMessage()) for each in caplog.records] == [
        ("ERROR", "run r-3 of namespace shop failed: the run did not end by its deadline"),
        ("ERROR", f"checkout 'order-1', run r-1 of namespace shop, is quarantined: {PROBLEM.message}"),
        (
            "WARNING",
            (
                "checkout 'order-2', run r-2 of namespace shop, lost its worker, which did not renew the lease (3 in "
                "a row): "
                "another worker takes it over"
            ),
        ),
    ]
    fields = {"run_id": "r-1", "workflow_id": "order-1", "workflow_type": "checkout"}
    assert vars(caplog.records[1]).items() >= fields.items()


def test_of_many_the_first_are_named_and_the_rest_counted(caplog: pytest.LogCaptureFixture) -> None:
    log_fired(Fired(tuple(map(expired, range(500)))), ())
    assert len(caplog.records) == NAMED + 1
    assert caplog.records[-1].getMessage() == f"{500 - NAMED} more runs lost their workers"


@pytest.mark.parametrize(
    ("outcome", "level", "what_next"),
    [
        (RetryScheduled(1, 1, 2, 1), logging.WARNING, "it is retried"),
        (StepFailed(1, 1, 3, LATE), logging.ERROR, "not retried"),
    ],
)
def test_an_attempt_that_the_server_failed(
    caplog: pytest.LogCaptureFixture, outcome: Outcome, level: int, what_next: str
) -> None:
    command = FailStep(run=RunKey("shop", "r-1"), lease=Lease(1, 1), step_id="charge", attempt=2, error=LATE)
    log_overdue(command, outcome)
    [record] = caplog.records
    assert record.levelno == level
    assert record.getMessage().startswith(
        f"run r-1 of namespace shop: step 'charge' failed, attempt 2: {what_next}. the run"
    )

"""Steps whose worker should have reported long ago. The SDK enforces a step's timeout; after a grace period the server
does too, so that a worker in another language, or one that hangs, cannot hold a run forever.

Overdue steps are found when a lease is renewed. The attempt is then failed on behalf of the worker, through the journal
like the worker's own reports: whichever report comes second is refused.
"""

from collections.abc import Sequence
from contextlib import suppress

from ...core.effects import Effects, LeaseNotice
from ...core.error_details import ErrorCode, ErrorDetail, ErrorKind
from ...core.errors import KagziError
from ...core.run.commands import FailStep
from ...core.run.outcomes import Outcome, RetryScheduled, StepFailed
from ...core.times import US_PER_MS, US_PER_S
from ...store.protocol import Overdue
from ..background.failure_log import log_overdue
from ..commit.dispatcher import Dispatcher
from ..commit.journal import Journal


class OverdueSteps:
    def __init__(self, *, journal: Journal, dispatcher: Dispatcher) -> None:
        self._journal = journal
        self._dispatcher = dispatcher

    def take(self, overdue: Sequence[Overdue]) -> None:
        """Fails these attempts; their retry policies decide what follows."""
        by_namespace: dict[str, list[Overdue]] = {}
        for each in overdue:
            by_namespace.setdefault(each.leased.run.namespace, []).append(each)
        for attempts in by_namespace.values():
            self._fail(attempts)

    def _fail(self, attempts: list[Overdue]) -> None:
        commands = [_failure(each) for each in attempts]

        def answered(answers: list[tuple[int, Outcome]]) -> None:
            for place, outcome in answers:
                if isinstance(outcome, (RetryScheduled, StepFailed)):
                    log_overdue(commands[place], outcome)
                    notice = LeaseNotice(attempts[place].leased, "result")
                    self._dispatcher.dispatch(Effects(notices=(notice,)))

        # If the queue is full, or the server stops, they are found again with the next heartbeat.
        with suppress(KagziError):
            self._journal.submit_many(list(enumerate(commands)), answered)


def _failure(overdue: Overdue) -> FailStep:
    seconds = overdue.timeout_ms * US_PER_MS / US_PER_S
    return FailStep(
        run=overdue.leased.run,
        lease=overdue.leased.lease,
        step_id=overdue.step_id,
        attempt=overdue.attempt,
        error=ErrorDetail(
            code=ErrorCode.TIMEOUT,
            kind=ErrorKind.TIMEOUT,
            type="TimeoutError",
            message=f"step {overdue.step_id!r} has a timeout of {seconds:g} s, and its worker did not report in time",
            subject="step",
            subject_id=overdue.step_id,
        ),
    )

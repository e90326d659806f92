"""Operations about a run's steps, and the handling of their answers."""

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...core.errors import REASON, RequestError
from ...v1 import common_pb2 as common
from ...v1 import worker_pb2 as pb
from ..workflow.workflow import Workflow
from .claim import Claim, error_of_refusal
from .delivery import Delivery
from .ending import Ending
from .idle.tasks import RunTasks
from .interruption import Interruption
from .ledger import Ledger
from .ports import Answer, CallControl
from .timed_waits import TimedWaits, is_open


@dataclass(slots=True, eq=False)
class Operations:
    _run: CallControl
    _claim: Claim
    _tasks: RunTasks
    _ledger: Ledger
    _interruption: Interruption
    _delivery: Delivery
    _waits: TimedWaits
    _workflow: Workflow[Any, Any]
    _ending: Ending

    def ask(self, step_id: str) -> "tuple[pb.Operation, asyncio.Future[Answer]]":
        """A new operation about a step, and the future of its answer. Results are set in the order of their seqs."""
        claim = self._claim
        future: asyncio.Future[Answer] = claim.loop.create_future()
        claim.in_flight += 1
        return claim.port.send(partial(self._answered, step_id, future)), future

    def complete(self, step_id: str) -> "tuple[pb.Operation, bool, asyncio.Future[Answer]]":
        """As `ask`, for the completion of a step; also returns whether the operation includes its begin. See
        `RunPort.complete`."""
        claim = self._claim
        future: asyncio.Future[Answer] = claim.loop.create_future()
        claim.in_flight += 1
        return *claim.port.complete(step_id, partial(self._answered, step_id, future)), future

    def _answered(self, step_id: str, future: "asyncio.Future[Any]", answer: Answer) -> None:
        self._claim.in_flight -= 1
        self.deliver(step_id, future, answer)

    def deliver(self, step_id: str, future: "asyncio.Future[Any]", answer: Answer) -> None:
        """Deliver the answer to an operation about a step to the task that awaits the future."""
        delivery, detail = self._delivery, answer.detail
        delivery.restarting.discard(step_id)
        if detail is not None:
            kind = detail.WhichOneof("kind")
            if kind == "refused" and self._run.taken_away(detail.refused):
                return
            if kind in ("refused", "retry") or (kind == "timer" and is_open(detail.timer)):
                if not future.done():
                    self._tasks.idle.disturb()
                    future.set_result(answer)
                elif kind == "retry":
                    self._waits.give_up_retry(step_id, detail.retry.next_attempt)
                return
            if kind == "child":  # no result yet, but the code continues with it, in the order of seqs
                delivery.give(answer.seq, answer.at_us, future, answer)
                return
            if kind == "signal":
                self._ledger.know_signal(step_id, answer.seq)
                delivery.give(answer.seq, answer.at_us, future, answer)
                return
        self._ledger.know(step_id, answer.seq)
        delivery.give(answer.seq, answer.at_us, future, answer)

    def refused(self, refusal: common.ErrorDetail) -> BaseException:
        """The exception of a ctx call whose operation was refused. Such a refusal is not recorded: it follows from the
        arguments of the call or the number of steps, so replay gets it again."""
        if self._is_cancellation(refusal):
            return self._interruption.cancelled()
        error = error_of_refusal(refusal)
        return error if isinstance(error, RequestError) else self._run.fail_with(error)

    def _is_cancellation(self, refusal: common.ErrorDetail) -> bool:
        """In a cancelled run nothing new may begin, and what did not begin cannot end."""
        if refusal.code == common.ERROR_CODE_CANCELLED:
            self._interruption.cancel(refusal.metadata.get(REASON, ""))
            return True
        return self._interruption.cancelling and refusal.code == common.ERROR_CODE_PRECONDITION_FAILED

    def run_ahead(self, step_id: str) -> tuple[pb.Operation, bool] | None:
        """A completion whose result is used at once, because nothing else can happen in this run; and whether it
        includes the begin. None: not possible now.

        Nothing is begun or sent before it is acknowledged, except the end of the run, which is then sent with it.
        """
        claim = self._claim
        if len(self._tasks.all) != 1 or claim.in_flight or not self._run.can_proceed or not self._workflow.runs_ahead:
            return None
        claim.in_flight += 1
        claim.ahead = step_id
        self._run.hold_back()
        self._delivery.now_us = None
        return claim.port.complete(step_id, partial(self._ahead_answered, step_id))

    def _ahead_answered(self, step_id: str, answer: Answer) -> None:
        claim = self._claim
        claim.in_flight -= 1
        claim.ahead = ""
        if answer.detail is not None and (refusal := answer.refusal) is not None:
            if self._is_cancellation(refusal):
                self._run.refresh()
                self._interruption.raise_if_due()
            elif not self._run.taken_away(refusal):
                error = error_of_refusal(refusal)
                if isinstance(error, RequestError):
                    self._ending.replay_refused(step_id, error)
                else:
                    self._run.fail_with(error)
            return
        self._ledger.know(step_id, answer.seq)
        if self._delivery.now_us is None:
            self._delivery.now_us = answer.at_us
        self._run.refresh()
        if self._waits.by_id:
            self._tasks.idle.start()

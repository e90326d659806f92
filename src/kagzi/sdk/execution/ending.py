"""Ends a run on its worker: with an output, a failure, a cancellation, a problem that pauses it, or a release."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import msgspec

from ...core.checks.refused_requests import type_of_refusal
from ...core.error_details import ErrorCode, ErrorDetail, ErrorKind
from ...core.errors import ChildError, KagziError, RequestError, Unavailable
from ...core.records import Payload
from ...v1 import common_pb2 as common
from ...v1 import worker_pb2 as pb
from ...wire.common import read_error, write_error
from ..tracing.run_context import untraced_successor_context
from ..worker import failure_log
from ..worker.log_context import fields_of, name_of
from ..workflow.call_sites import name_usage
from ..workflow.codec import write_payload
from ..workflow.failures import describe, describe_end, leaves_of
from ..workflow.workflow import Workflow
from .claim import Claim, error_of_refusal
from .interruption import Interruption
from .ledger import Ledger
from .ports import Answer, RunLifecycle
from .state import RunState
from .throttled import Status

_End = pb.CompleteRunOperation | pb.FailRunOperation | pb.CancelRunOperation | pb.ContinueAsNewOperation

logger = logging.getLogger("kagzi.worker")


class ContinuedAsNew(BaseException):
    """Ends the function: the run continues as a new one. Not an Exception: `except Exception` must not catch it."""

    def __init__(self, input: Payload, version: str, step_id: str) -> None:
        super().__init__("the run continues as a new one")
        self.input = input
        self.version = version
        self.step_id = step_id  # of the record of a refusal


@dataclass(slots=True, eq=False)
class Ending:
    """The last operations of a run, and their answers."""

    _run: RunLifecycle
    _claim: Claim
    _ledger: Ledger
    _interruption: Interruption
    _status: Status
    _workflow: Workflow[Any, Any]
    _build_id: str
    _encoded: bool
    _refused: bool = field(init=False, default=False)  # whether the server has already refused an end

    def complete(self, output: Any) -> None:
        try:
            what = f"output of workflow {self._workflow.name!r}"
            payload = write_payload(self._workflow.output_codec, output, what=what)
        except RequestError as error:
            self.fail(error)
            return
        operation = self._end(self._ended(None)).complete_run
        operation.output.data = payload.data
        if payload.metadata:
            operation.output.metadata.update(payload.metadata)
        operation.after_step_id = self._claim.ahead
        if self._ledger.signals:
            self._name_open_waits(operation)

    def continue_as_new(self, new: ContinuedAsNew) -> None:
        operation = self._end(self._ended(None), refused=partial(self._not_continued, new.step_id)).continue_as_new
        operation.input.data = new.input.data
        if new.input.metadata:
            operation.input.metadata.update(new.input.metadata)
        operation.version = new.version
        stretch = self._run.stretch
        context = untraced_successor_context(self._claim.task) if stretch is None else stretch.successor_context()
        if context is not None:
            operation.context.data = context.data
        self._name_open_waits(operation)

    def fail_or_cancel(self, error: BaseException) -> None:
        """The function raised this error."""
        if not (self._interruption.cancelling and _stems_from_cancellation(error)):
            self.fail(error)
            return
        detail = ErrorDetail(
            code=ErrorCode.CANCELLED,
            kind=ErrorKind.CANCELLED,
            message=self._interruption.cancel_reason or "cancelled",
            subject="run",
        )
        operation = self._end(self._ended(detail)).cancel_run
        operation.error.CopyFrom(write_error(detail))
        self._name_open_waits(operation)

    def fail(self, error: BaseException) -> None:
        """Fail the run. Errors found by Kagzi itself (input, output, limits, divergence) are not retried."""
        for each in leaves_of(error):
            name_usage(each)
        detail = describe_end(error)
        if isinstance(error, KagziError) and not isinstance(error, Unavailable):
            detail = msgspec.structs.replace(detail, non_retryable=True)
        if isinstance(error, RequestError) and not detail.subject:
            detail = msgspec.structs.replace(
                detail, subject=error.subject, subject_id=error.subject_id, kind=ErrorKind.PERMANENT
            )
        operation = self._end(partial(self._log_failure, error, detail)).fail_run
        operation.error.CopyFrom(write_error(detail))
        operation.after_step_id = self._claim.ahead
        self._name_open_waits(operation)

    def _name_open_waits(self, operation: _End) -> None:
        """Signals that came for these waits and were not delivered stay unread, or go to the next run."""
        if self._ledger.signals:
            operation.open_waits.extend(self._ledger.signals)

    def _ended(self, error: ErrorDetail | None) -> "Callable[[Answer], None] | None":
        """The callback for when the end is recorded, for a trace."""
        stretch = self._run.stretch
        return None if stretch is None else lambda _: stretch.ended(error)

    def _log_failure(self, error: BaseException, detail: ErrorDetail, answer: Answer) -> None:
        if self._run.stretch is not None:
            self._run.stretch.ended(detail)
        retry_at_us = 0 if answer.detail is None else answer.detail.closed.retry_at_us
        retry_in_us = retry_at_us - self._claim.server_now_us() if retry_at_us else None
        failure_log.run_failed(self._claim.task, error, detail, retry_in_us, encoded=self._encoded)

    def _end(
        self,
        on_recorded: "Callable[[Answer], None] | None" = None,
        refused: Callable[[common.ErrorDetail], None] | None = None,
    ) -> pb.Operation:
        """`refused`: called for a refusal that is about this end; None: the run fails with it."""
        self._status.flush()
        self._run.advance(RunState.ENDING)
        return self._claim.port.send(partial(self._answered, on_recorded, refused))

    def _answered(
        self,
        on_recorded: "Callable[[Answer], None] | None",
        refused: Callable[[common.ErrorDetail], None] | None,
        answer: Answer,
    ) -> None:
        refusal = answer.refusal
        if refusal is None:
            if on_recorded is not None:
                on_recorded(answer)
            self._run.close()
            return
        error = error_of_refusal(refusal)
        if refusal.code == common.ERROR_CODE_CANCELLED:
            # The run did what a cancelled run may no longer do: the next worker gets the request and cleans up.
            self.release("it is to be cancelled")
        elif refusal.code == common.ERROR_CODE_INTERNAL:
            self.hand_back(refusal.message)
        elif refused is not None:
            refused(refusal)
        elif isinstance(error, RequestError) and not self._refused:
            self._refused = True  # the server refuses the output: fail the run with that
            self.fail(error)
        else:
            task = self._claim.task
            logger.error("%s: the server refused its end: %s", name_of(task), refusal.message, extra=fields_of(task))
            self._run.close()

    def _not_continued(self, step_id: str, refusal: common.ErrorDetail) -> None:
        """The function has ended: replay raises the refusal where it continues as a new run."""
        detail = read_error(refusal)
        self.record_refusal(step_id, msgspec.structs.replace(detail, type=type_of_refusal(detail.code)))
        self.release("it could not continue as a new run")

    def replay_refused(self, step_id: str, error: RequestError) -> None:
        """The result of a step was refused after the code has used it: replay raises that at the call."""
        if self._run.state is RunState.RUNNING:
            self.record_refusal(step_id, describe(error))
            self._run.release("the result of a step was refused")

    def record_refusal(self, step_id: str, error: ErrorDetail) -> None:
        """Record that the call with this id was refused."""
        begin = self._claim.port.announce().begin_step
        begin.step_id = step_id
        begin.name = step_id.rpartition("/")[2].partition("#")[0]
        failure = self._claim.port.send(_ignore).fail_step
        failure.step_id = step_id
        failure.error.CopyFrom(write_error(msgspec.structs.replace(error, non_retryable=True)))

    def pause(self, why: str, problem: ErrorDetail) -> None:
        """Pause the run until this problem is solved. `why`: the kind of problem."""
        failure_log.run_paused(self._claim.task, why, problem, encoded=self._encoded)
        operation = self._claim.port.send(self._paused).diverged
        operation.problem.CopyFrom(write_error(problem))
        operation.build_id = self._build_id

    def _paused(self, answer: Answer) -> None:
        refusal, task = answer.refusal, self._claim.task
        if refusal is not None:
            logger.error("%s could not be paused: %s", name_of(task), refusal.message, extra=fields_of(task))
        self._run.close()

    def release(self, reason: str) -> None:
        """Hand the run back."""
        self._claim.port.send(self._released).release.reason = reason

    def _released(self, answer: Answer) -> None:
        refusal = answer.refusal
        if refusal is not None:
            logger.warning("run %s could not be handed back: %s", self._claim.task.run_id, refusal.message)
        self._run.close()

    def hand_back(self, reason: str) -> None:
        """The server could not record an operation, through no fault of the run: hand it back to be tried again, even
        if it was the end of the run."""
        task = self._claim.task
        logger.error(
            "%s is handed back, since the server could not record what it does: %s",
            name_of(task),
            reason,
            extra=fields_of(task),
        )
        if self._run.state is RunState.ENDING:
            self.release(reason)
        else:
            self._run.release(reason)


def _ignore(_: Answer) -> None: ...


def _stems_from_cancellation(error: BaseException) -> bool:
    """Also true for the end of a child that was cancelled together with this run, whichever the code sees first."""
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        return all(_stems_from_cancellation(each) for each in group.exceptions)
    return isinstance(error, asyncio.CancelledError) or (isinstance(error, ChildError) and error.status == "cancelled")

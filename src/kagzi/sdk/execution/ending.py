"""How a run begins and ends: input, output, failure, cancellation."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import msgspec

from ...core.error_details import ErrorCode, ErrorDetail, ErrorKind
from ...core.errors import ChildError, InternalError, InvalidArgument, KagziError, LeaseLost, RequestError, Unavailable
from ...core.records import Payload
from ...v1 import common_pb2 as common
from ...v1 import worker_pb2 as pb
from ...wire.common import write_error
from ..worker import failure_log
from ..worker.log_context import fields_of, name_of
from ..worker.ports import Answer
from ..workflow.codec import read_payload, write_payload
from ..workflow.current import place
from ..workflow.failures import describe_end
from ..workflow.patches import ContinuedAsNew
from . import divergence
from . import teardown as unwinding
from .ledger import as_claimed
from .run_execution import Run
from .state import State

if TYPE_CHECKING:
    from ..workflow.context import Context

logger = logging.getLogger("kagzi.worker")

_NO_INPUT = (b"", b"null")


async def run_function(run: Run, context: "Context") -> None:
    """The workflow's own task: get the rest of the history, decode the input, call the function, record how it ended."""
    try:
        if run.task.history.has_more and not await _load_history(run):
            return
        arguments = _arguments(run)
        run.interruption.may_raise = True
        if run.task.cancel_requested:
            run.cancel(run.task.cancel_reason)
        if run.cancelling:
            run.quiet.start()
        if run.task.pause_requested:
            run.pause("")
        output = await run.workflow.fn(context, *arguments)
    except (GeneratorExit, KeyboardInterrupt):
        raise
    except ContinuedAsNew as new:
        _ended(run, partial(_send_continuation, run, new))
    except BaseException as error:  # noqa: BLE001  whatever leaves the function is how the run ends
        _ended(run, partial(_send_error, run, error))
    else:
        _ended(run, partial(_send_output, run, output))


async def _load_history(run: Run) -> bool:
    try:
        steps = await _fetch_history(run)
    except LeaseLost as error:
        run.abandon(str(error))
        return False
    except (Unavailable, InternalError) as error:
        logger.warning("%s: the rest of its history could not be read: %s", name_of(run), error, extra=fields_of(run))
        run.release("the history could not be read")
        return False
    as_claimed(steps, run.task.last_seq)
    run.ledger.add(steps)
    run.replaying = run.ledger.unreached > 0
    run.hinder()
    return True


async def _fetch_history(run: Run) -> Sequence[pb.HistoryStep]:
    """In a task that is none of the run's, and neither are those that gRPC makes in it: they would take the numbers of the code's
    own tasks, whose steps would then have other ids than are recorded."""

    async def fetch() -> Sequence[pb.HistoryStep]:
        return await run.port.fetch_history(run.task.history.next_after)

    variables = copy_context()
    variables.run(place.set, None)
    return await variables.run(run.loop.create_task, fetch())


def _arguments(run: Run) -> tuple[Any, ...]:
    """Raises InvalidArgument, naming the field, for an input that does not fit."""
    workflow, letter = run.workflow, run.task.input
    payload = Payload(letter.data, dict(letter.metadata) if letter.metadata else None)
    absent = not run.task.HasField("input") or (payload.data in _NO_INPUT and not payload.metadata)
    if not workflow.has_input:
        if absent:
            return ()
        raise InvalidArgument(f"workflow {workflow.name!r} takes no input, but got one.", field="input")
    if absent and workflow.input_is_optional:
        return ()
    if absent:
        payload = Payload(b"null")
    what = f"input of workflow {workflow.name!r}"
    return (read_payload(workflow.input_codec, payload, what=what, hook=run.services.hook if not absent else None),)


def _ended(run: Run, send: "partial[None]") -> None:
    if run.state is State.PARKING:  # something outside Kagzi woke it, a timeout for example
        run.parking.when_answered = partial(_ended, run, send)
        return
    if run.state is not State.RUNNING:
        return
    recorded = None if run.ledger.is_empty or run.cancelling else run.ledger.first_result()
    if recorded is not None:
        run.diverge(divergence.never_reached(run, recorded))
        return
    current = asyncio.current_task()
    if any(task is not current and not task.done() for task in run.tasks):
        # What is still open ends with the function, and records nothing more.
        run.unwind(send)
    else:
        send()


def _send_output(run: Run, output: Any) -> None:
    try:
        what = f"output of workflow {run.workflow.name!r}"
        payload = write_payload(run.workflow.output_codec, output, what=what, hook=run.services.hook)
    except RequestError as error:
        send_failure(run, error)
        return
    letter = _closing(run).complete_run
    letter.output.data = payload.data
    if payload.metadata:
        letter.output.metadata.update(payload.metadata)
    letter.after_step_id = run.ahead


def _send_continuation(run: Run, new: ContinuedAsNew) -> None:
    letter = _closing(run).continue_as_new
    letter.input.data = new.input.data
    if new.input.metadata:
        letter.input.metadata.update(new.input.metadata)
    letter.version = new.version


def _send_error(run: Run, error: BaseException) -> None:
    if run.cancelling and _stems_from_cancellation(error):
        detail = ErrorDetail(
            code=ErrorCode.CANCELLED,
            kind=ErrorKind.CANCELLED,
            message=run.interruption.cancel_reason or "cancelled",
            subject="run",
        )
        _closing(run).cancel_run.error.CopyFrom(write_error(detail))
    else:
        send_failure(run, error)


def _stems_from_cancellation(error: BaseException) -> bool:
    """Also the end of a child that was cancelled along with this run, whichever of the two the code hears of first."""
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        return all(_stems_from_cancellation(each) for each in group.exceptions)
    return isinstance(error, asyncio.CancelledError) or (isinstance(error, ChildError) and error.status == "cancelled")


def send_failure(run: Run, error: BaseException) -> None:
    """Fail the run. What Kagzi itself found wrong (input, output, limits, divergence) no other try can cure."""
    detail = describe_end(error)
    if isinstance(error, KagziError) and not isinstance(error, Unavailable):
        detail = msgspec.structs.replace(detail, non_retryable=True)
    if isinstance(error, RequestError) and not detail.subject:
        detail = msgspec.structs.replace(
            detail, subject=error.subject, subject_id=error.subject_id, kind=ErrorKind.PERMANENT
        )
    letter = _closing(run, partial(_failed, run, error, detail)).fail_run
    letter.error.CopyFrom(write_error(detail))
    letter.after_step_id = run.ahead


def _failed(run: Run, error: BaseException, detail: ErrorDetail, answer: Answer) -> None:
    closed = pb.RunClosed() if answer.detail is None else answer.detail.closed
    failure_log.run_failed(run, error, detail, closed)


def _no_failure(_: Answer) -> None:
    """Nobody is told."""


def _closing(run: Run, on_recorded: Callable[[Answer], None] = _no_failure) -> pb.Operation:
    run.status.flush()
    run.state = State.ENDED
    run.unhindered = False
    return run.port.send(partial(_closed, run, on_recorded))


def _closed(run: Run, on_recorded: Callable[[Answer], None], answer: Answer) -> None:
    detail = answer.detail
    if detail is not None and detail.WhichOneof("kind") == "refused":
        refused = detail.refused
        if refused.code == common.ERROR_CODE_CANCELLED:
            # It followed from what a cancelled run may not do any more: whoever claims it next is told, and cleans up.
            unwinding.send_release(run, "it is to be cancelled")
            return
        if refused.code == common.ERROR_CODE_INTERNAL:
            unwinding.hand_back(run, refused.message)
            return
        error = unwinding.refusal(refused)
        if isinstance(error, RequestError) and not run.end_refused:
            run.end_refused = True  # an output the server does not take: that is how the run failed
            send_failure(run, error)
            return
        logger.error("%s: the server refused its end: %s", name_of(run), refused.message, extra=fields_of(run))
    else:
        on_recorded(answer)
    run.close()

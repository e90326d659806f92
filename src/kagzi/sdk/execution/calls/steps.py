"""A ctx call while it is awaited: returns the recorded result, or executes and records the step."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import lru_cache, partial
from typing import Any, Protocol

import msgspec

from ....core import limits
from ....core.checks.refused_requests import error_of as error_of_detail
from ....core.error_details import ErrorCode, ErrorDetail, ErrorKind
from ....core.errors import RequestError, StepError
from ....core.records import Payload
from ....core.run.refusals import STEPS_LIMIT, too_many_steps
from ....v1 import common_pb2 as common
from ....v1 import worker_pb2 as pb
from ....wire.common import read_error, write_error, write_retry
from ...worker.failure_log import FailedAttempt
from ...workflow.codec import ANY, UNTYPED, Codec
from ...workflow.current import place
from ...workflow.failures import describe
from ...workflow.retry import Retry
from ...workflow.signatures import facts_of
from .. import undecodable
from ..claim import error_of_refusal
from ..ledger import FUNCTION, error_of
from ..ports import Answer
from ..run_execution import RunExecution
from ..scopes import Scope
from ..state import RUNNING
from .arguments import write_arguments
from .bodies import StepBody, StepOptions, perform
from .untyped import refuse_changed

logger = logging.getLogger("kagzi.worker")

_EXACT = frozenset({str, int, float, bool, type(None)})
_NULL = b"null"
_REFUSED_STEPS = 1_000  # for want of room, after which the run fails
_warned_of: set[object] = set()


async def execute_step(  # noqa: PLR0917  positional for speed: called for every step
    run: RunExecution,
    step_id: str,
    options: StepOptions,
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """The result of the step: from the ledger, without a message, or of its body. Raises StepError if it failed for
    good."""
    facts = facts_of(fn)
    codec = options.codec or facts.codec
    step = run.take(step_id, FUNCTION)
    if step is not None and step.seq:
        return await _reach(run, step, codec)
    scope = scope_of(run)
    retry = Retry.none() if options.once else options.retry or run.workflow.retry or run.services.retry
    recorded = write_arguments(fn, args, kwargs) if run.services.record_inputs == "always" else None
    body = StepBody(step_id, options, fn, args, kwargs, facts.is_async, codec, retry, scope, recorded)
    attempt = 1
    claim = run.claim
    try:
        if step is None:
            count_step(run)
        else:
            attempt = await _take_up(run, body, step)
        while True:
            if not run.can_proceed or claim.port.lease_is_over():
                await run.may_act(step_id if step is None and attempt == 1 else "")
            await_begin = _begin(run, body, attempt)
            if await_begin is not None:
                await await_begin
            value, error = await perform(run, body, attempt)
            if error is None:
                is_recorded, value = await _complete(run, body, attempt, value)
                if is_recorded:
                    return value
                detail, error = _final_detail(value), value
            else:
                detail = describe(error)
            attempt, remaining_us = await _fail(run, body, attempt, detail, error)
            await run.waits.retry(step_id, attempt, remaining_us)
            body = _called_again(body)
    finally:
        run.ledger.open.pop(step_id, None)


def _called_again(body: StepBody) -> StepBody:
    """The body for the next attempt. Encodes the arguments again: the last attempt may have changed them."""
    if body.input is None:
        return body
    return msgspec.structs.replace(body, input=write_arguments(body.fn, body.args, body.kwargs))


def _begin(run: RunExecution, body: StepBody, attempt: int) -> "Coroutine[Any, Any, None] | None":
    """Announce that the attempt begins. A returned coroutine must be awaited before the body runs: the begin must be
    durable first, or the body must not run here at all."""
    run.ledger.open[body.step_id] = body.scope
    if body.options.once:
        return _begin_durably(run, body, attempt)
    return run.claim.port.begin(body.step_id, partial(_fill_begin, body, attempt))


async def _take_up(run: RunExecution, body: StepBody, step: pb.HistoryStep) -> int:
    """The attempt to make now, of a step that was begun and has no result."""
    run.ledger.open[body.step_id] = body.scope
    attempt = max(step.attempt, 1)
    if step.HasField("details"):
        undecodable.pause_if_encoded(run, step.details, f"the heartbeat of step {body.step_id!r}")
        run.heartbeats.recall(body.step_id, ANY.decode(step.details.data, what="heartbeat"))
    if step.retry_at_us:
        await run.waits.retry(body.step_id, attempt, step.retry_at_us - run.claim.server_now_us())
    elif body.options.once:
        if not run.can_proceed:
            await run.may_act()
        _fill_begin(body, attempt, run.claim.port.announce())
        await _fail(run, body, attempt, _lost(body), None)
    return attempt


def _lost(body: StepBody) -> ErrorDetail:
    return ErrorDetail(
        code=ErrorCode.LEASE_LOST,
        kind=ErrorKind.LOST,
        message=f"the worker was lost while step {body.step_id!r} ran, and it may run only once. "
        "Whether it did its work is unknown",
        non_retryable=True,
    )


def count_step(run: RunExecution) -> None:
    """Counts a new step. Raises ResourceExhausted if there is no room for it. The same on replay: a call that is not
    recorded has all recorded ones before it."""
    ledger = run.ledger
    if ledger.steps_count < limits.STEPS_PER_RUN:
        ledger.steps_count += 1
        return
    maximum = limits.STEPS_PER_RUN + (limits.CLEANUP_STEPS if scope_of(run).cleanups else 0)
    if ledger.steps_count >= maximum:
        error = error_of_detail(too_many_steps(run.run_id, maximum).error)
        ledger.refused_steps += 1
        if ledger.refused_steps > _REFUSED_STEPS:  # code that handles the error by calling again does not end
            raise run.fail_with(error)
        raise error
    ledger.steps_count += 1


def scope_of(run: RunExecution) -> Scope:
    """The scope of the code that awaits a ctx call, which may differ from the scope that made the call."""
    scope = place.get()
    return scope if type(scope) is Scope else run.root


async def _reach(run: RunExecution, step: pb.HistoryStep, codec: Codec[Any]) -> Any:
    if not run.delivery.reach_alone(step):
        await run.delivery.reach(step)
    error = error_of(step)
    if error is not None:
        raise error
    data = step.output.data or _NULL
    if step.output.metadata:
        undecodable.pause_if_encoded(run, step.output, f"the recorded output of step {step.step_id!r}")
    return codec.decode(data, what=f"recorded output of step {step.step_id!r}")


def _fill_begin(body: StepBody, attempt: int, operation: pb.Operation) -> None:
    begin = operation.begin_step
    _fill_attempt(begin, body, attempt)
    if body.options.once:
        begin.once = True


def _fill_attempt(begin: pb.BeginStepOperation | pb.RecordStepOperation, body: StepBody, attempt: int) -> None:
    begin.step_id = body.step_id
    begin.attempt = attempt
    options, scope = body.options, body.scope
    if options.name != body.step_id:
        begin.name = options.name
    if options.timeout_s is not None:
        begin.timeout_ms = -int(-options.timeout_s * 1_000 // 1)
    if body.retry is not None and attempt == 1:
        begin.retry_policy.CopyFrom(_retry_policy(body.retry))
    if scope.parent is not None or scope.cleanups:
        place_in(begin, scope)
    if body.input is not None:
        _fill_payload(begin.input, body.input)


class Placed(Protocol):
    """An operation that begins something in a scope of a workflow."""

    parent_step_id: str
    parallel_group_id: str
    cleanup: bool


def place_in(operation: Placed, scope: Scope) -> None:
    if scope.group:
        operation.parallel_group_id = scope.group
    if scope.race:
        operation.parent_step_id = scope.race
    if scope.cleanups:
        operation.cleanup = True


async def _begin_durably(run: RunExecution, body: StepBody, attempt: int) -> None:
    """Record the begin before the body runs, which may run at most once."""
    claim = run.claim
    future: asyncio.Future[Answer] = claim.loop.create_future()
    _fill_begin(body, attempt, claim.send(partial(_begun, run, future)))
    await run.answer(future)
    if run.state is not RUNNING or run.cancelling:  # a pause comes too late: the step has begun
        await run.may_act()
    if claim.port.lease_is_over():
        await run.incoming.confirm_lease()


def _begun(run: RunExecution, future: "asyncio.Future[Answer]", answer: Answer) -> None:
    refusal = answer.refusal
    if refusal is not None and run.taken_away(refusal):
        return
    if not future.done():
        run.tasks.idle.disturb()  # the body begins in the next iteration: the run is not idle
        future.set_result(answer)


@lru_cache(maxsize=1_024)
def _retry_policy(retry: Retry) -> common.RetryPolicy:
    return write_retry(retry.to_policy())


# --- the end of an attempt --------------------------------------------------------------------------------------------


async def _may_end(run: RunExecution, body: StepBody) -> None:
    """Returns when the end of an attempt may be sent. Raises CancelledError if a race or a failed sibling closed the
    step while its body ended: the server accepts no result for it, and the cancellation is still being passed through
    the tasks in between."""
    if run.state is not RUNNING:
        await run.may_act()
    if body.step_id in run.ledger.closed:
        task = asyncio.current_task()
        if task is not None and not task.cancelling():
            await run.barrier.wait_in_vain(pb.HistoryStep(step_id=body.step_id, kind=FUNCTION))
        raise asyncio.CancelledError  # the body returned despite its cancellation


async def _complete(run: RunExecution, body: StepBody, attempt: int, value: Any) -> tuple[bool, Any]:
    """(True, the value as a replay returns it), or (False, why it cannot be recorded)."""
    if run.state is not RUNNING or body.step_id in run.ledger.closed:
        await _may_end(run, body)
    try:
        what = f"output of step {body.step_id!r}"
        data = body.codec.encode(value, what=what)
        decoded = body.codec.read_back(value, data, what=what)
        if body.codec is UNTYPED and value.__class__ not in _EXACT:
            refuse_changed(value, decoded, step=body.options.name, step_id=body.step_id)
    except RequestError as error:
        return False, error
    if len(data) > limits.PAYLOAD_WARN_BYTES:
        _warn_of_size(body, len(data))
    operations = run.operations
    ahead = operations.run_ahead(body.step_id)
    if ahead is not None:
        _fill_completion(*ahead, body, attempt, data)
        return _recorded(run, body, decoded)
    operation, whole, future = operations.complete(body.step_id)
    _fill_completion(operation, whole, body, attempt, data)
    refusal = (await run.wait(future)).refusal
    if refusal is not None:
        why = error_of_refusal(refusal)
        if run.cancelling or not isinstance(why, RequestError) or why.metadata.get("limit") == STEPS_LIMIT:
            raise operations.refused(refusal)
        if whole:  # nothing was recorded: the failure has to begin the attempt
            run.claim.port.begin(body.step_id, partial(_fill_begin, body, attempt))
        return False, why
    return _recorded(run, body, decoded)


def _recorded(run: RunExecution, body: StepBody, value: Any) -> tuple[bool, Any]:
    if run.stretch is not None:
        run.stretch.finish(body.step_id)
    return True, value


def _fill_completion(operation: pb.Operation, whole: bool, body: StepBody, attempt: int, data: bytes) -> None:
    """`whole`: the operation also contains the begin."""
    if whole:
        record = operation.record_step
        _fill_attempt(record, body, attempt)
        record.output.data = data
    else:
        completion = operation.complete_step
        completion.step_id = body.step_id
        completion.attempt = attempt
        completion.output.data = data


def _fill_payload(message: common.Payload, payload: Payload) -> None:
    message.data = payload.data
    if payload.metadata:
        message.metadata.update(payload.metadata)


async def _fail(
    run: RunExecution, body: StepBody, attempt: int, error: ErrorDetail, raised: BaseException | None
) -> tuple[int, int]:
    """Record a failed attempt. Returns the next attempt and the microseconds until then. Raises StepError if there is
    none."""
    if run.stretch is not None and raised is not None:
        run.stretch.finish(body.step_id, raised, error.type)
    failed = FailedAttempt(run.task, body.step_id, attempt, body.retry, error, raised, run.services.encoded)
    try:
        detail = await _send_failure(run, body, attempt, error)
    except BaseException:
        failed.unrecorded()
        raise
    if detail is not None and detail.WhichOneof("kind") == "retry":
        failed.retried(detail.retry.remaining_us)
        return detail.retry.next_attempt, detail.retry.remaining_us
    if detail is not None and detail.WhichOneof("kind") == "exhausted":
        error, attempt = read_error(detail.exhausted.error), detail.exhausted.attempts
    failed.exhausted(error)
    raise StepError.of(body.step_id, error, attempts=attempt) from None


async def _send_failure(
    run: RunExecution, body: StepBody, attempt: int, error: ErrorDetail
) -> pb.OperationAnswer | None:
    if run.state is not RUNNING or body.step_id in run.ledger.closed:
        await _may_end(run, body)
    operation, future = run.operations.ask(body.step_id)
    failure = operation.fail_step
    failure.step_id = body.step_id
    failure.attempt = attempt
    failure.error.CopyFrom(write_error(error))
    arguments = body.input
    if run.services.record_inputs == "failed":
        arguments = write_arguments(body.fn, body.args, body.kwargs)
    if arguments is not None:
        _fill_payload(failure.input, arguments)
    return (await run.answer(future)).detail


def _final_detail(error: RequestError) -> ErrorDetail:
    """For an output that cannot be recorded: a retry would produce the same."""
    detail = describe(error)
    return msgspec.structs.replace(
        detail, non_retryable=True, kind=ErrorKind.PERMANENT, subject=error.subject, subject_id=error.subject_id
    )


def _warn_of_size(body: StepBody, size: int) -> None:
    if _is_first(body, "size"):
        logger.warning(
            "the output of step %r is %s bytes; the limit is %s. Large outputs make every replay slow: store it "
            "elsewhere and "
            "return a reference.",
            body.step_id,
            f"{size:,}",
            f"{limits.PAYLOAD_BYTES:,}",
        )


def _is_first(body: StepBody, what: str) -> bool:
    """True once per function."""
    key = (getattr(body.fn, "__code__", body.fn), what)
    if key in _warned_of:
        return False
    _warned_of.add(key)
    return True

"""A ctx call while it is awaited: take what is recorded, or execute and record."""

import asyncio
import inspect
import logging
from collections.abc import Callable
from contextvars import copy_context
from functools import lru_cache, partial
from typing import Any, NamedTuple

import msgspec

from ..core.errors import ErrorDetail, ErrorKind, RequestError, StepError
from ..core.records import Payload
from ..v1 import common_pb2 as common
from ..v1 import worker_pb2 as pb
from ..wire.common import read_error, write_error, write_retry
from .codec import ANY, Codec, write_payload
from .current import StepInfo, place
from .failures import describe
from .ledger import FUNCTION, SLEEP, error_of
from .retry import Retry
from .runner import Run
from .signatures import facts_of
from .states import State
from .unwinding import refusal

logger = logging.getLogger("kagzi.worker")

_PLAIN = (dict, list, str, int, float, bool, type(None), tuple)
_NULL = b"null"
_told_about: set[object] = set()


class StepOptions(NamedTuple):
    """How a step is executed; None where the workflow, the worker or the server decides."""

    name: str
    retry: Retry | None = None
    timeout_s: float | None = None


class StepBody(NamedTuple):
    """A function with its arguments, about to be a step."""

    step_id: str
    options: StepOptions
    fn: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    is_async: bool
    codec: Codec[Any]
    retry: Retry | None


async def execute_step(  # noqa: PLR0917  the arguments of every step: positional, because this is called for each
    run: Run, step_id: str, options: StepOptions, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """The result of the step: from the ledger without a letter, or of its body. Raises StepError if it failed for good."""
    facts = facts_of(fn)
    attempt = 1
    step = run.take(step_id, FUNCTION)
    if step is not None:
        if step.seq:
            if not run.delivery.reach_alone(step):
                await run.delivery.reach(step)
            return _recorded(run, step, facts.codec)
        attempt = max(step.attempt, 1)
        if step.retry_at_us:
            await run.waits.retry(step_id, attempt, step.retry_at_us - run.server_now_us())
    else:
        run.count_step()
    retry = options.retry or run.workflow.retry or run.services.retry
    body = StepBody(step_id, options, fn, args, kwargs, facts.is_async, facts.codec, retry)
    while True:
        if not run.unhindered:
            await run.may_act()
        _announce(run, body, attempt)
        value, error = await _perform(run, body, attempt)
        if error is None:
            recorded, value = await _complete(run, body, attempt, value)
            if recorded:
                return value
            detail = _final_detail(value)
        else:
            detail = describe(error, retry=retry)
        attempt, remaining_us = await _fail(run, body, attempt, detail)
        await run.waits.retry(step_id, attempt, remaining_us)


def _recorded(run: Run, step: pb.HistoryStep, codec: Codec[Any]) -> Any:
    error = error_of(step)
    if error is not None:
        raise error
    data = step.output.data or _NULL
    if run.services.hook is not None:
        data = run.services.hook.decode_payload(Payload(data, dict(step.output.metadata))).data
    return codec.decode(data, what=f"recorded output of step {step.step_id!r}")


def _announce(run: Run, body: StepBody, attempt: int) -> None:
    begin = run.port.announce().begin_step
    begin.step_id = body.step_id
    begin.attempt = attempt
    if body.options.name != body.step_id:
        begin.name = body.options.name
    if body.options.timeout_s is not None:
        begin.timeout_ms = -int(-body.options.timeout_s * 1_000 // 1)
    if body.retry is not None and attempt == 1:
        begin.retry_policy.CopyFrom(_policy_letter(body.retry))


@lru_cache(maxsize=1_024)
def _policy_letter(retry: Retry) -> common.RetryPolicy:
    return write_retry(retry.to_policy())


# --- the body -----------------------------------------------------------------------------------------------------------


async def _perform(run: Run, body: StepBody, attempt: int) -> tuple[Any, BaseException | None]:
    """Value and error of one attempt. CancelledError is raised only if this task is cancelled, not if the body raised it."""
    task = asyncio.current_task()
    assert task is not None
    cancels = task.cancelling()
    scope = place.get()
    place.set(StepInfo(run.run_id, body.step_id, attempt))
    run.in_step.add(task)
    watched = run.leave_loose(task)
    try:
        if body.options.timeout_s is not None:
            return await _perform_in_time(run, body, attempt, body.options.timeout_s), None
        if body.is_async:
            return await body.fn(*body.args, **body.kwargs), None
        return await _in_thread(run, body, None), None
    except asyncio.CancelledError as error:
        if run.state is not State.RUNNING or task.cancelling() > cancels:
            raise
        return None, error
    except (GeneratorExit, KeyboardInterrupt):
        raise
    except BaseException as error:  # noqa: BLE001  whatever a body raises is its result; SystemExit must not stop the worker
        return None, error
    finally:
        run.in_step.discard(task)
        if watched:
            run.join_loose(task)
        place.set(scope)


async def _perform_in_time(run: Run, body: StepBody, attempt: int, timeout_s: float) -> Any:
    limit = asyncio.timeout(None)
    try:
        async with limit:
            if body.is_async:
                limit.reschedule(run.loop.time() + timeout_s)
                value = await body.fn(*body.args, **body.kwargs)
            else:
                value = await _in_thread(run, body, partial(_limit_from_now, run, limit, timeout_s))
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise _took_too_long(body, attempt, timeout_s) from error
    if limit.expired():  # it was cancelled, did not let that stop it, and came back after all: too late
        raise _took_too_long(body, attempt, timeout_s)
    return value


def _limit_from_now(run: Run, limit: asyncio.Timeout, timeout_s: float) -> None:
    limit.reschedule(run.loop.time() + timeout_s)


def _took_too_long(body: StepBody, attempt: int, timeout_s: float) -> TimeoutError:
    if not body.is_async:
        logger.warning(
            "step %r: attempt %d took longer than %gs. Its thread cannot be stopped: it goes on, and its result is ignored.",
            body.step_id,
            attempt,
            timeout_s,
        )
    return TimeoutError(f"attempt {attempt} of step {body.step_id!r} took longer than {timeout_s:g}s")


async def _in_thread(run: Run, body: StepBody, on_start: Callable[[], None] | None) -> Any:
    call = partial(body.fn, *body.args, **body.kwargs)
    job = run.services.threads.begin(call, copy_context(), tell_start=on_start is not None)
    if job.started is not None and on_start is not None:
        await job.started
        on_start()
    value = await job.done
    return await value if inspect.isawaitable(value) else value


# --- what became of it -----------------------------------------------------------------------------------------------------


async def _complete(run: Run, body: StepBody, attempt: int, value: Any) -> tuple[bool, Any]:
    """(True, the value as replay will give it), or (False, why it cannot be recorded)."""
    if run.state is not State.RUNNING:
        await run.may_act()
    try:
        what = f"output of step {body.step_id!r}"
        payload = write_payload(body.codec, value, what=what, hook=None)
        decoded = body.codec.decode(payload.data, what=what)
        if run.services.hook is not None:
            payload = run.services.hook.encode_payload(payload)
    except RequestError as error:
        return False, error
    if body.codec is ANY and not isinstance(value, _PLAIN):
        _tell_about_annotation(body, value)
    ahead = run.run_ahead(body.step_id)
    if ahead is not None:
        _fill_completion(ahead, body, attempt, payload)
        return True, decoded
    operation, future = run.ask(body.step_id)
    _fill_completion(operation, body, attempt, payload)
    answer = await run.wait(future)
    if answer.detail is not None and answer.detail.WhichOneof("kind") == "refused":
        why = refusal(answer.detail.refused)
        if not isinstance(why, RequestError):
            raise run.fail_with(why)
        return False, why
    return True, decoded


def _fill_completion(operation: pb.Operation, body: StepBody, attempt: int, payload: Payload) -> None:
    completion = operation.complete_step
    completion.step_id = body.step_id
    completion.attempt = attempt
    completion.output.data = payload.data
    if payload.metadata:
        completion.output.metadata.update(payload.metadata)


async def _fail(run: Run, body: StepBody, attempt: int, error: ErrorDetail) -> tuple[int, int]:
    """Record a failed attempt. Returns the next one and the microseconds until then. Raises StepError if there is none."""
    if run.state is not State.RUNNING:
        await run.may_act()
    operation, future = run.ask(body.step_id)
    failure = operation.fail_step
    failure.step_id = body.step_id
    failure.attempt = attempt
    failure.error.CopyFrom(write_error(error))
    answer = await run.wait(future)
    detail = answer.detail
    kind = detail.WhichOneof("kind") if detail is not None else None
    if detail is not None and kind == "retry":
        return detail.retry.next_attempt, detail.retry.remaining_us
    if detail is not None and kind == "exhausted":
        exhausted = detail.exhausted
        raise StepError.of(body.step_id, read_error(exhausted.error), attempts=exhausted.attempts) from None
    if detail is not None and kind == "refused":
        raise run.fail_with(refusal(detail.refused))
    raise StepError.of(body.step_id, error, attempts=attempt) from None


def _final_detail(error: RequestError) -> ErrorDetail:
    """An output that cannot be recorded: another try would give the same."""
    detail = describe(error)
    return msgspec.structs.replace(
        detail, non_retryable=True, kind=ErrorKind.PERMANENT, subject=error.subject, subject_id=error.subject_id
    )


def _tell_about_annotation(body: StepBody, value: Any) -> None:
    key = getattr(body.fn, "__code__", body.fn)
    if key not in _told_about:
        _told_about.add(key)
        logger.warning(
            "step %r returned a %s, but its function does not say so: the workflow gets plain JSON. "
            "Write the return type (-> %s), or give .run() the function itself instead of a lambda.",
            body.step_id,
            type(value).__name__,
            type(value).__name__,
        )


# --- sleeps -----------------------------------------------------------------------------------------------------------------


async def execute_sleep(run: Run, step_id: str, name: str, *, duration_us: int = 0, until_us: int = 0) -> None:
    step = run.take(step_id, SLEEP)
    if step is not None:
        if step.seq:
            if not run.delivery.reach_alone(step):
                await run.delivery.reach(step)
            return
        await run.waits.sleep(step_id, step.wake_at_us - run.server_now_us())
        return
    run.count_step()
    if not run.unhindered:
        await run.may_act()
    operation, future = run.ask(step_id)
    sleep = operation.sleep
    sleep.step_id = step_id
    if name != step_id:
        sleep.name = name
    if until_us:
        sleep.until_us = until_us
    else:
        sleep.duration_us = duration_us
    answer = await run.wait(future)
    if answer.detail is None:
        return
    kind = answer.detail.WhichOneof("kind")
    if kind == "refused":
        raise run.fail_with(refusal(answer.detail.refused))
    if kind == "timer" and answer.detail.timer.remaining_us > 0:
        await run.waits.sleep(step_id, answer.detail.timer.remaining_us)

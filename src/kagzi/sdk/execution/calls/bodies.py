"""The body of a step: executed on the event loop or in a thread, within its timeout."""

import asyncio
import contextlib
import inspect
import logging
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from typing import Any

import msgspec

from ....core.records import Payload
from ...worker.stop_signals import may_be_ctrl_c
from ...workflow.codec import Codec
from ...workflow.current import StepInfo, place
from ...workflow.retry import Retry
from ..run_execution import RunExecution
from ..scopes import Scope
from ..state import RUNNING

logger = logging.getLogger("kagzi.worker")

_NOT_BEGUN = object()


class StepOptions(msgspec.Struct, frozen=True):
    """The options of a step; None where the workflow, the worker or the server decides. `codec`: of the type that the
    call names; None: that of the function."""

    name: str
    retry: Retry | None = None
    timeout_s: float | None = None
    once: bool = False
    codec: Codec[Any] | None = None


class StepBody(msgspec.Struct, frozen=True):
    """A function with its arguments, to be executed as a step."""

    step_id: str
    options: StepOptions
    fn: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    is_async: bool
    codec: Codec[Any]
    retry: Retry | None
    scope: Scope
    input: Payload | None = None  # the arguments, if they are recorded even when the step succeeds


async def perform(run: RunExecution, body: StepBody, attempt: int) -> tuple[Any, BaseException | None]:
    """The value and error of one attempt. CancelledError is raised only if this task is cancelled, not if the body
    raised it."""
    task = asyncio.current_task(run.claim.loop)  # passing the loop saves the lookup
    assert task is not None
    cancels = task.cancelling()
    scope = place.get()
    info = StepInfo(run.run_id, body.step_id, attempt, run)
    place.set(info)
    stretch = run.stretch
    span = None if stretch is None else stretch.enter(body.step_id, body.options.name, attempt)
    tasks = run.tasks
    tasks.in_step.add(task)
    watched = tasks.block(task)
    replace = run.services.replace_body
    body = body if replace is None else replace(run.run_id, body, attempt)
    try:
        if body.options.timeout_s is not None:
            return await _perform_in_time(run, body, attempt, body.options.timeout_s), None
        if body.is_async:
            return await body.fn(*body.args, **body.kwargs), None
        return await _in_thread(run, body, None), None
    except asyncio.CancelledError as error:
        if run.state is not RUNNING or task.cancelling() > cancels:
            raise
        return None, error
    except BaseException as error:
        if _comes_from_outside(error, body):
            raise
        return None, error  # its result, even a SystemExit: the worker continues
    finally:
        tasks.in_step.discard(task)
        if watched:
            tasks.unblock(task)
        now = place.get()  # different if the garbage collector closes this inside other code
        place.set(scope if now is info else now)
        if span is not None:
            span.leave()
        if run.has_heartbeats:
            run.heartbeats.ended(body.step_id)


def _comes_from_outside(error: BaseException, body: StepBody) -> bool:
    """Whether the error does not come from the body: this task is being closed, or the user pressed Ctrl-C, which the
    thread of a step never sees."""
    if isinstance(error, KeyboardInterrupt):
        return body.is_async and may_be_ctrl_c()
    return isinstance(error, GeneratorExit)


async def _perform_in_time(run: RunExecution, body: StepBody, attempt: int, timeout_s: float) -> Any:
    limit = asyncio.timeout(None)
    try:
        async with limit:
            if body.is_async:
                _limit_from_now(run, limit, timeout_s)
                value = await body.fn(*body.args, **body.kwargs)
            else:
                value = await _in_thread(run, body, partial(_limit_from_now, run, limit, timeout_s))
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise _took_too_long(body, attempt, timeout_s) from error
    if limit.expired():  # the body ignored its cancellation and returned too late
        raise _took_too_long(body, attempt, timeout_s)
    return value


def _limit_from_now(run: RunExecution, limit: asyncio.Timeout, timeout_s: float) -> None:
    claim = run.claim
    if claim.timers is claim.loop:
        limit.reschedule(claim.loop.time() + timeout_s)
    else:
        claim.timers.call_later(timeout_s, _expire, claim.loop, limit)


def _expire(loop: asyncio.AbstractEventLoop, limit: asyncio.Timeout) -> None:
    """Expire by a clock other than the event loop's. Does nothing if the body has ended."""
    with contextlib.suppress(RuntimeError):
        limit.reschedule(loop.time())


def _took_too_long(body: StepBody, attempt: int, timeout_s: float) -> TimeoutError:
    if not body.is_async:
        logger.warning(
            "step %r: attempt %d took longer than %gs. Its thread cannot be stopped: it keeps running, and its result "
            "is ignored.",
            body.step_id,
            attempt,
            timeout_s,
        )
    return TimeoutError(f"attempt {attempt} of step {body.step_id!r} took longer than {timeout_s:g}s")


async def _in_thread(run: RunExecution, body: StepBody, on_start: Callable[[], None] | None) -> Any:
    call = partial(_unless_lease_is_over, run, partial(body.fn, *body.args, **body.kwargs))
    step = f"{body.step_id} of run {run.run_id}"
    while True:
        job = run.services.threads.begin(call, copy_context(), report_start=on_start is not None, step=step)
        if job.started is not None and on_start is not None:
            await job.started
            on_start()
        value = await job.done
        if value is not _NOT_BEGUN:
            return await value if inspect.isawaitable(value) else value
        await run.incoming.confirm_lease()


def _unless_lease_is_over(run: RunExecution, call: Callable[[], Any]) -> Any:
    """Checked in the thread, because the body may have waited long for it."""
    return _NOT_BEGUN if run.claim.port.lease_is_over() else call()

"""ctx.sleep and ctx.wait_for while they are awaited."""

import asyncio
from typing import Any

from ....core.error_details import ErrorCode
from ....core.errors import InvalidArgument, StepError
from ....core.records import Payload
from ....core.run.misfits import Misfit, problem_of
from ....v1 import common_pb2 as common
from ....v1 import worker_pb2 as pb
from ....wire.common import read_error
from ...workflow.codec import read_payload, type_name
from ...workflow.failures import STEP_ATTRIBUTE
from ...workflow.signals import Signal
from .. import divergence, undecodable
from ..interruption import in_cleanup
from ..ledger import SIGNAL, SLEEP
from ..run_execution import RunExecution
from .races import withdraw
from .steps import count_step, place_in, scope_of

NO_DEFAULT: Any = object()
_VALUE = "it"  # the name of the signal's value in errors of the codec
_DOES_NOT_FIT = f"{_VALUE} does not fit: "  # the start of the codec's message; the problem says it once


async def execute_sleep(run: RunExecution, step_id: str, name: str, *, duration_us: int = 0, until_us: int = 0) -> None:
    step = run.take(step_id, SLEEP)
    if step is not None and step.seq:
        if not run.delivery.reach_alone(step):
            await run.delivery.reach(step)
        return
    if step is None:
        await may_begin(run, step_id)
    run.ledger.open[step_id] = scope_of(run)
    try:
        if step is not None:
            await run.waits.sleep(step_id, step.wake_at_us - run.claim.server_now_us())
            return
        await _ask_and_sleep(run, step_id, name, duration_us, until_us)
    except asyncio.CancelledError:
        withdraw(run, step_id)
        raise
    finally:
        run.ledger.open.pop(step_id, None)


async def _ask_and_sleep(run: RunExecution, step_id: str, name: str, duration_us: int, until_us: int) -> None:
    operation, future = run.operations.ask(step_id)
    sleep = operation.sleep
    sleep.step_id = step_id
    if name != step_id:
        sleep.name = name
    if until_us:
        sleep.until_us = until_us
    else:
        sleep.duration_us = duration_us
    place_in(sleep, scope_of(run))
    detail = (await run.answer(future)).detail
    if detail is not None and detail.WhichOneof("kind") == "timer" and detail.timer.remaining_us > 0:
        await run.waits.sleep(step_id, detail.timer.remaining_us)


async def may_begin(run: RunExecution, step_id: str) -> None:
    """Returns when a call that this run has not recorded yet may begin."""
    count_step(run)
    if not run.can_proceed:
        await run.may_act(step_id)


async def execute_wait_for(
    run: RunExecution, step_id: str, signal: Signal[Any], timeout_us: int | None, default: Any
) -> Any:
    """The signal's value. If none arrives in time: `default`, or TimeoutError."""
    step = run.take(step_id, SIGNAL)
    if step is not None and step.seq:
        if not run.delivery.reach_alone(step):
            await run.delivery.reach(step)
        return _value(run, step, signal, default)
    if step is None:
        await may_begin(run, step_id)
    run.ledger.open[step_id] = scope_of(run)
    try:
        if step is not None:
            rest_us = step.wake_at_us - run.claim.server_now_us() if step.wake_at_us else None
            return _value(run, await run.waits.signal(step_id, step.begun_seq, rest_us), signal, default)
        return await _ask_and_wait(run, step_id, signal, timeout_us, default)
    except asyncio.CancelledError:
        withdraw(run, step_id)
        raise
    finally:
        run.ledger.open.pop(step_id, None)


async def _ask_and_wait(
    run: RunExecution, step_id: str, signal: Signal[Any], timeout_us: int | None, default: Any
) -> Any:
    operation, future = run.operations.ask(step_id)
    wait = operation.wait_signal
    wait.step_id = step_id
    wait.signal_name = signal.name
    if timeout_us is not None:
        wait.timeout_us = timeout_us
    if signal.schema:  # shown as the input of the step, to those who send the signal
        wait.input.data = signal.schema.encode()
    place_in(wait, scope_of(run))
    answer = await run.answer(future)
    detail = answer.detail or pb.OperationAnswer()
    match detail.WhichOneof("kind"):
        case "signal":
            return _decoded(run, step_id, answer.seq, detail.signal.payload, signal)
        case "exhausted":
            return _without(step_id, detail.exhausted.error, default)
        case _:
            rest_us = detail.timer.remaining_us if detail.timer.wake_at_us else None
            return _value(run, await run.waits.signal(step_id, answer.seq, rest_us), signal, default)


def _value(run: RunExecution, step: pb.HistoryStep, signal: Signal[Any], default: Any) -> Any:
    if step.status == pb.STEP_STATUS_COMPLETED:
        return _decoded(run, step.step_id, step.seq, step.output, signal)
    return _without(step.step_id, step.error, default)


def _decoded(run: RunExecution, step_id: str, seq: int, payload: common.Payload, signal: Signal[Any]) -> Any:
    if payload.metadata:
        undecodable.pause_if_encoded(run, payload, f"the value of signal {signal.name!r}")
        if run.stretch is not None:
            run.stretch.received(seq, payload.metadata)
    recorded = Payload(payload.data or b"null")
    codec = signal.codec  # outside the try: a type without a JSON form is an error of the code
    try:
        return read_payload(codec, recorded, what=_VALUE)
    except Exception as error:
        raise _misfit(run, signal, step_id, seq, error) from error


def _misfit(run: RunExecution, signal: Signal[Any], step_id: str, seq: int, error: Exception) -> BaseException:
    """The exception of a wait whose value, recorded under `seq`, could not be decoded: no code receives it, and the run
    is paused.

    A run that is being cancelled is not paused, because it could not end then: there the wait ends like any other
    call."""
    if run.cancelling:
        return error if in_cleanup() else run.interruption.cancelled()
    from_codec = isinstance(error, InvalidArgument)
    why = str(error).removeprefix(_DOES_NOT_FIT) if from_codec else f"{type(error).__name__}: {error}"
    misfit = Misfit(signal=signal.name, step_id=step_id, seq=seq, expected=type_name(signal.type), why=why.rstrip("."))
    problem = problem_of(misfit, divergence.where(run.workflow.fn))
    return run.pause_with("because a signal's value does not fit", problem)


def _without(step_id: str, recorded: common.ErrorDetail, default: Any) -> Any:
    error = read_error(recorded)
    if error.code is not ErrorCode.TIMEOUT:
        raise StepError.of(step_id, error, attempts=1)
    if default is not NO_DEFAULT:
        return default
    timeout = TimeoutError(error.message)
    setattr(timeout, STEP_ATTRIBUTE, step_id)
    raise timeout

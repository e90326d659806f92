"""ctx.sleep and ctx.wait_for while they are awaited."""

import asyncio
from functools import partial
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
from ..ledger import ABANDONED, COMPLETED, SIGNAL, SLEEP, SignalWait
from ..ports import Answer
from ..run_execution import RunExecution
from ..state import RunState
from .races import withdraw, withdraw_signal
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
    if step is not None and step.seq and run.delivery.reach_alone(step):
        return _value(run, step, signal, default)
    if step is None:
        await may_begin(run, step_id)
    ledger = run.ledger
    ledger.open[step_id] = scope_of(run)
    if step is None or step.status != ABANDONED:
        ledger.signals[step_id] = SignalWait(signal.name, 0)
    try:
        if step is None:
            result = await _ask(run, step_id, signal, timeout_us)
        else:
            result = await _recorded(run, step, signal, timeout_us)
    except asyncio.CancelledError:
        withdraw_signal(run, step_id)
        raise
    finally:
        ledger.open.pop(step_id, None)
    if ledger.signals.pop(step_id, None) is None:
        await run.wait(run.claim.loop.create_future())  # for ever: a race gave it up, and another wait gets the value
    # Received: from here on the value belongs to the code.
    if isinstance(result, pb.HistoryStep):
        return _value(run, result, signal, default)
    detail = result.detail
    assert detail is not None
    if detail.WhichOneof("kind") == "exhausted":
        return _without(step_id, detail.exhausted.error, default)
    return _decoded(run, step_id, result.seq, detail.signal.payload, signal)


async def _recorded(
    run: RunExecution, step: pb.HistoryStep, signal: Signal[Any], timeout_us: int | None
) -> pb.HistoryStep:
    """The result of a wait that was begun before."""
    if not step.seq:
        wake_at_us = _take_timeout(run, step, signal, timeout_us)
        rest_us = wake_at_us - run.claim.server_now_us() if wake_at_us else None
        return await run.waits.signal(step.step_id, step.begun_seq, rest_us)
    if step.status == COMPLETED:
        run.ledger.signals[step.step_id].seq = step.seq
    await run.delivery.reach(step)
    return step


async def _ask(run: RunExecution, step_id: str, signal: Signal[Any], timeout_us: int | None) -> pb.HistoryStep | Answer:
    """The result of a new wait: as the answer to its operation, or as what came later."""
    operation, future = run.operations.ask(step_id)
    _fill_wait(operation.wait_signal, step_id, signal, timeout_us)
    if signal.schema:  # shown as the input of the step, to those who send the signal
        operation.wait_signal.input.data = signal.schema.encode()
    place_in(operation.wait_signal, scope_of(run))
    answer: Answer = await run.wait(future)
    detail = answer.detail or pb.OperationAnswer()
    match detail.WhichOneof("kind"):
        case "signal" | "exhausted":
            return answer
        case "refused":
            run.ledger.signals.pop(step_id, None)  # it did not begin
            raise run.operations.refused(detail.refused)
        case _:
            rest_us = detail.timer.remaining_us if detail.timer.wake_at_us else None
            return await run.waits.signal(step_id, answer.seq, rest_us)


def _fill_wait(wait: pb.WaitSignalOperation, step_id: str, signal: Signal[Any], timeout_us: int | None) -> None:
    wait.step_id = step_id
    wait.signal_name = signal.name
    if timeout_us is not None:
        wait.timeout_us = timeout_us


# --- a timeout that the code has changed since the wait began ---------------------------------------------------------


def _take_timeout(run: RunExecution, step: pb.HistoryStep, signal: Signal[Any], timeout_us: int | None) -> int:
    """When the recorded wait ends by the timeout that the code has now, which counts from when the wait began; 0:
    never. If the server has another time, it is told once the code has shown that it fits the history."""
    if not step.at_us:
        return step.wake_at_us  # recorded by a server that does not say when it began
    wake_at_us = 0 if timeout_us is None else step.at_us + timeout_us
    if wake_at_us != step.wake_at_us:
        run.barrier.defer(partial(_send_timeout, run, step.step_id, signal, timeout_us))
    return wake_at_us


def _send_timeout(run: RunExecution, step_id: str, signal: Signal[Any], timeout_us: int | None) -> None:
    if run.state is RunState.RUNNING and not run.cancelling and step_id in run.ledger.open:
        operation = run.claim.send(partial(_timeout_sent, run, step_id))
        _fill_wait(operation.wait_signal, step_id, signal, timeout_us)


def _timeout_sent(run: RunExecution, step_id: str, answer: Answer) -> None:
    """If the wait has ended meanwhile, the answer is its result, which takes its place in the order of results."""
    detail = answer.detail
    match None if detail is None else detail.WhichOneof("kind"):
        case "refused" if not run.taken_away(answer.refusal or common.ErrorDetail()):
            run.release("the server did not take the new timeout of a wait")
        case "signal" if detail is not None:
            completed = pb.STEP_STATUS_COMPLETED
            output = detail.signal.payload
            run.waits.settle(_ended(step_id, answer, status=completed, output=output))
        case "exhausted" if detail is not None:
            run.waits.settle(_ended(step_id, answer, status=pb.STEP_STATUS_FAILED, error=detail.exhausted.error))
        case _:
            run.tasks.idle.start()


def _ended(step_id: str, answer: Answer, **result: Any) -> pb.HistoryStep:
    return pb.HistoryStep(step_id=step_id, kind=SIGNAL, seq=answer.seq, at_us=answer.at_us, **result)


# --- the value --------------------------------------------------------------------------------------------------------


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

"""The main task of a workflow: reads the rest of the history, decodes the input, calls the function, records how it
ended."""

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from contextvars import copy_context
from functools import partial
from typing import Any

from ...core.errors import InternalError, InvalidArgument, LeaseLost, Unavailable
from ...core.records import Payload
from ...v1 import worker_pb2 as pb
from ..worker.log_context import fields_of, name_of
from ..worker.stop_signals import may_be_ctrl_c
from ..workflow.codec import read_payload
from ..workflow.current import place
from . import undecodable
from .ending import ContinuedAsNew
from .ledger import as_claimed
from .run_execution import RunExecution

logger = logging.getLogger("kagzi.worker")

_NO_INPUT = (b"", b"null")


def start(run: RunExecution, context: object) -> None:
    """Start the main task. Its scope is the run's root."""
    task = _outside_of_scopes(run, run_function(run, context), name=f"kagzi-run-{run.run_id}")
    run.tasks.adopt_main(task)


def _outside_of_scopes(
    run: RunExecution, coroutine: Coroutine[Any, Any, Any], *, name: str | None = None
) -> "asyncio.Task[Any]":
    """Create a task that does not belong to the workflow code, nor do the tasks created in it: they would take scope
    numbers of the code's tasks, whose steps would then have other ids than recorded."""
    variables = copy_context()
    variables.run(place.set, None)
    return variables.run(run.claim.loop.create_task, coroutine, name=name)


async def run_function(run: RunExecution, context: object) -> None:
    place.set(run.root)
    ending = run.ending
    try:
        if run.task.history.has_more and not await _load_history(run):
            return
        arguments = _arguments(run)
        run.interruption.begin()
        output = await run.workflow.fn(context, *arguments)
    except GeneratorExit:
        raise
    except KeyboardInterrupt as error:
        if may_be_ctrl_c():
            raise
        run.finish(partial(ending.fail_or_cancel, error))
    except ContinuedAsNew as new:
        run.finish(partial(ending.continue_as_new, new))
    except BaseException as error:  # noqa: BLE001  any exception of the function ends the run
        run.finish(partial(ending.fail_or_cancel, error))
    else:
        run.finish(partial(ending.complete, output))


async def _load_history(run: RunExecution) -> bool:
    try:
        steps = await _outside_of_scopes(run, _fetch_history(run))
    except LeaseLost as error:
        run.abandon(str(error))
        return False
    except (Unavailable, InternalError) as error:
        task = run.task
        logger.warning("%s: the rest of its history could not be read: %s", name_of(task), error, extra=fields_of(task))
        run.release("the history could not be read")
        return False
    as_claimed(steps, run.task.last_seq)
    run.ledger.add(steps)
    if run.stretch is not None:
        run.stretch.know(steps)
    run.refresh()
    return True


async def _fetch_history(run: RunExecution) -> Sequence[pb.HistoryStep]:
    return await run.claim.port.fetch_history(run.task.history.next_after)


def _arguments(run: RunExecution) -> tuple[Any, ...]:
    """Raises InvalidArgument, which names the field, for an input that does not match its type."""
    workflow, input_ = run.workflow, run.task.input
    payload = Payload(input_.data, dict(input_.metadata) if input_.metadata else None)
    absent = not run.task.HasField("input") or (payload.data in _NO_INPUT and not payload.metadata)
    if not workflow.has_input:
        if absent:
            return ()
        raise InvalidArgument(f"workflow {workflow.name!r} takes no input, but the run has one.", field="input")
    if absent and workflow.input_is_optional:
        return ()
    if absent:
        payload = Payload(b"null")
    what = f"input of workflow {workflow.name!r}"
    undecodable.pause_if_encoded(run, input_, f"the {what}")
    return (read_payload(workflow.input_codec, payload, what=what),)

"""A signal's value that the code cannot read: nobody receives it, and the run is paused with a problem that says so."""

import logging
from functools import partial
from typing import TYPE_CHECKING, Any

from ...core.error_details import ErrorDetail
from ...core.errors import InvalidArgument
from ...core.misfits import Misfit, problem_of
from ...wire.common import write_error
from ..worker.failure_log import run_paused
from ..worker.log_context import fields_of, name_of
from ..worker.ports import Answer
from ..workflow.codec import type_name
from ..workflow.signals import Signal
from .divergence import where
from .interruption import in_cleanup
from .state import State
from .suspension import Suspended

if TYPE_CHECKING:
    from .run_execution import Run

VALUE = "it"  # what the codec is to call the value
_DOES_NOT_FIT = f"{VALUE} does not fit: "  # as the codec begins; the problem says it once

logger = logging.getLogger("kagzi.worker")


def misfit(run: "Run", signal: Signal[Any], step_id: str, seq: int, error: Exception) -> BaseException:
    """What the wait raises, whose value recorded under number `seq` could not be read. The run is unwound and paused.

    A run that is to be cancelled is not paused, or it could not come to its end: there the wait ends like any other call."""
    if run.cancelling:
        return error if in_cleanup() else run.interruption.cancelled()
    told = isinstance(error, InvalidArgument)
    why = str(error).removeprefix(_DOES_NOT_FIT) if told else f"{type(error).__name__}: {error}"
    found = Misfit(signal=signal.name, step_id=step_id, seq=seq, expected=type_name(signal.type), why=why.rstrip("."))
    if run.state in (State.RUNNING, State.PARKING):
        run.unwind(partial(_send, run, problem_of(found, where(run))))
    return Suspended()


def _send(run: "Run", problem: ErrorDetail) -> None:
    run_paused(run, "because a signal's value does not fit", problem)
    letter = run.port.send(partial(_answered, run)).diverged
    letter.problem.CopyFrom(write_error(problem))
    letter.build_id = run.services.build_id


def _answered(run: "Run", answer: Answer) -> None:
    if answer.detail is not None and answer.detail.WhichOneof("kind") == "refused":
        reason = answer.detail.refused.message
        logger.error("%s could not be paused: %s", name_of(run), reason, extra=fields_of(run))
    run.close()

"""Log fields: the run, step and attempt that a record belongs to. Nothing is made or kept for it: `place` knows. See
docs/adr/0025."""

import logging
from typing import TYPE_CHECKING, Any

from ...core.public import exported
from ..execution.scopes import Scope
from ..workflow.current import StepInfo, place

if TYPE_CHECKING:  # commands import this before they need the rest
    from ...v1 import worker_pb2 as pb


@exported
class RunContextFilter(logging.Filter):
    """Gives every log record that is made in a workflow or in the body of a step the attributes run_id, workflow_id,
    workflow_type and, in a step, step and attempt: `handler.addFilter(RunContextFilter())`. It lets every record pass.

    For a handler, not for a logger: a logger's filters do not see the records of its children. With a QueueHandler it
    belongs there, since the records are handled in another thread afterwards.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the attributes to `record`. Always True."""
        for name, value in current_fields().items():
            record.__dict__.setdefault(name, value)
        return True


def current_fields() -> dict[str, Any]:
    """Of the code that is running; empty outside of runs."""
    where = place.get()
    if isinstance(where, StepInfo):
        own = {"run_id": where.run_id, "step": where.step_id, "attempt": where.attempt}
        return own if where.run is None else {**fields_of(where.run.task), **own}
    return fields_of(where.run.task) if isinstance(where, Scope) else {}


def fields_of(task: "pb.Task", step: str = "", attempt: int = 0) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "run_id": task.run_id,
        "workflow_id": task.workflow_id,
        "workflow_type": task.workflow_type,
    }
    return {**fields, "step": step, "attempt": attempt} if step else fields


def is_about_run(record: logging.LogRecord) -> bool:
    """Whether it was made by user code in a run, or tells of it."""
    return "run_id" in vars(record)


def name_of(task: "pb.Task") -> str:
    """How lines of the log call a run."""
    own_id = f" {task.workflow_id!r}" if task.workflow_id not in ("", task.run_id) else ""
    return f"{task.workflow_type}{own_id}, run {task.run_id}"

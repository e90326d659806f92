"""Log fields: the run, step, attempt and trace that a record belongs to. Nothing is made or kept for it: `place` and
the context of OpenTelemetry know. See docs/adr/0025."""

import logging
from typing import TYPE_CHECKING, Any

from ...core.public import exported
from ...core.records import DEFAULT_NAMESPACE
from ...core.run.addresses import LAST_SERVER
from ..execution.scopes import Scope
from ..tracing.tracing import trace_id_of_step
from ..workflow.current import StepInfo, place

if TYPE_CHECKING:  # commands import this before they need the rest
    from ...v1 import worker_pb2 as pb


@exported
class RunContextFilter(logging.Filter):
    """Gives every log record that is made in a workflow or in the body of a step the attributes namespace, run_id,
    workflow_id, workflow_type and, in a step, step and attempt; trace_id, if there is a trace; and run_url, the address
    of the run's page, if the server has pages: `handler.addFilter(RunContextFilter())`. It lets every record pass.

    For a handler, not for a logger: a logger's filters do not see the records of its children. With a QueueHandler it
    belongs there, since the records are handled in another thread afterwards.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the attributes to `record`. Always True."""
        for name, value in current_fields().items():
            record.__dict__.setdefault(name, value)
        if LAST_SERVER.http_url and is_about_run(record):
            page = LAST_SERVER.page_of(record.__dict__["run_id"], record.__dict__.get("namespace", ""))
            record.__dict__.setdefault("run_url", page)
        return True


def current_fields() -> dict[str, Any]:
    """Of the code that is running; empty outside of runs."""
    where = place.get()
    if isinstance(where, StepInfo):
        own = {"run_id": where.run_id, "step": where.step_id, "attempt": where.attempt}
        return {**own, **_trace()} if where.run is None else {**fields_of(where.run.task), **own, **_trace()}
    return {**fields_of(where.run.task), **_trace()} if isinstance(where, Scope) else {}


def _trace() -> dict[str, str]:
    traced = trace_id_of_step()
    return {"trace_id": traced} if traced else {}


def fields_of(task: "pb.Task", step: str = "", attempt: int = 0) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "namespace": task.namespace_id,
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
    where = "" if task.namespace_id in ("", DEFAULT_NAMESPACE) else f" of namespace {task.namespace_id}"
    return f"{task.workflow_type}{own_id}, run {task.run_id}{where}"

"""Log fields: the run, step, attempt and trace that a record belongs to, read from `place` and the OpenTelemetry
context when needed. See docs/adr/0025."""

import logging
from typing import TYPE_CHECKING, Any

from ...core.public import exported
from ...core.records import DEFAULT_NAMESPACE
from ...core.run.addresses import LAST_SERVER
from ..execution.scopes import Scope
from ..tracing.tracing import trace_id_of_step
from ..workflow.current import StepInfo, place

if TYPE_CHECKING:  # the command line imports this module early, without the rest
    from ...v1 import worker_pb2 as pb


@exported
class RunContextFilter(logging.Filter):
    """Adds attributes to every log record that is made in a workflow or in the body of a step: namespace, run_id,
    workflow_id, workflow_type and, in a step, step and attempt; trace_id, if there is a trace; and run_url, the URL of
    the run's page, if the server has pages: `handler.addFilter(RunContextFilter())`. It lets every record pass.

    Add it to a handler, not to a logger: a logger's filters do not see the records of its children. With a
    QueueHandler, add it there, since another thread handles the records afterwards.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the attributes to `record`. Always returns True."""
        for name, value in current_fields().items():
            record.__dict__.setdefault(name, value)
        if LAST_SERVER.http_url and is_about_run(record):
            page = LAST_SERVER.page_of(record.__dict__["run_id"], record.__dict__.get("namespace", ""))
            record.__dict__.setdefault("run_url", page)
        return True


def current_fields() -> dict[str, Any]:
    """The fields of the running code; empty outside of runs."""
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
    """Whether user code in a run made the record, or the record is about a run."""
    return "run_id" in vars(record)


def name_of(task: "pb.Task") -> str:
    """The name of a run in log lines."""
    own_id = f" {task.workflow_id!r}" if task.workflow_id not in ("", task.run_id) else ""
    where = "" if task.namespace_id in ("", DEFAULT_NAMESPACE) else f" of namespace {task.namespace_id}"
    return f"{task.workflow_type}{own_id}, run {task.run_id}{where}"

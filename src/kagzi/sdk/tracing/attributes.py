"""Names and attributes of spans, the same for live spans and those from history. No payloads."""

from typing import NamedTuple

from ...v1.worker_pb2 import Task

Attributes = dict[str, str | int]

SCOPE = "kagzi"
"""The instrumentation scope of all spans."""
ERROR_TYPE = "error.type"
RUN_ID = "kagzi.run.id"
MESSAGE_ID = "messaging.message.id"
WORKFLOW_ID = "kagzi.workflow.id"
CLAIM = "kagzi.claim"


def start_name(workflow_type: str) -> str:
    return f"start {workflow_type}"


def run_name(workflow_type: str) -> str:
    return f"run {workflow_type}"


def step_name(name: str) -> str:
    return f"step {name}"


def start_attributes(namespace: str, workflow_type: str, *, workflow_id: str = "", run_id: str = "") -> Attributes:
    """The attributes of a start. Ids may not be known yet."""
    made: Attributes = {
        "messaging.system": "kagzi",
        "messaging.operation.type": "send",
        "messaging.destination.name": workflow_type,
        "kagzi.namespace": namespace,
    }
    return made | start_ids(workflow_id, run_id)


def start_ids(workflow_id: str, run_id: str) -> Attributes:
    ids: Attributes = {MESSAGE_ID: run_id, WORKFLOW_ID: workflow_id}
    return {name: value for name, value in ids.items() if value}


class TracedRun(NamedTuple):
    """What spans record about their run."""

    run_id: str
    namespace: str
    workflow_type: str
    workflow_id: str
    version: str


def traced_run(task: Task) -> TracedRun:
    return TracedRun(task.run_id, task.namespace_id, task.workflow_type, task.workflow_id, task.version)


def stretch_attributes(run: TracedRun, worker_id: str, claim: int) -> Attributes:
    """The attributes of a stretch: the work on a run from one claim until the worker releases it."""
    made: Attributes = {
        "messaging.system": "kagzi",
        "messaging.operation.type": "process",
        "messaging.destination.name": run.workflow_type,
        MESSAGE_ID: run.run_id,
        "kagzi.namespace": run.namespace,
        WORKFLOW_ID: run.workflow_id,
        "kagzi.workflow.version": run.version,
        "kagzi.worker.id": worker_id,
        CLAIM: claim,
    }
    return {name: value for name, value in made.items() if value != ""}


def common_step_attributes(run: TracedRun, worker_id: str) -> Attributes:
    """The common attributes of all function steps in one stretch. The parent span has the others."""
    made: Attributes = {RUN_ID: run.run_id, "kagzi.step.kind": "function"}
    if worker_id:
        made["kagzi.worker.id"] = worker_id
    return made


def step_attributes(common: Attributes, step_id: str, attempt: int) -> Attributes:
    """The attributes of one attempt; `common`: see `common_step_attributes`."""
    return {**common, "kagzi.step.id": step_id, "kagzi.step.attempt": attempt}

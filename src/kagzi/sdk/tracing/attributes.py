"""Names and attributes of spans: the same for those that are made live and those from history. No payloads."""

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
    """Of a start. Ids may not be known yet."""
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
    """What spans say of their run."""

    run_id: str
    namespace: str
    workflow_type: str
    workflow_id: str
    version: str


def traced_run(task: Task) -> TracedRun:
    return TracedRun(task.run_id, task.namespace_id, task.workflow_type, task.workflow_id, task.version)


def stretch_attributes(run: TracedRun, worker_id: str, claim: int) -> Attributes:
    """Of the work on a run from one claim until the worker lets go."""
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
    """Of all steps that are functions in one stretch. The rest is said by the span that they hang on."""
    made: Attributes = {RUN_ID: run.run_id, "kagzi.step.kind": "function"}
    if worker_id:
        made["kagzi.worker.id"] = worker_id
    return made


def step_attributes(common: Attributes, step_id: str, attempt: int) -> Attributes:
    """Of one attempt; `common`: see above."""
    return {**common, "kagzi.step.id": step_id, "kagzi.step.attempt": attempt}

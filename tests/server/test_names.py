"""Names of workflows: `my_flow` and `my-flow` are one, in every call that takes one; and names that nobody serves are
said."""

from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf.descriptor import Descriptor

from kagzi import Kagzi
from kagzi.server.grpc.registration import SERVICES
from kagzi.v1 import admin_pb2, workflow_pb2, workflow_schedule_pb2
from kagzi.v1.workflow_schedule_pb2_grpc import WorkflowScheduleServiceStub
from tests.server.stubs import TIMEOUT_S, Stubs, leased

FIELDS = {"workflow_type", "workflow_types", "task_queue"}
# A child is started in the spelling of its parent; a session and a bulk operation read what Register and a list read.
ELSEWHERE = {"StartChild", "Session", "StartBulkOperation"}


def takes_names(message: Descriptor, seen: tuple[Descriptor, ...] = ()) -> bool:
    return any(
        field.name in FIELDS
        or (
            field.message_type is not None
            and field.message_type not in seen
            and takes_names(field.message_type, (*seen, field.message_type))
        )
        for field in message.fields
    )


def methods_with_names() -> Iterator[str]:
    for service in SERVICES:
        yield from (method.name for method in service.methods if takes_names(method.input_type))


class Calls:
    """Every call, by its name; notes which were made."""

    def __init__(self, stubs: Stubs) -> None:
        schedules = WorkflowScheduleServiceStub(stubs.channel)
        self._stubs: tuple[Any, ...] = (stubs.workflows, stubs.workers, stubs.admin, schedules)
        self._requests = {
            method.name: method.input_type._concrete_class for service in SERVICES for method in service.methods
        }
        self.made: set[str] = set()

    async def __call__(self, method: str, **fields: Any) -> Any:
        self.made.add(method)
        stub = next(stub for stub in self._stubs if hasattr(stub, method))
        return await getattr(stub, method)(self._requests[method](**fields), timeout=TIMEOUT_S)


@pytest.mark.parametrize(("registered", "typed"), [("my_flow", "my-flow"), ("my-flow", "my_flow")])
async def test_both_spellings_are_one_name_in_every_call(memory_stubs: Stubs, registered: str, typed: str) -> None:
    call = Calls(memory_stubs)
    worker = (await call("Register", workflow_types=[registered], task_queue=registered)).worker_id
    where = workflow_pb2.WorkflowFilter(workflow_types=[typed])
    await call("UpdateWorkflowType", type=admin_pb2.WorkflowType(workflow_type=typed, max_running=5))
    for method in ("PauseWorkflowType", "ResumeWorkflowType"):
        assert (await call(method, workflow_type=typed)).type.max_running == 5
    (known,) = (await call("ListWorkflowTypes", workflow_type=typed)).types
    assert (known.workflow_type, list(known.versions), known.max_running) == ("my-flow", ["1"], 5)
    assert len((await call("ListVersions", workflow_type=typed)).versions) == 1
    await call("SetDefaultVersion", workflow_type=typed, version="1")
    assert (await call("GetWorkflowSchema", workflow_type=typed)).schema.version == "1"
    await call("DeprecateVersion", workflow_type=typed, version="1", undo=True)
    assert len((await call("ListWorkers", task_queue=typed)).workers) == 1

    start = workflow_pb2.StartWorkflowRequest(workflow_type=typed, task_queue=typed, workflow_id="id")
    await call("StartWorkflow", workflow_type=typed)
    await call("StartBatch", starts=[start])
    await call("SignalWithStart", start=start, signal_name="go")
    assert (await call("GetQueueDepth", workflow_type=typed)).queues[0].waiting == 2
    assert (await call("CountWorkflows", filter=where)).count == 2
    assert len((await call("ListWorkflows", filter=where)).workflows) == 2
    task = await call("PollTask", worker_id=worker, workflow_types=[registered], task_queue=registered)
    assert (await memory_stubs.get(leased(task)["run_id"])).workflow_type == "my-flow"
    await call("GetStats", workflow_type=typed)

    at = {"schedule_id": "s", "cron_expr": "0 6 * * *", "workflow_type": typed, "task_queue": typed}
    assert (await call("CreateWorkflowSchedule", **at)).schedule.workflow_type == "my-flow"
    schedule_request = workflow_schedule_pb2.CreateWorkflowScheduleRequest(**at)
    assert not (await call("UpsertWorkflowSchedule", schedule=schedule_request)).created
    updated = await call("UpdateWorkflowSchedule", schedule_id="s", workflow_type=typed, task_queue=typed)
    assert (updated.schedule.workflow_type, updated.warning) == ("my-flow", "")
    assert len((await call("ListWorkflowSchedules", task_queue=typed)).schedules) == 1
    assert call.made | ELSEWHERE == set(methods_with_names())


async def test_what_nobody_serves_is_reported_in_the_answers(stubs: Stubs) -> None:
    """On a store each: whoever is there is read from it."""
    call = Calls(stubs)
    await call("Register", workflow_types=["type-flow"])
    assert (await call("StartWorkflow", workflow_type="type-flow")).warning == ""
    batch = await call(
        "StartBatch",
        starts=[workflow_pb2.StartWorkflowRequest(workflow_type=name) for name in ("typo-flow", "type-flow")],
    )
    assert [item.started.warning for item in batch.items] == [
        "No worker serves 'typo-flow'. Did you mean 'type-flow'? The run waits until one does.",
        "",
    ]


async def test_a_schedule_and_limits_of_what_nobody_serves_are_accepted_and_reported(memory_stubs: Stubs) -> None:
    call = Calls(memory_stubs)
    created = await call("CreateWorkflowSchedule", schedule_id="s", cron_expr="0 6 * * *", workflow_type="none")
    assert created.warning == "No worker serves 'none': none is connected. Its runs will wait until one does."
    limits = admin_pb2.WorkflowType(workflow_type="none", max_running=5)
    limited = await call("UpdateWorkflowType", type=limits, namespace_id="other")
    assert limited.warning == "No worker serves 'none': none is connected. The setting takes effect when one does."


async def test_an_imported_run_gets_the_spelling_that_workers_register(memory_stubs: Stubs) -> None:
    started = await memory_stubs.start("my-flow", workflow_id="id")
    here = Kagzi.connect(memory_stubs.address)
    there = Kagzi.connect(memory_stubs.address, namespace="there")
    async with here as client, there as other:
        lines = [line async for line in client.export(started.run_id)]
        older = [line.replace(b'"my-flow"', b'"my_flow"') for line in lines]
        assert older != lines
        (run,) = [run async for run in other.import_runs(older)]
        assert (await other.get(run.id).info()).workflow == "my-flow"

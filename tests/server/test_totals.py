"""The total of a list is that of its filters, on both stores."""

from typing import Any

from google.protobuf.duration_pb2 import Duration

from kagzi.v1 import admin_pb2, common_pb2, worker_pb2, workflow_schedule_pb2, workflow_schedule_pb2_grpc
from tests.server.stubs import TIMEOUT_S, Stubs, leased

COUNTED = common_pb2.PageRequest(page_size=1, include_total_count=True)


async def test_totals_obey_the_filters(stubs: Stubs) -> None:
    async def total(call: Any, request: Any) -> int:
        request.page.CopyFrom(COUNTED)
        return (await call(request, timeout=TIMEOUT_S)).page.total_count

    first = await stubs.register("a")
    await stubs.register("b")
    await stubs.register("a", "b")
    await stubs.workers.Deregister(worker_pb2.DeregisterRequest(worker_id=first), timeout=TIMEOUT_S)
    offline, online = worker_pb2.WORKER_STATUS_OFFLINE, worker_pb2.WORKER_STATUS_ONLINE
    workers = [
        {},
        {"task_queue": "a"},
        {"status_filter": online},
        {"status_filter": offline},
        {"task_queue": "b", "status_filter": online},
        {"task_queue": "c"},
        {"namespace_id": "other"},
    ]
    totals = [await total(stubs.admin.ListWorkers, admin_pb2.ListWorkersRequest(**each)) for each in workers]
    assert totals == [3, 2, 2, 1, 2, 0, 0]

    request = admin_pb2.ListWorkerEventsRequest
    everything = await total(stubs.admin.ListWorkerEvents, request())
    of_one = await total(stubs.admin.ListWorkerEvents, request(worker_id=first))
    assert 0 < of_one < everything

    assert await total(stubs.admin.ListVersions, admin_pb2.ListVersionsRequest()) == 2
    assert await total(stubs.admin.ListVersions, admin_pb2.ListVersionsRequest(workflow_type="a")) == 1
    assert await total(stubs.admin.ListWorkflowTypes, admin_pb2.ListWorkflowTypesRequest()) == 2

    task = await stubs.claim()
    for number in range(3):
        step = {**leased(task), "step_id": f"s{number}", "step_name": "first" if number == 0 else "other"}
        await stubs.workers.BeginStep(worker_pb2.BeginStepRequest(**step), timeout=TIMEOUT_S)
    steps = [{}, {"step_name": "other"}, {"step_name": "none"}]
    totals = [
        await total(stubs.admin.ListSteps, admin_pb2.ListStepsRequest(run_id=task.run_id, **each)) for each in steps
    ]
    assert totals == [3, 2, 0]

    schedules: Any = workflow_schedule_pb2_grpc.WorkflowScheduleServiceStub(stubs.channel)
    for schedule_id, workflow_type in (("x", "a"), ("y", "a"), ("z", "b")):
        created = workflow_schedule_pb2.CreateWorkflowScheduleRequest(
            schedule_id=schedule_id, workflow_type=workflow_type, interval=Duration(seconds=60), enabled=False
        )
        await schedules.CreateWorkflowSchedule(created, timeout=TIMEOUT_S)
    listing = workflow_schedule_pb2.ListWorkflowSchedulesRequest
    assert await total(schedules.ListWorkflowSchedules, listing()) == 3
    assert await total(schedules.ListWorkflowSchedules, listing(task_queue="a")) == 2

"""For every method: how to name in it what belongs to another namespace."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import grpc
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from kagzi.v1 import admin_pb2, common_pb2, worker_pb2, workflow_pb2, workflow_schedule_pb2
from tests.server.apart_world import THEIRS, Names, admin, schedules, workers, workflows
from tests.server.stubs import json_payload

NOT_FOUND = grpc.StatusCode.NOT_FOUND
INVALID = grpc.StatusCode.INVALID_ARGUMENT
OK = grpc.StatusCode.OK


class Case(NamedTuple):
    """What to ask, with the names of ours or of nothing. `code`: how both are answered. `new`: something is made in
    their own namespace, so that the answers differ in what was drawn."""

    ask: Callable[[Names], Sequence[Message]]
    code: grpc.StatusCode = NOT_FOUND
    new: bool = False
    until: int = 0


CASES: dict[str, list[Case]] = {}


def case(path: str, ask: Callable[[Names], Message | Sequence[Message]], **options: Any) -> None:
    def requests(names: Names) -> Sequence[Message]:
        request = ask(names)
        return [request] if isinstance(request, Message) else request

    CASES.setdefault(path, []).append(Case(requests, **options))


def of_run(path: str, request: Any, **fields: Any) -> None:
    """A method that names a run: by its id, and by its workflow id if it can."""
    case(path, lambda names: request(namespace_id=THEIRS, run_id=names.run_id, **fields))
    if "workflow_id" in request.DESCRIPTOR.fields_by_name and "from_step" not in fields:
        case(path, lambda names: request(namespace_id=THEIRS, workflow_id=names.workflow_id, **fields))


def leased(names: Names) -> dict[str, Any]:
    return {"namespace_id": THEIRS, "run_id": names.run_id, "lease": names.lease}


def of_lease(path: str, request: Any, fields: Callable[[Names], dict[str, Any]] = lambda _: {}, **options: Any) -> None:
    case(path, lambda names: request(**leased(names), **fields(names)), **options)


def a_start(names: Names, **fields: Any) -> workflow_pb2.StartWorkflowRequest:
    return workflow_pb2.StartWorkflowRequest(
        namespace_id=THEIRS, workflow_type=names.workflow_type, workflow_id=names.workflow_id, **fields
    )


def page(token: str) -> common_pb2.PageRequest:
    return common_pb2.PageRequest(page_size=10, page_token=token)


# --- runs, as clients see them ----------------------------------------------------------------------------------------

case(workflows("StartWorkflow"), lambda names: a_start(names, request_id=names.request_id), code=OK, new=True)
case(
    workflows("StartBatch"),
    lambda names: workflow_pb2.StartBatchRequest(namespace_id=THEIRS, starts=[a_start(names)]),
    code=OK,
    new=True,
)
case(
    workflows("SignalWithStart"),
    lambda names: workflow_pb2.SignalWithStartRequest(namespace_id=THEIRS, start=a_start(names), signal_name="s"),
    code=OK,
    new=True,
)
of_run(workflows("GetWorkflow"), workflow_pb2.GetWorkflowRequest)
of_run(workflows("CancelWorkflow"), workflow_pb2.CancelWorkflowRequest)
of_run(workflows("TerminateWorkflow"), workflow_pb2.TerminateWorkflowRequest)
of_run(workflows("PauseWorkflow"), workflow_pb2.PauseWorkflowRequest)
of_run(workflows("ResumeWorkflow"), workflow_pb2.ResumeWorkflowRequest)
of_run(workflows("AdoptWorkflow"), workflow_pb2.AdoptWorkflowRequest)
of_run(workflows("ExplainWorkflow"), workflow_pb2.ExplainWorkflowRequest)
of_run(workflows("Wait"), workflow_pb2.WaitRequest, timeout=Duration())
of_run(workflows("SignalWorkflow"), workflow_pb2.SignalWorkflowRequest, signal_name="approved")
of_run(workflows("ReplaceSignal"), workflow_pb2.ReplaceSignalRequest, signal_name="approved", drop=True)
of_run(workflows("WakeStep"), workflow_pb2.WakeStepRequest)
case(
    workflows("RetryWorkflow"),
    lambda names: workflow_pb2.RetryWorkflowRequest(namespace_id=THEIRS, run_id=names.ended_run),
)
case(
    workflows("ForkWorkflow"),
    lambda names: workflow_pb2.ForkWorkflowRequest(
        namespace_id=THEIRS, run_id=names.run_id, from_step=names.step_id, workflow_id="forked"
    ),
)
case(workflows("Watch"), lambda names: workflow_pb2.WatchRequest(namespace_id=THEIRS, run_id=names.run_id))
case(
    workflows("WaitStream"),
    lambda names: workflow_pb2.WaitStreamRequest(namespace_id=THEIRS, run_ids=[names.run_id, names.ended_run]),
    code=OK,
)


def of_filter(where: Callable[[Names], workflow_pb2.WorkflowFilter]) -> None:
    case(
        workflows("ListWorkflows"),
        lambda names: workflow_pb2.ListWorkflowsRequest(namespace_id=THEIRS, filter=where(names)),
        code=OK,
    )
    case(
        workflows("CountWorkflows"),
        lambda names: workflow_pb2.CountWorkflowsRequest(namespace_id=THEIRS, filter=where(names)),
        code=OK,
    )


of_filter(lambda names: workflow_pb2.WorkflowFilter(workflow_id=names.workflow_id))
of_filter(lambda names: workflow_pb2.WorkflowFilter(workflow_types=[names.workflow_type]))
of_filter(lambda names: workflow_pb2.WorkflowFilter(labels={"label": names.label}))
of_filter(lambda names: workflow_pb2.WorkflowFilter(parent_run_id=names.run_id))
of_filter(lambda names: workflow_pb2.WorkflowFilter(schedule_id=names.schedule_id))
of_filter(lambda names: workflow_pb2.WorkflowFilter(version=names.version))
case(
    workflows("ListWorkflows"),
    lambda names: workflow_pb2.ListWorkflowsRequest(namespace_id=THEIRS, page=page(names.runs_token)),
    code=INVALID,
)
case(
    workflows("StartBulkOperation"),
    lambda names: workflow_pb2.StartBulkOperationRequest(
        namespace_id=THEIRS,
        action=workflow_pb2.BULK_ACTION_TERMINATE,
        filter=workflow_pb2.WorkflowFilter(labels={"label": names.label}),
        request_id=names.request_id,
    ),
    code=OK,
    new=True,
)
case(
    workflows("GetBulkOperation"),
    lambda names: workflow_pb2.GetBulkOperationRequest(namespace_id=THEIRS, operation_id=names.operation_id),
)
case(
    workflows("StopBulkOperation"),
    lambda names: workflow_pb2.StopBulkOperationRequest(namespace_id=THEIRS, operation_id=names.operation_id),
)
case(
    workflows("ListBulkOperations"),
    lambda names: workflow_pb2.ListBulkOperationsRequest(namespace_id=THEIRS, page=page(names.runs_token)),
    code=INVALID,
)
case(
    workflows("ExportWorkflow"),
    lambda names: workflow_pb2.ExportWorkflowRequest(namespace_id=THEIRS, run_id=names.run_id),
)

# --- workers ----------------------------------------------------------------------------------------------------------

case(
    workers("Register"),
    lambda names: worker_pb2.RegisterRequest(
        namespace_id=THEIRS, workflow_types=[names.workflow_type], worker_id=names.worker_id
    ),
    code=OK,
    new=True,
)
case(
    workers("Heartbeat"),
    lambda names: worker_pb2.HeartbeatRequest(
        namespace_id=THEIRS,
        worker_id=names.worker_id + "-never-registered-here",
        leased=[worker_pb2.LeasedRun(run_id=names.run_id, lease=names.lease)],
    ),
    code=OK,
)
case(
    workers("Heartbeat"),
    lambda names: worker_pb2.HeartbeatRequest(
        namespace_id=THEIRS,
        worker_id="their-worker",
        leased=[worker_pb2.LeasedRun(run_id=names.run_id, lease=names.lease)],
    ),
    code=OK,
)
case(
    workers("Deregister"),
    lambda names: worker_pb2.DeregisterRequest(namespace_id=THEIRS, worker_id=names.worker_id),
)
case(
    workers("Deregister"),
    lambda names: worker_pb2.DeregisterRequest(namespace_id=THEIRS, worker_id=names.worker_id, drain=True),
)
case(
    workers("PollTask"),
    lambda names: worker_pb2.PollTaskRequest(
        namespace_id=THEIRS, worker_id=names.worker_id, workflow_types=[names.workflow_type], wait=Duration()
    ),
)
of_lease(
    workers("BeginStep"),
    worker_pb2.BeginStepRequest,
    lambda _: {"step_id": "new", "step_name": "new", "kind": worker_pb2.STEP_KIND_FUNCTION},
)
of_lease(
    workers("CompleteStep"),
    worker_pb2.CompleteStepRequest,
    lambda names: {"step_id": names.step_id, "attempt": 1, "output": json_payload("1")},
)
of_lease(
    workers("FailStep"),
    worker_pb2.FailStepRequest,
    lambda names: {"step_id": names.step_id, "attempt": 1, "error": common_pb2.ErrorDetail(message="no")},
)
of_lease(workers("CompleteWorkflow"), worker_pb2.CompleteWorkflowRequest)
of_lease(
    workers("FailWorkflow"), worker_pb2.FailWorkflowRequest, lambda _: {"error": common_pb2.ErrorDetail(message="no")}
)
of_lease(workers("Sleep"), worker_pb2.SleepRequest, lambda _: {"step_id": "nap", "duration": Duration(seconds=60)})
of_lease(workers("GetHistory"), worker_pb2.GetHistoryRequest, code=grpc.StatusCode.ABORTED)
of_lease(workers("Park"), worker_pb2.ParkRequest, lambda _: {"known_seq": 1_000})
of_lease(workers("Release"), worker_pb2.ReleaseRequest)
of_lease(workers("WaitSignal"), worker_pb2.WaitSignalRequest, lambda _: {"step_id": "w", "signal_name": "approved"})
of_lease(
    workers("StartChild"),
    worker_pb2.StartChildRequest,
    lambda names: {
        "step_id": "child",
        "start": workflow_pb2.StartWorkflowRequest(workflow_type=names.workflow_type, workflow_id=names.workflow_id),
        "attach": True,
    },
)
case(
    workers("Session"),
    lambda names: [
        worker_pb2.SessionRequest(
            hello=worker_pb2.SessionHello(
                register=worker_pb2.RegisterRequest(
                    namespace_id=THEIRS, workflow_types=["their-type"], worker_id="0191e000-0000-4000-8000-00000000000f"
                ),
                leased=[worker_pb2.LeasedRun(run_id=names.run_id, lease=names.lease)],
            )
        ),
        worker_pb2.SessionRequest(
            runs=[
                worker_pb2.RunOperations(
                    run_id=names.run_id,
                    lease=names.lease,
                    operations=[
                        worker_pb2.Operation(id=1, begin_step=worker_pb2.BeginStepOperation(step_id="new")),
                        worker_pb2.Operation(id=2, complete_run=worker_pb2.CompleteRunOperation()),
                    ],
                )
            ],
            heartbeat=[worker_pb2.LeasedRun(run_id=names.run_id, lease=names.lease)],
        ),
    ],
    code=OK,
    new=True,
    until=2,
)

# --- schedules --------------------------------------------------------------------------------------------------------


def a_schedule(names: Names) -> workflow_schedule_pb2.CreateWorkflowScheduleRequest:
    return workflow_schedule_pb2.CreateWorkflowScheduleRequest(
        namespace_id=THEIRS,
        schedule_id=names.schedule_id,
        workflow_type="their-type",
        interval=Duration(seconds=7200),
    )


def of_schedule(name: str, request: Any, **fields: Any) -> None:
    case(schedules(name), lambda names: request(namespace_id=THEIRS, schedule_id=names.schedule_id, **fields))


of_schedule("GetWorkflowSchedule", workflow_schedule_pb2.GetWorkflowScheduleRequest)
of_schedule("PauseWorkflowSchedule", workflow_schedule_pb2.PauseWorkflowScheduleRequest)
of_schedule("ResumeWorkflowSchedule", workflow_schedule_pb2.ResumeWorkflowScheduleRequest)
of_schedule("TriggerWorkflowSchedule", workflow_schedule_pb2.TriggerWorkflowScheduleRequest)
of_schedule("PreviewWorkflowSchedule", workflow_schedule_pb2.PreviewWorkflowScheduleRequest)
of_schedule("ListWorkflowScheduleRuns", workflow_schedule_pb2.ListWorkflowScheduleRunsRequest)
of_schedule("UpdateWorkflowSchedule", workflow_schedule_pb2.UpdateWorkflowScheduleRequest, enabled=False)
case(
    schedules("DeleteWorkflowSchedule"),
    lambda names: workflow_schedule_pb2.DeleteWorkflowScheduleRequest(
        namespace_id=THEIRS, schedule_id=names.schedule_id
    ),
    code=OK,
)
of_schedule(
    "BackfillWorkflowSchedule",
    workflow_schedule_pb2.BackfillWorkflowScheduleRequest,
    **{"from": Timestamp(seconds=1_700_000_000), "to": Timestamp(seconds=1_700_003_600)},
)
case(
    schedules("ListWorkflowSchedules"),
    lambda names: workflow_schedule_pb2.ListWorkflowSchedulesRequest(
        namespace_id=THEIRS, task_queue=names.workflow_type
    ),
    code=OK,
)
case(
    schedules("ListWorkflowSchedules"),
    lambda names: workflow_schedule_pb2.ListWorkflowSchedulesRequest(namespace_id=THEIRS, page=page(names.runs_token)),
    code=INVALID,
)
case(schedules("CreateWorkflowSchedule"), a_schedule, code=OK, new=True)
case(
    schedules("UpsertWorkflowSchedule"),
    lambda names: workflow_schedule_pb2.UpsertWorkflowScheduleRequest(namespace_id=THEIRS, schedule=a_schedule(names)),
    code=OK,
    new=True,
)

# --- for those who run Kagzi ------------------------------------------------------------------------------------------

case(admin("GetWorker"), lambda names: admin_pb2.GetWorkerRequest(namespace_id=THEIRS, worker_id=names.worker_id))
case(admin("DrainWorker"), lambda names: admin_pb2.DrainWorkerRequest(namespace_id=THEIRS, worker_id=names.worker_id))
case(
    admin("ListWorkers"),
    lambda names: admin_pb2.ListWorkersRequest(namespace_id=THEIRS, task_queue=names.workflow_type),
    code=OK,
)
case(
    admin("ListWorkerEvents"),
    lambda names: admin_pb2.ListWorkerEventsRequest(namespace_id=THEIRS, worker_id=names.worker_id),
)
case(
    admin("GetStep"),
    lambda names: admin_pb2.GetStepRequest(namespace_id=THEIRS, run_id=names.run_id, step_id=names.step_id),
)
case(admin("ListSteps"), lambda names: admin_pb2.ListStepsRequest(namespace_id=THEIRS, run_id=names.run_id))
case(
    admin("ListSteps"),
    lambda names: admin_pb2.ListStepsRequest(namespace_id=THEIRS, run_id=names.run_id, forgotten=True),
)
case(admin("GetTimeline"), lambda names: admin_pb2.GetTimelineRequest(namespace_id=THEIRS, run_id=names.run_id))
case(
    admin("ListSteps"),
    lambda names: admin_pb2.ListStepsRequest(namespace_id=THEIRS, run_id=names.run_id, page=page(names.steps_token)),
    code=INVALID,
)
case(
    admin("GetStats"),
    lambda names: admin_pb2.GetStatsRequest(namespace_id=THEIRS, workflow_type=names.workflow_type),
    code=OK,
)
case(
    admin("GetQueueDepth"),
    lambda names: admin_pb2.GetQueueDepthRequest(namespace_id=THEIRS, workflow_type=names.workflow_type),
    code=OK,
)
case(
    admin("ListWorkflowTypes"),
    lambda names: admin_pb2.ListWorkflowTypesRequest(namespace_id=THEIRS, workflow_type=names.workflow_type),
    code=OK,
)
case(
    admin("UpdateWorkflowType"),
    lambda names: admin_pb2.UpdateWorkflowTypeRequest(
        namespace_id=THEIRS,
        type=admin_pb2.WorkflowType(workflow_type=names.workflow_type, max_running=1),
        fields=["max_running"],
    ),
    code=OK,
)
case(
    admin("PauseWorkflowType"),
    lambda names: admin_pb2.PauseWorkflowTypeRequest(namespace_id=THEIRS, workflow_type=names.workflow_type),
    code=OK,
)
case(
    admin("ResumeWorkflowType"),
    lambda names: admin_pb2.ResumeWorkflowTypeRequest(namespace_id=THEIRS, workflow_type=names.workflow_type),
    code=OK,
)
case(
    admin("ListVersions"),
    lambda names: admin_pb2.ListVersionsRequest(namespace_id=THEIRS, workflow_type=names.workflow_type),
    code=OK,
)
case(
    admin("SetDefaultVersion"),
    lambda names: admin_pb2.SetDefaultVersionRequest(
        namespace_id=THEIRS, workflow_type=names.workflow_type, version=names.version
    ),
)
case(
    admin("ListStepLogs"),
    lambda names: admin_pb2.ListStepLogsRequest(namespace_id=THEIRS, run_id=names.run_id),
)
case(
    admin("GetWorkflowSchema"),
    lambda names: admin_pb2.GetWorkflowSchemaRequest(
        namespace_id=THEIRS, workflow_type=names.workflow_type, version=names.version
    ),
)
case(
    admin("DeprecateVersion"),
    lambda names: admin_pb2.DeprecateVersionRequest(
        namespace_id=THEIRS, workflow_type=names.workflow_type, version=names.version
    ),
)
case(
    admin("GetWorkflowSchema"),
    lambda names: admin_pb2.GetWorkflowSchemaRequest(
        namespace_id=THEIRS, workflow_type=names.workflow_type, version=names.version
    ),
)

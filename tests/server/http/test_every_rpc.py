"""What can be done over gRPC can be done over HTTP: each RPC has a route, and each field of its request a place in it.

A new RPC or a new field without one fails here."""

from typing import Any

import msgspec
import pytest
from google.protobuf.descriptor import Descriptor, MethodDescriptor

from kagzi.server.access.scopes import NEEDS
from kagzi.server.grpc.registration import SERVICES, path_of
from kagzi.server.http.route import Route
from kagzi.server.http.routes import routes
from kagzi.server.http.views.field_names import field_name

OF_WORKERS = "kagzi.v1.WorkerService"  # a protocol of its own, which only workers speak

ROUTES_OF: dict[str, str] = {
    "StartWorkflow": "POST /runs",
    "GetWorkflow": "GET /runs/{run}",
    "ListWorkflows": "GET /runs",
    "CancelWorkflow": "POST /runs/{run}/cancel",
    "StartBatch": "POST /runs/batch",
    "Wait": "GET /runs/{run}/wait",
    "WaitStream": "GET /runs/{run}/wait",
    "Watch": "GET /runs/{run}/events",
    "TerminateWorkflow": "POST /runs/{run}/terminate",
    "PauseWorkflow": "POST /runs/{run}/pause",
    "ResumeWorkflow": "POST /runs/{run}/resume",
    "AdoptWorkflow": "POST /runs/{run}/adopt",
    "RetryWorkflow": "POST /runs/{run}/retry",
    "ForkWorkflow": "POST /runs/{run}/fork",
    "WakeStep": "POST /runs/{run}/step/wake",
    "SignalWorkflow": "POST /runs/{run}/signal",
    "ReplaceSignal": "POST /runs/{run}/replace-signal",
    "SignalWithStart": "POST /runs/signal-with-start",
    "CountWorkflows": "GET /runs",
    "ExplainWorkflow": "GET /runs/{run}/explain",
    "StartBulkOperation": "POST /operations",
    "GetBulkOperation": "GET /operations/{operation}",
    "StopBulkOperation": "POST /operations/{operation}/stop",
    "ListBulkOperations": "GET /operations",
    "ExportWorkflow": "GET /runs/{run}/export",
    "ImportWorkflow": "POST /runs/import",
    "CreateWorkflowSchedule": "POST /schedules",
    "GetWorkflowSchedule": "GET /schedules/{schedule}",
    "ListWorkflowSchedules": "GET /schedules",
    "UpdateWorkflowSchedule": "PATCH /schedules/{schedule}",
    "DeleteWorkflowSchedule": "DELETE /schedules/{schedule}",
    "UpsertWorkflowSchedule": "PUT /schedules/{schedule}",
    "PauseWorkflowSchedule": "POST /schedules/{schedule}/pause",
    "ResumeWorkflowSchedule": "POST /schedules/{schedule}/resume",
    "TriggerWorkflowSchedule": "POST /schedules/{schedule}/trigger",
    "BackfillWorkflowSchedule": "POST /schedules/{schedule}/backfill",
    "PreviewWorkflowSchedule": "POST /schedules/preview",
    "ListWorkflowScheduleRuns": "GET /schedules/{schedule}/fires",
    "ListWorkers": "GET /workers",
    "GetWorker": "GET /workers/{worker}",
    "GetStep": "GET /runs/{run}/step",
    "ListSteps": "GET /runs/{run}/steps",
    "GetTimeline": "GET /runs/{run}/timeline",
    "ListStepLogs": "GET /runs/{run}/step/logs",
    "HealthCheck": "GET /server/health",
    "GetServerInfo": "GET /server",
    "DrainWorker": "POST /workers/{worker}/drain",
    "ListWorkerEvents": "GET /worker-events",
    "GetStats": "GET /stats",
    "GetQueueDepth": "GET /queues",
    "ListWorkflowTypes": "GET /workflows",
    "UpdateWorkflowType": "PATCH /workflows/{workflow}",
    "PauseWorkflowType": "POST /workflows/{workflow}/pause",
    "ResumeWorkflowType": "POST /workflows/{workflow}/resume",
    "GetWorkflowSchema": "GET /workflows/{workflow}/schema",
    "ListVersions": "GET /versions",
    "SetDefaultVersion": "POST /workflows/{workflow}/versions/{version}/default",
    "DeprecateVersion": "POST /workflows/{workflow}/versions/{version}/deprecate",
    "CreateNamespace": "POST /namespaces",
    "GetNamespace": "GET /namespaces/{namespace}",
    "ListNamespaces": "GET /namespaces",
    "UpdateNamespace": "PATCH /namespaces/{namespace}",
    "DeleteNamespace": "DELETE /namespaces/{namespace}",
    "CreateKey": "POST /keys",
    "ListKeys": "GET /keys",
    "RotateKey": "POST /keys/{key_id}/rotate",
    "RevokeKey": "DELETE /keys/{key_id}",
    "ListAudit": "GET /audit",
}

EVERYWHERE = frozenset({"namespace", "request_id", "Idempotency-Key"})
"""Of every route: `?namespace=`, and the header Idempotency-Key."""

OTHER_NAMES = {
    "run_id": "run",
    "workflow_id": "run",  # `workflow_id:x` names the latest run
    "worker_id": "worker",
    "operation_id": "operation",
    "status_filter": "status",
    "step_name": "name",
    "enabled": "paused",
    "include_payloads": "payloads",
    "include_total_count": "count",
}
OF_A_FILTER = {
    "statuses": "status",
    "labels": "label",
    "workflow_id": "id",
    "parent_run_id": "parent",
    "concurrency_key": "key",
    "has_problem": "problem",
    "run_ids": "run",
}
ELSEWHERE = ""
"""The place of what is said in another way, or by the server only."""
OF_THE_SERVER = dict.fromkeys(("created_at", "deleting", "stored_bytes", "stored_bytes_at"), ELSEWHERE)
OF_METHODS: dict[str, dict[str, str]] = {
    "StartWorkflow": {"workflow_id": "workflow_id"},
    "ForkWorkflow": {"workflow_id": "workflow_id"},
    "ListWorkflows": OF_A_FILTER,
    "CountWorkflows": OF_A_FILTER,
    "StartBatch": {"items": "starts", "wait_stream_id": ELSEWHERE, "waited": ELSEWHERE},
    "WaitStream": dict.fromkeys(("stream_id", "forget", "run_ids", "runs"), ELSEWHERE),
    "SignalWithStart": {"payload": "signal", "name": "signal"},
    "ImportWorkflow": {"json": ELSEWHERE},  # the body itself
    "GetStep": {"step_id": "id"},
    "ListStepLogs": {"step_id": "id"},
    "GetTimeline": {"statuses": "status", "kinds": "kind"},
    "WakeStep": {"step_id": "id"},
    "Watch": {"after_seq": "after"},
    "UpdateWorkflowSchedule": {"set_labels": ELSEWHERE},  # labels that are given are set
    "PreviewWorkflowSchedule": {"schedule": ELSEWHERE},  # GET /schedules/{schedule}/preview
    "ListWorkerEvents": {"worker_id": "worker_id"},
    "ListWorkflowTypes": {"workflow": ELSEWHERE},  # GET /workflows/{workflow}
    "UpdateWorkflowType": dict.fromkeys(("fields", "default_version", "versions", "open_runs"), ELSEWHERE),
    "CreateNamespace": {**OF_THE_SERVER, "enabled": ELSEWHERE},
    "UpdateNamespace": {**OF_THE_SERVER, "enabled": "enabled", "fields": ELSEWHERE},
}
NESTED = {
    *("PageRequest", "WorkflowFilter", "WorkflowType", "Namespace", "NamespaceLimits"),
    "CreateWorkflowScheduleRequest",
}
"""Messages whose fields are the route's own, unless it has a field for the whole."""

TABLE = {f"{route.method} {route.path}": route for route in routes()}
METHODS = [method for service in SERVICES if service.full_name != OF_WORKERS for method in service.methods]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_every_rpc_has_a_route(method: MethodDescriptor) -> None:
    assert ROUTES_OF[method.name] in TABLE


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_every_field_has_a_place(method: MethodDescriptor) -> None:
    route = TABLE[ROUTES_OF[method.name]]
    places = OTHER_NAMES | OF_METHODS.get(method.name, {})
    taken = taken_by(route)
    missing = {name for name in fields_of(method.input_type, taken) if places.get(name, name) not in taken}
    assert missing == set()


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_who_may_do_it_is_the_same(method: MethodDescriptor) -> None:
    route, need = TABLE[ROUTES_OF[method.name]], NEEDS[path_of(method)]
    assert (route.public, route.any_key, route.everywhere) == (
        need.public,
        need.scope is None and not need.public,
        need.everywhere,
    )
    if need.scope is not None:
        assert route.scope is need.scope


def taken_by(route: Route) -> set[str]:
    names = {segment[1:-1] for segment in route.path.split("/") if segment.startswith("{")}
    kinds: list[Any] = [route.query, route.body]
    for kind in kinds:
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            names.update(field.encode_name for field in msgspec.structs.fields(kind))
    return names | EVERYWHERE | {ELSEWHERE}


def fields_of(message: Descriptor, taken: set[str], within: str = "") -> set[str]:
    names: set[str] = set()
    for field in message.fields:
        nested = field.message_type is not None and field.message_type.name in NESTED
        if nested and field.name not in taken - EVERYWHERE:
            names |= fields_of(field.message_type, taken, "limits." if field.name == "limits" else "")
        else:
            names.add(field_name(f"{within}{field.name}"))
    return names

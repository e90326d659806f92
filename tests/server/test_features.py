"""GetServerInfo names every feature there is, and none that is not."""

import pytest

from kagzi.server.grpc.features import FEATURES
from kagzi.server.grpc.registration import SERVICES, path_of
from kagzi.v1 import admin_pb2, common_pb2, key_pb2, namespace_pb2, worker_pb2, workflow_pb2, workflow_schedule_pb2
from tests.server.stubs import TIMEOUT_S, Stubs

FILES = (admin_pb2, common_pb2, key_pb2, namespace_pb2, worker_pb2, workflow_pb2, workflow_schedule_pb2)
MESSAGES = {name: message for file in FILES for name, message in file.DESCRIPTOR.message_types_by_name.items()}
METHODS = {
    path.removeprefix("/kagzi.v1.") for path in (path_of(method) for service in SERVICES for method in service.methods)
}

FIRST_CONTRACT = {
    "WorkflowService": {"StartWorkflow", "GetWorkflow", "ListWorkflows", "CancelWorkflow"},
    "WorkerService": {
        "Register",
        "Heartbeat",
        "Deregister",
        "PollTask",
        "BeginStep",
        "CompleteStep",
        "FailStep",
        "CompleteWorkflow",
        "FailWorkflow",
        "Sleep",
    },
    "WorkflowScheduleService": {
        f"{verb}WorkflowSchedule{'s' if verb == 'List' else ''}"
        for verb in ("Create", "Get", "List", "Update", "Delete")
    },
    "AdminService": {"ListWorkers", "GetWorker", "GetStep", "ListSteps", "HealthCheck", "GetServerInfo"},
}


@pytest.mark.parametrize("feature", FEATURES)
def test_each_feature_is_real(feature: str) -> None:
    assert FEATURES[feature]
    for part in FEATURES[feature]:
        if "/" in part:
            assert part in METHODS
        else:
            message, _, field = part.partition(".")
            assert field in MESSAGES[message].fields_by_name


def test_every_call_beyond_the_first_contract_belongs_to_a_feature() -> None:
    named = {part for parts in FEATURES.values() for part in parts if "/" in part}
    first = {f"{service}/{method}" for service, methods in FIRST_CONTRACT.items() for method in methods}
    assert named == METHODS - first


async def test_the_server_lists_them(memory_stubs: Stubs) -> None:
    info = await memory_stubs.admin.GetServerInfo(admin_pb2.GetServerInfoRequest(), timeout=TIMEOUT_S)
    assert list(info.supported_features) == sorted(FEATURES)

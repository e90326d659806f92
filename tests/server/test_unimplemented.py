"""Every method of the contract is answered: by a service, or by UNIMPLEMENTED with what will bring it."""

import grpc
import pytest
from google.protobuf.message_factory import GetMessageClass

from kagzi.server.grpc.registration import SERVICES, path_of
from kagzi.server.grpc.services.admin import AdminService
from kagzi.server.grpc.services.namespaces import NamespaceService
from kagzi.server.grpc.services.schedules import WorkflowScheduleService
from kagzi.server.grpc.services.workers import WorkerService
from kagzi.server.grpc.services.workflows import WorkflowService
from kagzi.server.grpc.unimplemented import KEYS, UNIMPLEMENTED
from tests.server.stubs import TIMEOUT_S, Stubs

METHODS = {path_of(method): method for service in SERVICES for method in service.methods}
IMPLEMENTED = {
    f"/kagzi.v1.{service.__name__}/{name}"
    for service in (WorkflowService, WorkflowScheduleService, WorkerService, AdminService, NamespaceService)
    for name in dir(service)
    if name[0].isupper()
}


def test_every_method_is_implemented_or_listed_and_none_is_both() -> None:
    assert set(METHODS) == IMPLEMENTED | set(UNIMPLEMENTED)
    assert not IMPLEMENTED & set(UNIMPLEMENTED)


def test_what_is_still_to_come_by_capability() -> None:
    names: dict[str, set[str]] = {}
    for path, capability in UNIMPLEMENTED.items():
        names.setdefault(capability, set()).add(path.removeprefix("/kagzi.v1."))
    services = {capability: {name.partition("/")[0] for name in methods} for capability, methods in names.items()}
    assert services == {
        KEYS: {"KeyService"},
    }
    assert {capability: len(methods) for capability, methods in names.items()} == {
        KEYS: 4,
    }


async def test_they_say_so(memory_stubs: Stubs) -> None:
    for path, capability in UNIMPLEMENTED.items():
        request = GetMessageClass(METHODS[path].input_type)()
        # On the wire a call with one request is a stream of one.
        call = memory_stubs.channel.stream_stream(path)(iter([request.SerializeToString()]), timeout=TIMEOUT_S)
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await call.read()
        assert refusal.value.code() is grpc.StatusCode.UNIMPLEMENTED
        assert capability in (refusal.value.details() or "")

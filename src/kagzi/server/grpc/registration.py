"""Maps methods to handlers. Every method of every service in the protos has an implementation and a declared scope."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import grpc
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.message_factory import GetMessageClass

from ...v1 import admin_pb2, key_pb2, namespace_pb2, worker_pb2, workflow_pb2, workflow_schedule_pb2
from ...v1.common_pb2 import PageInfo
from ..access.scopes import check_methods
from ..startup import CannotStart
from .budgets import Budget
from .interceptor import Interceptor

SERVICES: tuple[ServiceDescriptor, ...] = tuple(
    service
    for file in (workflow_pb2, worker_pb2, workflow_schedule_pb2, admin_pb2, namespace_pb2, key_pb2)
    for service in file.DESCRIPTOR.services_by_name.values()
)

LARGE_READS = frozenset(
    {
        "/kagzi.v1.WorkflowService/GetWorkflow",
        "/kagzi.v1.WorkflowService/Wait",
        "/kagzi.v1.AdminService/GetStep",
        "/kagzi.v1.AdminService/GetStats",
        "/kagzi.v1.WorkflowScheduleService/GetWorkflowSchedule",
    }
)
_OWN = "kagzi."
LONG_POLLS = frozenset({"/kagzi.v1.WorkerService/PollTask", "/kagzi.v1.WorkflowService/Wait"})


def handlers(
    interceptor: Interceptor, services: Mapping[str, object], descriptors: Sequence[ServiceDescriptor] = SERVICES
) -> list[grpc.GenericRpcHandler]:
    """`services`: by full name, the object whose methods are named as in the protos. Methods that it lacks are not
    served."""
    return [
        grpc.method_handlers_generic_handler(
            descriptor.full_name,
            {
                method.name: _handler(interceptor, method, implementation)
                for method in descriptor.methods
                if (implementation := getattr(services.get(descriptor.full_name), method.name, None)) is not None
            },
        )
        for descriptor in descriptors
    ]


def check_served(services: Mapping[str, object], descriptors: Sequence[ServiceDescriptor] = SERVICES) -> None:
    """Raises CannotStart unless every method of Kagzi's own services is served, and every served method has a declared
    scope. Methods that a new release of a library adds to its own services are not served."""
    served: list[str] = []
    for method in (method for descriptor in descriptors for method in descriptor.methods):
        if hasattr(services.get(method.containing_service.full_name), method.name):
            served.append(path_of(method))
        elif method.containing_service.full_name.startswith(_OWN):
            raise CannotStart(f"nothing serves {path_of(method)}, which the protos promise.")
    check_methods(served)


def path_of(method: MethodDescriptor) -> str:
    return f"/{method.containing_service.full_name}/{method.name}"


def streams_of(descriptors: Sequence[ServiceDescriptor]) -> frozenset[str]:
    """The paths of calls that last as long as their callers want."""
    methods = (method for descriptor in descriptors for method in descriptor.methods)
    return frozenset(path_of(method) for method in methods if method.client_streaming or method.server_streaming)


def _handler(
    interceptor: Interceptor, method: MethodDescriptor, implementation: Callable[..., Any]
) -> "grpc.RpcMethodHandler[Any, Any]":
    path = path_of(method)
    if method.client_streaming or method.server_streaming:
        return interceptor.stream(
            path,
            implementation,
            GetMessageClass(method.input_type),
            interceptor.budgets.streams,
        )
    handle = interceptor.read if reads_much(method) else interceptor.unary
    return handle(path, implementation, GetMessageClass(method.input_type), _budget(interceptor, path))


def reads_much(method: MethodDescriptor) -> bool:
    """Whether the response may be large: a page of a list, or payloads of a run, a step or a schedule."""
    page = method.output_type.fields_by_name.get("page")
    return path_of(method) in LARGE_READS or (page is not None and page.message_type is PageInfo.DESCRIPTOR)


def _budget(interceptor: Interceptor, path: str) -> Budget:
    return interceptor.budgets.polls if path in LONG_POLLS else interceptor.budgets.calls

"""Which handler answers which method. Every method of every service in the protos is answered: by its service if it has
a method of that name, else as unimplemented."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import grpc
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from ...core.errors import Unimplemented
from ...v1 import admin_pb2, key_pb2, namespace_pb2, worker_pb2, workflow_pb2, workflow_schedule_pb2
from ...v1.common_pb2 import PageInfo
from .budgets import Budget
from .interceptor import Context, Interceptor
from .unimplemented import sentence

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
LONG_POLLS = frozenset({"/kagzi.v1.WorkerService/PollTask", "/kagzi.v1.WorkflowService/Wait"})


def handlers(
    interceptor: Interceptor, services: Mapping[str, object], descriptors: Sequence[ServiceDescriptor] = SERVICES
) -> list[grpc.GenericRpcHandler]:
    """`services`: by full name, the object whose methods are named as in the protos."""
    return [
        grpc.method_handlers_generic_handler(
            descriptor.full_name,
            {
                method.name: _handler(interceptor, method, services.get(descriptor.full_name))
                for method in descriptor.methods
            },
        )
        for descriptor in descriptors
    ]


def path_of(method: MethodDescriptor) -> str:
    return f"/{method.containing_service.full_name}/{method.name}"


def _handler(
    interceptor: Interceptor, method: MethodDescriptor, service: object | None
) -> "grpc.RpcMethodHandler[Any, Any]":
    path = path_of(method)
    implementation = getattr(service, method.name, None)
    if method.client_streaming or method.server_streaming:
        return interceptor.stream(
            path,
            implementation or partial(_unimplemented_stream, path),
            GetMessageClass(method.input_type),
            interceptor.budgets.streams,
        )
    answer = implementation or partial(_unimplemented, path)
    handle = interceptor.read if reads_much(method) else interceptor.unary
    return handle(path, answer, GetMessageClass(method.input_type), _budget(interceptor, path))


def reads_much(method: MethodDescriptor) -> bool:
    """Whether its answer may be large: it is a page of a list, or has payloads of a run, a step or a schedule."""
    page = method.output_type.fields_by_name.get("page")
    return path_of(method) in LARGE_READS or (page is not None and page.message_type is PageInfo.DESCRIPTOR)


def _budget(interceptor: Interceptor, path: str) -> Budget:
    return interceptor.budgets.polls if path in LONG_POLLS else interceptor.budgets.calls


async def _unimplemented(path: str, request: Message) -> Message:
    raise Unimplemented(sentence(path), subject="method", subject_id=path)


async def _unimplemented_stream(path: str, context: Context) -> None:
    raise Unimplemented(sentence(path), subject="method", subject_id=path)

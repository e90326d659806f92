"""gRPC reflection: lets tools such as grpcurl list the server's methods. On in `kagzi dev`; a setting elsewhere."""

from collections.abc import AsyncIterator, Iterable
from typing import Any, cast

from google.protobuf.descriptor import ServiceDescriptor
from grpc_reflection.v1alpha import reflection, reflection_pb2

from .grpc.interceptor import Context, read_message

NAME: str = reflection.SERVICE_NAME


class ReflectionService:
    """grpc.reflection.v1alpha.ServerReflection"""

    def __init__(self, services: Iterable[str]) -> None:
        self._answers: Any = reflection.aio.ReflectionServicer((*services, NAME))

    async def ServerReflectionInfo(self, context: Context) -> None:
        async for response in self._answers.ServerReflectionInfo(_requests(context), context):
            await context.write(response.SerializeToString())


async def _requests(context: Context) -> AsyncIterator[reflection_pb2.ServerReflectionRequest]:
    while isinstance(data := await context.read(), bytes):
        yield read_message(data, reflection_pb2.ServerReflectionRequest)


def reflection_descriptor() -> ServiceDescriptor:
    return cast("ServiceDescriptor", reflection_pb2.DESCRIPTOR.services_by_name["ServerReflection"])

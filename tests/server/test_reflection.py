"""Tools ask a development server which methods there are; other servers have no such method."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import grpc
import pytest
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from kagzi.server.app import Server
from kagzi.server.config import ServerConfig
from kagzi.server.grpc.registration import SERVICES
from kagzi.server.listen import parse_listen
from tests.support.timeouts import LOADED_MACHINE_S


@asynccontextmanager
async def connected(*, reflection: bool) -> AsyncIterator[grpc.aio.Channel]:
    config = ServerConfig(
        db=":memory:", listen=parse_listen("127.0.0.1:0", field="listen"), http=None, reflection=reflection
    )
    server = Server(config)
    await server.start()
    try:
        async with grpc.aio.insecure_channel(server.grpc_address) as channel:
            yield channel
    finally:
        await server.stop(0)


async def test_services_and_their_messages_are_told() -> None:
    ask = reflection_pb2.ServerReflectionRequest
    requests = ask(list_services=""), ask(file_containing_symbol="kagzi.v1.WorkflowService"), ask(file_by_filename="no")
    async with connected(reflection=True) as channel:
        stub = cast("Any", reflection_pb2_grpc.ServerReflectionStub)(channel)
        call = stub.ServerReflectionInfo(iter(requests), timeout=LOADED_MACHINE_S)
        services, file, missing = [response async for response in call]
        names = {service.name for service in services.list_services_response.service}
        assert names >= {service.full_name for service in SERVICES}
        assert b"StartWorkflowRequest" in file.file_descriptor_response.file_descriptor_proto[0]
        assert missing.error_response.error_code == grpc.StatusCode.NOT_FOUND.value[0]


async def test_without_the_setting_there_is_no_such_method() -> None:
    request = reflection_pb2.ServerReflectionRequest(list_services="").SerializeToString()
    async with connected(reflection=False) as channel:
        # As a call with one message: a stream may be refused before its first message is written, and gRPC's client
        # then says INTERNAL about itself.
        call = channel.unary_unary("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo")
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await call(request, timeout=LOADED_MACHINE_S)
    assert refusal.value.code() is grpc.StatusCode.UNIMPLEMENTED

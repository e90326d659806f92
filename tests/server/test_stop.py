"""A server that stops finishes what it has begun, and answers the rest with what clients retry."""

import asyncio

import grpc
import httpx
from grpc_health.v1 import health_pb2, health_pb2_grpc

from kagzi.core.errors import Unavailable
from kagzi.server.app import Server
from kagzi.server.listen import ListenAddress
from kagzi.v1 import workflow_pb2
from kagzi.wire.status import from_rpc_error
from tests.server.conftest import StartServer
from tests.server.stubs import TIMEOUT_S, Stubs


async def test_long_polls_are_answered_and_calls_in_flight_finish(server: Server, stubs: Stubs) -> None:
    worker_id = await stubs.register()
    started = await stubs.start("other")
    poll = asyncio.ensure_future(stubs.poll(worker_id))
    wait = asyncio.ensure_future(
        stubs.workflows.Wait(workflow_pb2.WaitRequest(run_id=started.run_id), timeout=TIMEOUT_S)
    )
    starts = [asyncio.ensure_future(stubs.start("other")) for _ in range(50)]
    await starts[0]
    await asyncio.wait_for(server.stop(), TIMEOUT_S)
    assert not (await poll).tasks
    answer = await wait
    assert (answer.ended, answer.status) == (False, workflow_pb2.WORKFLOW_STATUS_PENDING)
    for result in await asyncio.gather(*starts, return_exceptions=True):
        if isinstance(result, BaseException):
            assert isinstance(result, grpc.aio.AioRpcError)
            assert isinstance(from_rpc_error(result), Unavailable)


async def test_what_was_acknowledged_is_there_after_a_restart(start_server: StartServer, database_url: str) -> None:
    first = await start_server(database_url)
    async with grpc.aio.insecure_channel(first.grpc_address) as channel:
        started = await Stubs(channel).start()
    await first.stop()
    second = await start_server(database_url)
    async with grpc.aio.insecure_channel(second.grpc_address) as channel:
        assert (await Stubs(channel).get(started.run_id)).run_id == started.run_id


async def test_stop_and_start_may_be_called_again(start_server: StartServer) -> None:
    server = await start_server()
    await server.stop()
    await server.stop()
    await server.start()
    await server.start()
    async with grpc.aio.insecure_channel(server.grpc_address) as channel:
        assert (await Stubs(channel).start()).run_id


async def test_health_turns_before_the_port_closes(server: Server, stubs: Stubs) -> None:
    health = health_pb2_grpc.HealthStub(stubs.channel)
    for service in ("", "kagzi.v1.WorkflowService"):
        request = health_pb2.HealthCheckRequest(service=service)
        assert (await health.Check(request, timeout=TIMEOUT_S)).status == health_pb2.HealthCheckResponse.SERVING
    watch = health.Watch(health_pb2.HealthCheckRequest(), timeout=TIMEOUT_S)
    assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVING
    stopping = asyncio.ensure_future(server.stop())
    assert (await watch.read()).status == health_pb2.HealthCheckResponse.NOT_SERVING
    await stopping


async def test_an_unknown_service_is_not_found(memory_stubs: Stubs) -> None:
    health = health_pb2_grpc.HealthStub(memory_stubs.channel)
    try:
        await health.Check(health_pb2.HealthCheckRequest(service="x.Y"), timeout=TIMEOUT_S)
    except grpc.aio.AioRpcError as error:
        code = error.code()
    assert code is grpc.StatusCode.NOT_FOUND
    watch = health.Watch(health_pb2.HealthCheckRequest(service="x.Y"), timeout=TIMEOUT_S)
    assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
    watch.cancel()


async def test_the_http_port_is_free_again(start_server: StartServer) -> None:
    first = await start_server(http=ListenAddress("127.0.0.1", 0))
    port = int(first.http_url.rpartition(":")[2])
    await first.stop()
    second = await start_server(http=ListenAddress("127.0.0.1", port))
    async with httpx.AsyncClient() as client:
        assert (await client.get(f"{second.http_url}/readyz")).text == "ready\n"

"""The write-ahead log is deleted under a real server, which is then killed: what it acknowledged is there when it is
back."""

import re
from pathlib import Path

import grpc
import httpx
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from kagzi.v1 import workflow_pb2
from tests.server.stubs import TIMEOUT_S, Stubs
from tests.support.processes import Processes

RUNS = 50
NOTICED_S = 60.0


async def status_of(channel: grpc.aio.Channel) -> int:
    check = health_pb2_grpc.HealthStub(channel).Check
    return (await check(health_pb2.HealthCheckRequest(), timeout=TIMEOUT_S)).status


async def is_not_serving(channel: grpc.aio.Channel) -> None:
    """Returns when load balancers are told so."""
    watch = health_pb2_grpc.HealthStub(channel).Watch
    async for answer in watch(health_pb2.HealthCheckRequest(), timeout=NOTICED_S):
        if answer.status == health_pb2.HealthCheckResponse.NOT_SERVING:
            return


async def test_a_deleted_log_is_noticed_reported_and_costs_nothing(tmp_path: Path) -> None:
    async with Processes(tmp_path) as processes:
        server = await processes.server("sqlite:///k.db", "--poll-interval", "500ms")
        async with grpc.aio.insecure_channel(server.grpc) as channel:
            stubs = Stubs(channel)
            for number in range(RUNS):
                await stubs.start(workflow_id=f"run-{number}")
            assert await status_of(channel) == health_pb2.HealthCheckResponse.SERVING
            (tmp_path / "k.db-wal").unlink()
            await server.wait_for(re.compile(r"CRITICAL.*k\.db-wal was deleted"), NOTICED_S)
            await server.wait_for(
                re.compile(r"CRITICAL.*everything that was committed was saved.*Restart the server")
            )
            await is_not_serving(channel)
            async with httpx.AsyncClient(timeout=TIMEOUT_S) as client:
                assert (await client.get(f"{server.http}/readyz")).status_code == 503
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await stubs.start(workflow_id="too-late")
            assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
        server.kill()
        await server.wait()
        again = await processes.server("sqlite:///k.db")
        async with grpc.aio.insecure_channel(again.grpc) as channel:
            request = workflow_pb2.CountWorkflowsRequest()
            counted = await Stubs(channel).workflows.CountWorkflows(request, timeout=TIMEOUT_S)
            assert counted.count == RUNS

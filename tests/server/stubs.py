"""gRPC stubs of all services of one channel, and the few calls that many tests begin with."""

from collections.abc import Awaitable
from typing import Any

import grpc
import pytest

from kagzi.v1 import (
    admin_pb2_grpc,
    common_pb2,
    worker_pb2,
    worker_pb2_grpc,
    workflow_pb2,
    workflow_pb2_grpc,
)
from tests.support.timeouts import LOADED_MACHINE_S

TIMEOUT_S = LOADED_MACHINE_S


class Stubs:
    def __init__(self, channel: grpc.aio.Channel, address: str = "") -> None:
        self.channel = channel
        self.address = address
        self.workflows: Any = workflow_pb2_grpc.WorkflowServiceStub(channel)
        self.workers: Any = worker_pb2_grpc.WorkerServiceStub(channel)
        self.admin: Any = admin_pb2_grpc.AdminServiceStub(channel)

    async def start(self, workflow_type: str = "greet", **fields: Any) -> workflow_pb2.StartWorkflowResponse:
        request = workflow_pb2.StartWorkflowRequest(workflow_type=workflow_type, **fields)
        return await self.workflows.StartWorkflow(request, timeout=TIMEOUT_S)

    async def register(self, *workflow_types: str) -> str:
        request = worker_pb2.RegisterRequest(workflow_types=workflow_types or ["greet"])
        return (await self.workers.Register(request, timeout=TIMEOUT_S)).worker_id

    async def poll(self, worker_id: str, **fields: Any) -> worker_pb2.PollTaskResponse:
        return await self.workers.PollTask(worker_pb2.PollTaskRequest(worker_id=worker_id, **fields), timeout=TIMEOUT_S)

    async def claim(self) -> worker_pb2.PollTaskResponse:
        """Start a run and take it."""
        worker_id = await self.register()
        await self.start()
        return await self.poll(worker_id)

    async def get(self, run_id: str) -> workflow_pb2.Workflow:
        request = workflow_pb2.GetWorkflowRequest(run_id=run_id)
        return (await self.workflows.GetWorkflow(request, timeout=TIMEOUT_S)).workflow


def leased(task: Any) -> dict[str, Any]:
    return {"run_id": task.run_id, "lease": task.lease}


def json_payload(text: str) -> common_pb2.Payload:
    return common_pb2.Payload(data=text.encode())


async def refused(call: Awaitable[Any]) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await call
    return refusal.value

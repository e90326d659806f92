"""A worker that is a session and a fake executor, for tests that play the server."""

import asyncio

from kagzi.sdk.transport.connection import Connection
from kagzi.sdk.worker.session import Session
from kagzi.v1 import worker_pb2 as pb
from tests.sdk.net.fake_executor import Answers, FakeExecutor
from tests.sdk.net.fake_server import FakeServer, FakeSession

REGISTER = pb.RegisterRequest(
    worker_id="w1", namespace_id="default", served=[pb.WorkflowTypeVersion(workflow_type="hello", version="1")]
)


class Worker:
    """A session with its executor."""

    def __init__(self, connection: Connection) -> None:
        self.executor = FakeExecutor()
        self.drains = 0
        self.session = Session(connection, REGISTER, self.executor, on_welcome=lambda _: None, on_drain=self._on_drain)

    def _on_drain(self) -> None:
        self.drains += 1


async def welcomed(worker: Worker, server: FakeServer) -> FakeSession:
    starting = asyncio.create_task(worker.session.start())
    stream, hello = await server.session()
    await starting
    assert hello.hello.register == REGISTER
    return stream


def step(id: str, answers: Answers, worker: Worker, run: int = 0) -> None:
    operation = worker.executor.executions[run].port.send(answers)
    operation.complete_step.step_id = id

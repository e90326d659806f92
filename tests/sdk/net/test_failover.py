"""Several servers, and embedded files whose server changes: calls, waits and sessions move on."""

import asyncio

import pytest

from kagzi.core.errors import Unavailable
from kagzi.sdk.client.client import Kagzi
from kagzi.sdk.transport import connection as connections
from kagzi.sdk.transport.address import parse_address
from kagzi.sdk.transport.connection import Connection
from kagzi.sdk.worker.session import Session
from kagzi.system import SystemClock, SystemRng
from kagzi.v1 import common_pb2
from kagzi.v1 import workflow_pb2 as wf
from tests.sdk.net.fake_executor import Answers, FakeExecutor
from tests.sdk.net.fake_server import WAIT_S, FakeServer, task
from tests.sdk.net.test_session import REGISTER


async def test_calls_and_waits_move_to_the_other_server(server: FakeServer, other: FakeServer) -> None:
    async with asyncio.timeout(WAIT_S), Kagzi.connect(f"{server.address},{other.address}") as client:
        run = await client.start("hello", 1, id="o1")
        result = asyncio.create_task(run.result())
        await server.until_waited_for(run.id)
        await server.stop()
        await other.until_waited_for(run.id)
        await other.end(run.id, status=wf.WORKFLOW_STATUS_COMPLETED, output=common_pb2.Payload(data=b"1"))
        assert await result == 1
        assert (await client.start("hello", 2, id="o2")).id == "run-of-o2"
    assert len(other.requests("StartBatch")) == 1


async def test_a_session_moves_with_everything_it_holds(server: FakeServer, other: FakeServer) -> None:
    connection = Connection(
        parse_address(f"{server.address},{other.address}", {}),
        tls=None,
        api_key=None,
        clock=SystemClock(),
        rng=SystemRng(),
    )
    executor = FakeExecutor()
    await connection.open()
    session = Session(connection, REGISTER, executor, on_welcome=lambda _: None, on_drain=lambda: None)
    try:
        starting = asyncio.create_task(session.start())
        stream, _ = await server.session()
        await starting
        stream.say(tasks=[task()])
        (execution,) = await executor.accepted(1)
        answers = Answers()
        execution.port.send(answers).complete_step.step_id = "a"
        (operation,) = await stream.operations(1)
        await server.stop()

        stream, hello = await other.session()
        assert [leased.run_id for leased in hello.hello.leased] == ["r1"]
        (repeated,) = await stream.operations(1)
        assert repeated == operation
        stream.acknowledge(repeated)
        assert (await answers.next()).seq == 1
    finally:
        await session.close()
        await connection.close()


class File:
    """An embedded file that is served by one, then by another."""

    def __init__(self, *servers: FakeServer) -> None:
        self.targets = [server.address for server in servers]
        self.renewed = 0
        self.closed = False
        self.open_call = None  # other processes serve it

    @property
    def target(self) -> str:
        return self.targets[0]

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        return (("kagzi-proof", f"secret-of-{self.target}"),)

    async def renew(self) -> None:
        self.renewed += 1
        if self.renewed == 1:
            raise Unavailable("nobody has taken over yet")
        self.targets = self.targets[-1:]

    async def close(self) -> None:
        self.closed = True


async def test_an_embedded_file_is_found_again_with_its_new_proof(
    server: FakeServer, other: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = File(server, other)

    async def open_file(address: str) -> File:
        assert address == "sqlite:///x.db"
        return file

    monkeypatch.setattr(connections, "open_embedded", open_file)
    async with asyncio.timeout(WAIT_S):
        async with Kagzi.connect("sqlite:///x.db") as client:
            await client.start("hello", 1)
            assert server.metadata[-1]["kagzi-proof"] == f"secret-of-{server.address}"
            await server.stop()
            await client.start("hello", 2)
            assert other.metadata[-1]["kagzi-proof"] == f"secret-of-{other.address}"
    assert file.renewed == 2
    assert file.closed


async def test_a_file_that_cannot_be_opened_leaves_nothing_behind(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = File(server)
    server.info.api_version = "v9"

    async def open_file(address: str) -> File:
        return file

    monkeypatch.setattr(connections, "open_embedded", open_file)
    with pytest.raises(Exception, match="v9"):
        await Kagzi.connect("sqlite:///x.db")
    assert file.closed

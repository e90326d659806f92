"""Connecting: a server that fits, one that does not, none at all."""

import asyncio
import socket

import grpc
import pytest

from kagzi.core.errors import InvalidArgument, PreconditionFailed, Unavailable
from kagzi.sdk.client.client import Kagzi
from kagzi.sdk.transport.connection import Connection
from tests.sdk.net.fake_server import GONE, FakeServer
from tests.support.timeouts import LOADED_MACHINE_S


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


async def test_awaited_or_with(server: FakeServer) -> None:
    client = await Kagzi.connect(server.address)
    await client.close()
    async with Kagzi.connect(server.address):
        pass
    assert len(server.requests("GetServerInfo")) == 2


async def test_the_key_travels_as_metadata(server: FakeServer) -> None:
    async with Kagzi.connect(server.address, api_key="kgz_1_secret"):
        assert server.metadata[-1]["authorization"] == "Bearer kgz_1_secret"


async def test_nobody_there_is_told_within_seconds_with_the_remedy() -> None:
    port = free_port()
    async with asyncio.timeout(LOADED_MACHINE_S):
        with pytest.raises(Unavailable, match=f"127.0.0.1:{port}: connection refused.*Start the server"):
            await Kagzi.connect(f"127.0.0.1:{port}")


async def test_a_server_that_never_answers_is_given_up(server: FakeServer) -> None:
    server.latches["GetServerInfo"] = asyncio.Event()
    async with asyncio.timeout(LOADED_MACHINE_S):
        with pytest.raises(Unavailable, match="No response"):
            await Kagzi.connect(server.address, timeout="300ms")


async def test_a_server_that_stumbles_is_asked_again(server: FakeServer) -> None:
    server.failures["GetServerInfo"] = [GONE, GONE]
    async with Kagzi.connect(server.address):
        assert len(server.requests("GetServerInfo")) == 3


async def test_a_call_that_is_cancelled_just_after_its_answer_came_is_cancelled(connection: Connection) -> None:
    """gRPC then fails it with status OK. Tried again, it would have forgotten somebody's Ctrl-C, or a timeout."""
    requested = asyncio.Event()
    tries = 0

    async def answer(*_: object, **_options: object) -> None:
        nonlocal tries
        tries += 1
        requested.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise grpc.aio.AioRpcError(grpc.StatusCode.OK, grpc.aio.Metadata(), grpc.aio.Metadata()) from None

    call = asyncio.create_task(connection.call(lambda _link: answer, None))  # type: ignore[arg-type, return-value]
    await requested.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert tries == 1


async def test_the_second_of_two_servers_is_used_when_the_first_is_dead(server: FakeServer) -> None:
    async with Kagzi.connect(f"127.0.0.1:{free_port()},{server.address}") as client:
        assert (await client.start("hello", 1)).id


async def test_a_server_of_another_generation_is_refused(server: FakeServer) -> None:
    server.info.api_version = "v9"
    with pytest.raises(PreconditionFailed, match="speaks v9"):
        await Kagzi.connect(server.address)
    server.info.api_version, server.info.min_sdk_version = "v1", "99.1"
    with pytest.raises(PreconditionFailed, match=r"pip install 'kagzi>=99.1'"):
        await Kagzi.connect(server.address)


async def test_a_closed_client_says_so(server: FakeServer) -> None:
    client = await Kagzi.connect(server.address)
    await client.close()
    with pytest.raises(PreconditionFailed, match="closed"):
        await client.start("hello", 1)


async def test_a_wrong_timeout_is_refused(server: FakeServer) -> None:
    with pytest.raises(InvalidArgument, match="no unit"):
        await Kagzi.connect(server.address, timeout="5")

"""A server that does what a test tells it, behind real gRPC."""

from collections.abc import AsyncIterator

import pytest

from kagzi.sdk.transport.address import parse_address
from kagzi.sdk.transport.connection import Connection
from kagzi.system import SystemClock, SystemRng
from tests.sdk.net.fake_server import FakeServer
from tests.sdk.net.session_kit import Worker


@pytest.fixture
async def server() -> AsyncIterator[FakeServer]:
    fake = FakeServer()
    await fake.start()
    yield fake
    await fake.stop()


@pytest.fixture
async def other() -> AsyncIterator[FakeServer]:
    """The second of two, for those who move."""
    fake = FakeServer()
    await fake.start()
    yield fake
    await fake.stop()


@pytest.fixture
async def connection(server: FakeServer) -> AsyncIterator[Connection]:
    opened = Connection(parse_address(server.address, {}), tls=None, api_key=None, clock=SystemClock(), rng=SystemRng())
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture
async def worker(connection: Connection) -> AsyncIterator[Worker]:
    made = Worker(connection)
    yield made
    await made.session.close()

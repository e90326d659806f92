"""A server that does what a test tells it, behind real gRPC."""

from collections.abc import AsyncIterator

import pytest

from tests.sdk.net.fake_server import FakeServer


@pytest.fixture
async def server() -> AsyncIterator[FakeServer]:
    fake = FakeServer()
    await fake.start()
    yield fake
    await fake.stop()

"""Every promise is kept by real processes, on both stores, and by two servers on one PostgreSQL."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.processes import Processes

from .site import SETUPS, Site


@pytest.fixture(params=SETUPS)
def setup(request: pytest.FixtureRequest) -> str:
    if request.param != "sqlite":
        request.getfixturevalue("postgres_url")  # before a loop runs
    return request.param


@pytest.fixture
async def site(setup: str, request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Site]:
    database = f"sqlite:///{tmp_path}/kagzi.db" if setup == "sqlite" else request.getfixturevalue("postgres_url")
    async with Processes(tmp_path) as processes:
        site = Site(processes, database, tmp_path)
        for _ in range(2 if setup == "two-servers" else 1):
            await site.add_server()
        yield site

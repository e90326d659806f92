"""A server with 10,000 workflow types and 1,000 namespaces, all with runs that wait: its page is bounded, and quick."""

import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from kagzi.core.run.commands import StartRequest
from kagzi.engine.measurements import store_gauges
from kagzi.server.app import Server
from kagzi.server.config import ServerConfig
from kagzi.server.listen import ListenAddress
from kagzi.server.metrics.page import MetricsPage
from tests.support.postgres import Databases

TYPES = 10_000
NAMESPACES = 1_000
PAGE_S = 0.05
QUERY_S = 0.5
ANY_PORT = ListenAddress("127.0.0.1", 0)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/kagzi.db"
        return
    databases: Databases = request.getfixturevalue("postgres")
    with databases.database() as database:
        yield database


@pytest.fixture
async def server(url: str) -> AsyncIterator[Server]:
    server = Server(ServerConfig(db=url, listen=ANY_PORT, http=ANY_PORT))
    await server.start()
    yield server
    await server.stop(0)


async def test_many_types_and_namespaces_make_a_bounded_page(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    assert server._engine is not None
    starts = [
        StartRequest(namespace=f"namespace-{number % NAMESPACES:04}", workflow_type=f"type-{number:05}")
        for number in range(TYPES)
    ]
    for first in range(0, TYPES, 100):
        await server._engine.runs.start_many(starts[first : first + 100])
    for counts in server._engine.measurements._types.values():
        counts.duration.observe(1.0)
    assert server._info is not None
    assert server._health is not None
    metrics = MetricsPage(server._engine, server._info, server._health)
    async with httpx.AsyncClient(base_url=server.http_url, timeout=60) as http:
        page = await http.get("/metrics")
    took_s: list[float] = []
    for _ in range(20):
        began_s = time.process_time()
        await metrics.text()
        took_s.append(time.process_time() - began_s)
    monkeypatch.setattr(store_gauges, "SHARED_S", 0.0)
    queried_s: list[float] = []
    for _ in range(5):
        began_s = time.perf_counter()
        await metrics.text()
        queried_s.append(time.perf_counter() - began_s)
    series = sum(len(family.samples) for family in text_string_to_metric_families(page.text))
    print(
        f"\n{server.store_url.partition(':')[0]}: {series} series, {len(page.content)} bytes, "
        f"{min(took_s) * 1e3:.1f} to {max(took_s) * 1e3:.1f} ms of CPU; with a query of the database "
        f"{min(queried_s) * 1e3:.1f} to {max(queried_s) * 1e3:.1f} ms"
    )
    assert series <= 20_000
    assert min(took_s) < PAGE_S
    assert min(queried_s) < QUERY_S

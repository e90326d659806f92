"""The page about transactions: its program with PostgreSQL. (tests/docs runs the one with SQLite.)"""

import importlib.util
import sys
from pathlib import Path

import asyncpg

from kagzi import Kagzi, Worker
from tests.docs.snippets import write_files

from .outboxes import serving, until_drained


async def test_an_order_is_shipped_with_its_commit(postgres_url: str, tmp_path: Path) -> None:
    write_files("docs/how-to/your-own-transaction.md", tmp_path)
    spec = importlib.util.spec_from_file_location("orders_of_the_page", tmp_path / "orders.py")
    assert spec is not None
    assert spec.loader is not None
    page = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(page)
    async with (
        asyncpg.create_pool(postgres_url, min_size=1, max_size=2) as pool,
        serving(postgres_url) as server,
        Kagzi.connect(server.grpc_address) as client,
        Worker(server.grpc_address, workflows=[page.ship]),
    ):
        await pool.execute("create table orders (id serial, item text)")
        workflow_id = await page.place_order(pool, client, "chair")
        assert workflow_id == "ship-1"
        await until_drained(postgres_url)
        assert await client.get(workflow_id, page.ship).result(timeout="60s") == "shipped 1"

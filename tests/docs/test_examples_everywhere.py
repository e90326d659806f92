"""The same three workflows, unchanged, on an embedded file, on a SQLite server and on a PostgreSQL server."""

import asyncio
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from examples import e00_min, e01_hello, e02_order
from kagzi import Kagzi, Worker, Workflow
from tests.support.kagzi_process import running

ORDER = e02_order.OrderInput(user_id=7, items=["lamp"], total=9.5)
NO_PORTS = ("--listen", "127.0.0.1:0", "--http", "127.0.0.1:0")


async def test_the_three_give_the_same_everywhere(tmp_path: Path, postgres_url: str) -> None:
    with ExitStack() as stack:
        addresses = [f"sqlite:///{tmp_path / 'embedded.db'}"]
        for database in (f"sqlite:///{tmp_path / 'server.db'}", postgres_url):
            server = stack.enter_context(running("server", "--db", database, *NO_PORTS, cwd=tmp_path))
            addresses.append((await asyncio.to_thread(server.says, r"grpc=(\S+)"))[1])
        everywhere = await asyncio.gather(*(results_at(address) for address in addresses))
    expected = ("HELLO, WORLD!", "HELLO, WORLD!", e02_order.OrderOutput(order_id="tx-7-48", status="completed"))
    assert everywhere == [expected] * 3


async def results_at(address: str) -> tuple[object, ...]:
    # Two of them are called `hello`: each has a namespace of its own.
    return tuple(
        await asyncio.gather(
            result_of(address, "e00", e00_min.hello, "world"),
            result_of(address, "e01", e01_hello.hello, "world"),
            result_of(address, "e02", e02_order.process_order, ORDER),
        )
    )


async def result_of(address: str, namespace: str, workflow: Workflow[Any, Any], input: object) -> object:
    async with (
        Worker(address, namespace=namespace, workflows=[workflow]),
        Kagzi.connect(address, namespace=namespace) as client,
    ):
        return await client.run(workflow, input, timeout="90s")

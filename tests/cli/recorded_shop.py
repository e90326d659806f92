"""Runs of the demo's shop, recorded by a real server in this process, in which nothing takes time or happens by
chance."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from kagzi import Kagzi, Worker
from kagzi.cli.demo import shop
from kagzi.cli.demo.shop import Approval, Item, Order

CODE = "kagzi.cli.demo.shop"
ORDER = Order(customer="ada@example.com", items=[Item("kettle", 2), Item("tea")], total=300.0)


class Shop(NamedTuple):
    """Where the runs are: on a server, and in a file."""

    address: str
    file: Path


async def _at_once(seconds: float) -> None:
    del seconds


@contextmanager
def _shop_without_chance(*, declines: bool) -> Generator[None]:
    def happens(share: float) -> bool:
        return declines and share < 0.2  # no card is declined as often as a provider is slow

    with patch.object(shop, "_takes", _at_once), patch.object(shop, "_happens", happens):
        yield


def record(directory: Path) -> Shop:
    """`rejected` (by a person), `declined` (the card: it failed), and `again`, a fork of it that went well."""
    recorded = Shop(f"sqlite:///{directory}/shop.db", directory / "runs.jsonl")
    asyncio.run(_record(recorded))
    return recorded


async def _record(recorded: Shop) -> None:
    async with Worker(recorded.address, workflows=shop.WORKFLOWS), Kagzi.connect(recorded.address) as client:
        with _shop_without_chance(declines=True):
            declined = await client.start(shop.process_order, ORDER, id="declined")
            await declined.wait(timeout="60s")
        with _shop_without_chance(declines=False):
            rejected = await client.start(shop.process_order, ORDER, id="rejected")
            again = await declined.fork(id="again", from_step="charge-card")
            for run in (rejected, again):
                await run.signal(shop.approve_order, Approval(approved=False, note="too dear"))
                await run.wait(timeout="60s")
        lines = [line for run in (declined, rejected, again) async for line in run.export()]
    recorded.file.write_bytes(b"".join(lines))

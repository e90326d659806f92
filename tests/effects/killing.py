"""kill -9 of workers between the shop's commit and Kagzi's, as often as is wanted, and what came of it."""

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import asyncpg

from kagzi import Kagzi
from tests.support.polling import until
from tests.support.processes import Process, Processes

from .kill_flows import DRIVERS, Order, Receipt, pay_order

FLOWS = "tests.effects.kill_flows"
LEASE = ("--lease", "4s", "--heartbeat", "500ms", "--reconnect-grace", "300ms")


class Figures(NamedTuple):
    orders: int
    processes: int  # that were killed
    killed_between: int  # bodies that were killed after the shop's commit and before Kagzi had the result
    killed_inside: int  # before the shop's commit
    read: int  # attempts that read the result of an earlier one
    paid: dict[str, int]  # how often each order was paid for
    wrong_receipts: int  # runs whose result is not what is in the shop's table

    @property
    def doubles(self) -> int:
        return sum(count - 1 for count in self.paid.values())

    @property
    def missing(self) -> int:
        return self.orders - len(self.paid)


class Ledger:
    def __init__(self, path: Path) -> None:
        self.path = path

    def entries(self) -> list[dict[str, str | int]]:
        return [json.loads(line) for line in self.path.read_text().splitlines()] if self.path.exists() else []

    def count(self, event: str) -> int:
        return sum(entry["event"] == event for entry in self.entries())


def orders(between: int, inside: int, others: int) -> Iterator[Order]:
    """Those that are killed go through all drivers."""
    plan = ["between"] * between + ["inside"] * inside + [""] * others
    for number, killed in enumerate(plan):
        yield Order(f"order-{number}", DRIVERS[number % len(DRIVERS)], killed)


async def kill_workers(
    processes: Processes, database: str, shop: str, directory: Path, todo: list[Order], *, workers: int, plain: bool
) -> Figures:
    """All orders are paid for, while their workers are killed where the orders say."""
    connection = await asyncpg.connect(shop)
    try:
        await connection.execute("create table payments (order_id text, paid_by int)")
        ledger = Ledger(directory / "effects.jsonl")
        server = await processes.server(database, *LEASE)
        environment = {"KAGZI_TEST_SHOP": shop, "KAGZI_TEST_LEDGER": str(ledger.path)}
        if plain:
            environment["KAGZI_TEST_PLAIN"] = "1"
        async with Kagzi.connect(server.grpc) as client:
            runs = [await client.start(pay_order, order, id=order.id) for order in todo]
            kills = sum(bool(order.killed) for order in todo)
            add = partial(processes.launch_worker, server.grpc, FLOWS, "--max-concurrent", "1", **environment)
            killed = await _kill(add, ledger, kills, workers)
            receipts = await asyncio.gather(*(run.result(timeout="120s") for run in runs))
        rows = await connection.fetch("select order_id, paid_by from payments")
        return _figures(todo, killed, ledger, [tuple(row) for row in rows], receipts)
    finally:
        await connection.close()


async def _kill(launch: Callable[[], Awaitable[Process]], ledger: Ledger, kills: int, workers: int) -> int:
    """Whoever says that it is at the place is killed, and another one takes its place; at the end all stay alive.
    Returns how many were killed."""
    at_work: dict[int, Process] = {}
    killed = 0

    async def add() -> None:
        worker = await launch()
        at_work[worker.pid] = worker

    def standing() -> set[int]:
        places = (entry for entry in ledger.entries() if entry["event"] in ("between", "inside"))
        return {int(entry["pid"]) for entry in places} & at_work.keys()

    await asyncio.gather(*(add() for _ in range(workers)))
    while killed < kills:
        struck = await until(standing, what="a body waits to be killed", timeout_s=120)
        for pid in struck:
            at_work.pop(pid).kill()
        killed += len(struck)
        await asyncio.gather(*(add() for _ in struck))
    return killed


def _figures(
    todo: list[Order], killed: int, ledger: Ledger, rows: list[tuple[str, int]], receipts: list[Receipt]
) -> Figures:
    return Figures(
        orders=len(todo),
        processes=killed,
        killed_between=ledger.count("between"),
        killed_inside=ledger.count("inside"),
        read=ledger.count("read"),
        paid=dict(Counter(order for order, _ in rows)),
        wrong_receipts=sum((receipt.order, receipt.paid_by) not in rows for receipt in receipts),
    )
